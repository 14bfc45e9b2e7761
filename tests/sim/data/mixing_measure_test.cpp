/// Mixing measures against NumPy (mixing_measure.py wrote mixing_measure.json).

#include "sim/data/mixing_measure.h"

#include <doctest/doctest.h>

#include "tests/sim/data/data_of.h"
#include "tests/sim/reference_numbers.h"

namespace moelab::mixing_measure_test {
namespace {

/// Sums of a few terms of order ten, powers up to a hundred.
constexpr double kRounding = 1e-12;

TEST_CASE("regression functions under every gate are NumPy's") {
  const Json stored = read_json_file(MOELAB_TEST_DATA "/sim/data/mixing_measure.json");
  CHECK(stored.at("cases").size() == 24);
  for (const Json& item : stored.at("cases")) {
    CAPTURE(item.at("router").dump());
    CAPTURE(item.at("gating").dump());
    Json measure = {{"kind", "given"}};
    for (const char* key : {"gate", "bias", "slope", "intercept", "group_gate", "group_bias", "shared_slope",
                            "shared_intercept"})
      if (!item.at(key).empty()) measure[key] = item.at(key);
    const std::unique_ptr<Problem> problem =
        draw_problem(data_of({{"generator", "moe_regression"},
                              {"dim", item.at("x")[0].size()},
                              {"router", item.at("router")},
                              {"gating", item.at("gating")},
                              {"expert", item.at("expert")},
                              {"shared_experts", item.at("shared_slope").size()},
                              {"measure", measure}}),
                     {1, 0});
    const std::vector<double> x = numbers_of(item.at("x")), f = numbers_of(item.at("f"));
    const auto rows = static_cast<Eigen::Index>(f.size());
    const Matrix found =
        *problem->bayes_prediction(MatrixView(x.data(), rows, static_cast<Eigen::Index>(x.size()) / rows));
    for (Eigen::Index i = 0; i < rows; ++i) {
      const double expected = f[static_cast<std::size_t>(i)];
      CHECK(std::abs(found(i, 0) - expected) <= kRounding * std::max(1.0, std::abs(expected)));
    }
  }
}

}  // namespace
}  // namespace moelab::mixing_measure_test
