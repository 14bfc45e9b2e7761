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

TEST_CASE("measuring draws no noise, and gives the load loss the standard deviations of the noise") {
  const std::vector<std::vector<double>> rows = {{1, 0, -1}, {0, 2, 1}};
  const double spread = std::log(2.0) + 0.01;  // W_noise starts at 0
  const Gated learned(NoisyTopKGatingOptions{.k = 1}, rows);
  const NoisyScores<double>& noise = learned.scratch.noise;
  REQUIRE(noise.k == 1);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t e = 0; e < 3; ++e) {
      const std::size_t at = row * size(learned.routing().stride) + e;
      CHECK(noise.noisy[at] == rows[row][e]);
      CHECK(noise.spreads[at] == doctest::Approx(spread));
    }
  }
  const Gated uniform(NoisyTopKGatingOptions{.k = 1, .noise = NoisyTopKGatingOptions::Noise::uniform}, rows);
  CHECK(uniform.scratch.noise.k == 0);
}

TEST_CASE("which gatings let a gradient reach the scores") {
  const auto reaches = [](const GatingRule& rule, int experts = 4) { return reaches_scores(rule, experts); };
  CHECK(reaches(SoftGatingOptions{}));
  CHECK_FALSE(reaches(SoftGatingOptions{}, 1));
  CHECK_FALSE(reaches(Top1GatingOptions{}));
  CHECK(reaches(Top1GatingOptions{.straight_through = true}));
  CHECK(reaches(TopKGatingOptions{.k = 1}));
  CHECK_FALSE(reaches(TopKGatingOptions{.k = 1, .renormalize = true}));
  CHECK(reaches(TopKGatingOptions{.k = 2, .renormalize = true}));
  CHECK_FALSE(reaches(NoisyTopKGatingOptions{.k = 1, .renormalize = true}));
  CHECK_FALSE(reaches(SigmoidGatingOptions{.k = 1, .renormalize = true}));
  CHECK(reaches(SigmoidGatingOptions{.k = 1}, 1));
  CHECK_FALSE(reaches(SigmoidGatingOptions{.renormalize = true}, 1));
}

}  // namespace
}  // namespace moelab::sparse_gating_test
