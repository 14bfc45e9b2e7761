/// Scenarios and tables of n parts and of 4 n parts: the time grows with n, and not with n².

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>

#include "app/scenario/json.h"
#include "app/scenario/scenario.h"
#include "app/store/export.h"
#include "tests/temporary_folder.h"

namespace moelab::linear_time_test {
namespace {

/// Quadratic time grows sixteenfold.
constexpr double kMostGrowth = 8;

double seconds_of(const std::function<void(int)>& work, int parts) {
  const std::clock_t begin = std::clock();
  work(parts);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// The growth of the time of this process from `parts` to four times as many. The least of several attempts.
double growth(int parts, const std::function<void(int)>& work) {
  constexpr int kAttempts = 4;
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kAttempts && least > kMostGrowth; ++attempt) {
    const double few = seconds_of(work, parts);
    least = std::min(least, seconds_of(work, 4 * parts) / few);
  }
  return least;
}

Json small_scenario() {
  return Json::parse(R"({
    "name": "many", "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 2, "target": "linear",
                             "train_samples": 30, "test_samples": 30},
    "model": {"experts": 3, "router": "linear", "expert": "linear"},
    "train": {"lr": 0.1, "batch_size": 4, "steps": 20}, "seeds": {"count": 1}})");
}

Json sweep_of(int values) {
  Json list = Json::array();
  for (int i = 0; i < values; ++i) list.push_back(0.1 + 1e-6 * i);
  return {{"train.lr", list}};
}

}  // namespace

TEST_CASE("time grows with the number of phases") {
  CHECK(growth(500, [](int count) {
          Json scenario = small_scenario();
          scenario["phases"] = Json::array();
          for (int i = 0; i < count; ++i)
            scenario["phases"].push_back({{"name", fmt::format("p{}", i)}, {"train", {{"steps", 1}}}});
          expand_scenario(scenario, "", {});
        }) < kMostGrowth);
}

TEST_CASE("time grows with the number of profiles, whose cells are checked") {
  CHECK(growth(60, [](int count) {
          Json scenario = small_scenario();
          for (int i = 0; i < count; ++i)
            scenario["profiles"][fmt::format("p{}", i)] = {{"train.lr", 0.1 + 1e-6 * i}};
          expand_scenario(scenario, "", {});
          check_cells_of_profiles({scenario, {"scenario.json"}, {scenario}, {scenario.dump()}});
        }) < kMostGrowth);
}

TEST_CASE("time grows with the number of swept values") {
  CHECK(growth(2000, [](int count) {
          Json scenario = small_scenario();
          scenario["sweep"] = sweep_of(count);
          expand_scenario(scenario, "", {});
        }) < kMostGrowth);
}

TEST_CASE("time grows with the number of files that extend each other") {
  const TemporaryFolder folder;
  constexpr int kFew = 100;
  const auto file = [&](int number) { return folder.path() / fmt::format("s{}.json", number); };
  std::ofstream(file(0)) << small_scenario();
  for (int i = 1; i <= 4 * kFew; ++i)
    std::ofstream(file(i)) << Json{{"name", "extended"}, {"extends", fmt::format("s{}.json", i - 1)}};
  CHECK(growth(kFew, [&](int count) { read_scenario_file(file(count)); }) < kMostGrowth);
}

TEST_CASE("time grows with the number of columns of a table") {
  CHECK(growth(4000, [](int count) {
          std::string head = "seed", row = "0";
          for (int i = 0; i < count; ++i) {
            head += fmt::format(",column{}", i);
            row += ",1";
          }
          parse_csv(head + "\n" + row + "\n", "table.csv");
        }) < kMostGrowth);
}

}  // namespace moelab::linear_time_test
