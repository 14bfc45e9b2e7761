#include <doctest/doctest.h>

#include "tests/sim/model/gating/gated.h"

namespace moelab::sparse_gating_test {
namespace {

TEST_CASE("three of 400 experts: the gradient from pair to pair is the one over all of them") {
  Engine engine(1);
  std::vector<std::vector<double>> rows(5, std::vector<double>(400));
  for (std::vector<double>& row : rows) {
    for (double& score : row) score = draw_normal(engine);
  }
  Gated gated(TopKGatingOptions{.k = 3, .renormalize = true}, rows);
  REQUIRE(is_sparse(gated.routing()));
  std::vector<double> in_place(gated.scores.size());
  for (double& value : in_place) value = draw_normal(engine);
  std::vector<double> given = in_place, over_all(in_place.size());
  gated.gating->backward(gated.context, gated.scratch, in_place.data(), in_place.data(), nullptr);
  gated.gating->backward(gated.context, gated.scratch, given.data(), over_all.data(), nullptr);
  for (std::size_t i = 0; i < over_all.size(); ++i) CHECK(in_place[i] == doctest::Approx(over_all[i]));
}

}  // namespace
}  // namespace moelab::sparse_gating_test
