#include "sim/train/fit_search.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/train/least_squares.h"
#include "tests/sim/model/mixture_gates.h"
#include "tests/sim/train/regression_fit.h"

namespace moelab::fit_search_test {
namespace {

const Json kLinear = {{"kind", "linear"}, {"bias", true}};
const Json kUnitGelu = {{"kind", "gelu"}, {"normalize", "unit"}};

SearchStartOptions search(int oracle = 2) {
  SearchStartOptions options;
  options.rows = 400;
  options.oracle = oracle;
  return options;
}

TEST_CASE("basins count what belongs together, and settle when the two best were found repeatedly") {
  Basins basins;
  CHECK_FALSE(basins.is_settled(1));
  basins.add(3, 0.1);
  CHECK(basins.is_settled(1));
  CHECK_FALSE(basins.is_settled(2));
  basins.add(1, 0.1);
  basins.add(1.05, 0.1);
  CHECK(basins.times_best() == 2);
  CHECK(basins.distinct() == 2);
  CHECK_FALSE(basins.is_settled(2));  // 3 was found once
  basins.add(2, 0.1);
  basins.add(2, 0.1);
  CHECK(basins.is_settled(2));  // 3 is the third now
  basins.add(0.5, 0.1);
  CHECK(basins.times_best() == 1);
  CHECK_FALSE(basins.is_settled(2));
}

TEST_CASE("a split and a merge keep the weights, and halves without spread are the split component") {
  MixingMeasure measure{{}, Matrix(3, 1), Vector(3), Matrix(3, 1), Vector(3)};
  measure.gate << 1, 2, 3;
  measure.bias << 0, std::log(2.0), std::log(3.0);
  measure.slope << -1, -2, -3;
  measure.intercept << 4, 5, 6;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Engine engine(seed);
    const MixingMeasure moved = split_and_merged(measure, 0, engine);
    const double weight = measure.bias.array().exp().sum();
    CHECK(moved.bias.array().exp().sum() == doctest::Approx(weight).epsilon(1e-14));
    // Weighted means do not move either.
    const auto mean = [](const MixingMeasure& of, const Vector& values) {
      return (of.bias.array().exp() * values.array()).sum();
    };
    CHECK(mean(moved, moved.gate.col(0)) ==
          doctest::Approx(mean(measure, measure.gate.col(0))).epsilon(1e-14));
    CHECK(mean(moved, moved.intercept) == doctest::Approx(mean(measure, measure.intercept)).epsilon(1e-14));
    // One component was split into two equal ones.
    int equal = 0;
    for (Eigen::Index i = 0; i < 3; ++i)
      for (Eigen::Index j = 0; j < i; ++j) equal += moved.gate(i, 0) == moved.gate(j, 0);
    CHECK(equal == 1);
    Engine again(seed);
    CHECK(split_and_merged(measure, 1, again).gate != moved.gate);
  }
}

TEST_CASE("a search stops early, is no worse than many starts, and does not look at the truth") {
  for (const int experts : {2, 3}) {
    CAPTURE(experts);
    Fit found(kLinear, kUnitGelu, experts, 0.1, 400), blind(kLinear, kUnitGelu, experts, 0.1, 400),
        many(kLinear, kUnitGelu, experts, 0.1, 400);
    const FitOutcome outcome = found.run(search(), 60);
    REQUIRE(outcome.search);
    REQUIRE(outcome.search->oracle_gap);
    // With one component more, the valley is so flat that fits need more steps than these to settle.
    if (experts == 2) {
      CHECK(outcome.search->is_settled);
      CHECK(outcome.search->times_best >= 3);
      CHECK(outcome.starts < 60);
      CHECK(outcome.converged);
    }
    CHECK(std::abs(*outcome.search->oracle_gap) < 0.1);
    CHECK(*outcome.search->oracle_gap <= kOracleTolerance);
    const FitOutcome without = blind.run(search(0), 60);
    CHECK_FALSE(without.search->oracle_gap);
    CHECK(without.starts == outcome.starts);
    CHECK(blind.model.parameters == found.model.parameters);
    many.run(BestStartOptions{.starts = 10, .rows = 400}, 60);
    CHECK(found.loss() <= many.loss() * (1 + kOracleTolerance));
  }
}

TEST_CASE("a search that is cut short says so, and is worse than its oracle") {
  Fit fit(kLinear, kUnitGelu, 3, 0.1, 400);
  SearchStartOptions options = search();
  options.starts = options.evaluations = 1;
  const FitOutcome outcome = fit.run(options, 1);
  REQUIRE(outcome.search);
  CHECK(outcome.starts == 1);
  CHECK(outcome.search->times_best == 1);
  CHECK_FALSE(outcome.search->is_settled);
  CHECK(outcome.search->oracle_gap.value() > kOracleTolerance);
}

TEST_CASE("a search goes through every gate that a mixing measure may have") {
  for (const MixtureGates& gates : mixture_gates()) {
    CAPTURE(gates.name);
    Fit fit{mixture_data(gates, {{"kind", "linear"}}, 2, 3, 0.1),
            mixture_model(gates, {{"kind", "linear"}}, 4),
            300,
            {9, 0}};
    SearchStartOptions options = search(1);
    options.starts = 8;
    options.evaluations = 40;
    const FitOutcome outcome = fit.run(options, 10);
    CHECK(outcome.state == TrainState::done);
    REQUIRE(outcome.search);
    CHECK(outcome.search->oracle_gap.has_value());
    CHECK(std::isfinite(fit.loss()));
  }
}

TEST_CASE("an interrupted search says so") {
  Fit fit(kLinear, kUnitGelu, 2, 0.1, 400);
  fit.stop_after = 10;
  CHECK(fit.run(search()).state == TrainState::interrupted);
  CHECK(fit.calls < 60);
}

}  // namespace
}  // namespace moelab::fit_search_test
