#include "app/run/halving.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/app/commands/tiny_run.h"
#include "tests/app/scenario/refused.h"

namespace moelab::halving_test {
namespace {

TuneRange range(double low, double high, bool is_log, bool is_whole = false) {
  return {"train.lr", low, high, is_log, is_whole};
}

}  // namespace

TEST_CASE("a third goes on with three times the seeds, until one is left") {
  CHECK(halving_rungs(9) == std::vector<Rung>{{9, 1}, {3, 3}});
  CHECK(halving_rungs(20) == std::vector<Rung>{{20, 1}, {6, 3}, {2, 9}});
  CHECK(halving_rungs(2) == std::vector<Rung>{{2, 1}});
  CHECK(halving_rungs(1).empty());
  CHECK(trainings_of(halving_rungs(9)) == 9 + 3 * 2);
  CHECK(trainings_of(halving_rungs(20)) == 20 + 6 * 2 + 2 * 6);
}

TEST_CASE("a budget suffices for so many candidates and no more") {
  CHECK(candidates_within(1) == 0);
  for (const int budget : {2, 15, 44, 60, 333}) {
    const int most = candidates_within(budget);
    CHECK(trainings_of(halving_rungs(most)) <= budget);
    CHECK(most >= 2);
  }
  CHECK(candidates_within(15) == 9);
}

TEST_CASE("values cover their range, even on its scale, to three digits") {
  const std::vector<std::vector<Json>> log = candidate_values({range(0.001, 10, true)}, 5);
  CHECK(log == std::vector<std::vector<Json>>{{0.001}, {0.01}, {0.1}, {1.0}, {10.0}});
  const std::vector<std::vector<Json>> whole = candidate_values({range(10, 20, false, true)}, 3);
  CHECK(whole.at(1).at(0).dump() == "15");
  const std::vector<std::vector<Json>> two = candidate_values({range(0.01, 1, true), range(0, 1, false)}, 16);
  for (const std::vector<Json>& values : two) {
    CHECK(values[0].get<double>() >= 0.01);
    CHECK(values[0].get<double>() <= 1);
  }
  CHECK(two == candidate_values({range(0.01, 1, true), range(0, 1, false)}, 16));
  CHECK(range(0.01, 1, true).share_of(0.1) == doctest::Approx(0.5));
  CHECK(range(1.0 / 3, 1, true).at(0) == 1.0 / 3);  // rounding does not leave the range
}

TEST_CASE("the best come first, what failed last") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(best_places({3, infinity, 1, 1}, 3) == std::vector<std::size_t>{2, 3, 0});
  CHECK(best_places({infinity, 2}, 5) == std::vector<std::size_t>{1, 0});
}

TEST_CASE("ranges that are refused, at their places") {
  const auto refused = [](const Json& tune, const char* path, const char* message) {
    Json scenario = tiny();
    scenario["tune"] = tune;
    check_refused(scenario, "", {}, path, message);
  };
  const Json fine = {{"low", 0.1}, {"high", 1.0}};
  refused({{"train.rate", fine}}, "tune.train.rate", "no field");
  refused({{"train.optimizer", fine}}, "tune.train.optimizer", "not a number");
  refused({{"data.train_samples", fine}}, "tune.data.train_samples", "the sweep sets");
  refused({{"train.lr", {{"low", 2.0}, {"high", 1.0}}}}, "tune.train.lr.high", "needs more than low");
  refused({{"train.lr", {{"low", 0.0}, {"high", 1.0}}}}, "tune.train.lr.low", "above 0");
  Json scenario = tiny();
  scenario["tune"] = {{"train.lr", fine}, {"train.steps", {{"low", 2}, {"high", 9}, {"scale", "linear"}}}};
  CHECK(expand_scenario(scenario, "", {}).cells.size() == 8);
}

TEST_CASE("a claim on tuned arms needs a value of their own for all that is tuned") {
  Json scenario = tiny();
  scenario["claims"] = Json::parse(R"([{"id": "c", "left": {"arm": "learned", "metric": "test_nmse_top1"},
    "op": "<", "right": {"arm": "frozen", "metric": "test_nmse_top1"}, "tuned": true}])");
  check_refused(scenario, "", {}, "claims[0].tuned", "needs \"tune\"");
  scenario["tune"] = {{"train.lr", {{"low", 0.01}, {"high", 1.0}}}};
  check_refused(scenario, "", {}, "claims[0].tuned", "arms.frozen does not set train.lr");
  scenario["arms"]["learned"]["train.lr"] = 0.1;
  scenario["arms"]["frozen"]["train.lr"] = 0.2;
  CHECK(expand_scenario(scenario, "", {}).cells.size() == 8);
}

}  // namespace moelab::halving_test
