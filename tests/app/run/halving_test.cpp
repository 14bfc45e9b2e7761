#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "app/run/search.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/scenario/refused.h"

namespace moelab::halving_test {
namespace {

TuneRange range(double low, double high, bool is_log, bool is_whole = false) {
  return {{low, high, is_log}, "train.lr", is_whole};
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

TEST_CASE("rounding neither leaves a range of whole numbers nor makes candidates equal") {
  for (const double share : {0.0, 0.5, 1.0}) {
    const double value = range(10.5, 20.5, false, true).at(share).get<double>();
    CHECK(value >= 10.5);
    CHECK(value <= 20.5);
  }
  const auto sorted = [](std::vector<std::vector<Json>> values) {
    std::sort(values.begin(), values.end());
    return values;
  };
  const std::vector<std::vector<Json>> three = {{1}, {2}, {3}};
  CHECK(candidate_values({range(1, 3, false, true)}, 6) == three);  // there are no more
  // A grid of eight on the log scale has 1 twice; another takes its place.
  const std::vector<std::vector<Json>> more = sorted(candidate_values({range(1, 20, true, true)}, 8));
  CHECK(more.size() == 8);
  CHECK(std::adjacent_find(more.begin(), more.end()) == more.end());
  CHECK(sorted(candidate_values({range(1, 2, false, true), range(1, 2, false, true)}, 20)) ==
        std::vector<std::vector<Json>>{{1, 1}, {1, 2}, {2, 1}, {2, 2}});
  // Three digits are not enough for these.
  CHECK(candidate_values({range(1001, 1004, false, true)}, 4) ==
        std::vector<std::vector<Json>>{{1001}, {1002}, {1003}, {1004}});
  CHECK(candidate_values({range(1, 1.002, false)}, 5) ==
        std::vector<std::vector<Json>>{{1.0}, {1.0005}, {1.001}, {1.0015}, {1.002}});
}

TEST_CASE("the best come first, what failed last") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(best_places({3, infinity, 1, 1}, 3) == std::vector<std::size_t>{2, 3, 0});
  CHECK(best_places({infinity, 2}, 5) == std::vector<std::size_t>{1, 0});
  // The logarithm of a metric of 0, and no metric at all.
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(best_places({none, 2, -infinity, infinity}, 4) == std::vector<std::size_t>{2, 1, 3, 0});
}

TEST_CASE("ranges that are refused, at their places") {
  const auto refused = [](const Json& tune, const char* path, const char* message) {
    Json scenario = tiny();
    scenario["tune"] = tune;
    check_refused(scenario, "", {}, path, message);
  };
  const Json fine = {{"low", 0.1}, {"high", 1.0}};
  refused({{"train.rate", fine}}, "tune.train.rate", "unknown key 'rate'");
  refused({{"train.optimizer", fine}}, "tune.train.optimizer", "not a number");
  refused({{"data.train_samples", fine}}, "tune.data.train_samples", "the sweep sets");
  refused({{"train.lr", {{"low", 2.0}, {"high", 1.0}}}}, "tune.train.lr.high", "needs more than low");
  refused({{"train.lr", {{"low", 0.0}, {"high", 1.0}}}}, "tune.train.lr.low", "above 0");
  const auto linear = [](double low, double high) {
    return Json({{"low", low}, {"high", high}, {"scale", "linear"}});
  };
  refused({{"train.lr", linear(-1, 1)}}, "tune.train.lr.low", "got -1.0, needs");
  refused({{"data.clusters", linear(0.2, 0.9)}}, "tune.data.clusters.low", "got 0.2, needs a whole number");
  refused({{"train.steps", linear(10.5, 20)}}, "tune.train.steps.low", "got 10.5, needs a whole number");
  refused({{"train.steps", linear(10, 20.5)}}, "tune.train.steps.high", "got 20.5, needs a whole number");
  Json scenario = tiny();
  scenario["tune"] = {{"train.lr", fine}, {"train.steps", {{"low", 2}, {"high", 9}, {"scale", "linear"}}}};
  CHECK(expand_scenario(scenario, "", {}).cells.size() == 8);
}

TEST_CASE("a tuned field is not above or below one that an arm sets") {
  const auto refused = [](const char* own, const Json& value, const char* tuned, const char* path) {
    Json scenario = tiny();
    scenario["arms"]["small"] = {{own, value}};
    scenario["tune"] = {{tuned, {{"low", 1}, {"high", 4}}}};
    check_refused(scenario, "", {}, path, std::string("arm 'small' sets ") + own + "; needs");
  };
  refused("train.lr.router", 0.02, "train.lr", "tune.train.lr");
  refused("train.lr", 0.02, "train.lr.router", "tune.train.lr.router");
  refused("train.epochs", 2, "train.steps", "tune.train.steps");
  Json scenario = tiny();
  scenario["arms"]["small"] = {{"train.lr", 0.02}};
  scenario["tune"] = {{"train.lr", {{"low", 0.1}, {"high", 1.0}}}};
  CHECK(expand_scenario(scenario, "", {}).cells.size() == 12);
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
