/// `moelab compare`: runs side by side, and seed by seed where they share problems.

#include "app/cli/compare.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::compare_test {
namespace {

SeedPair exact_pair(double own, double first) {
  return {{own, own}, {first, first}};
}

TEST_CASE("paired seeds: the ratio of a metric that is declared positive") {
  const std::vector<SeedPair> pairs = {exact_pair(2, 1), exact_pair(8, 1)};
  const PairedSeeds paired = paired_seeds(pairs, "test_loss_soft", false);
  REQUIRE(paired.ratio.has_value());
  CHECK(paired.ratio->mean == doctest::Approx(4));
  CHECK(paired.difference->mean == 4);
  // Logarithms ln 2 and 3 ln 2: half of their interval is t_1(0.975) ln 2.
  CHECK(paired.ratio->interval->high == doctest::Approx(4 * std::exp(12.7062 * std::log(2.0))).epsilon(1e-4));
  CHECK(paired_text(paired).starts_with("ratio 4 ["));
  const Json json = paired_json(paired);
  CHECK(json.at("scale") == "ratio");
  CHECK(json.at("ratio").at("mean").get<double>() == doctest::Approx(4));
  CHECK(json.at("mean") == 4);
  CHECK(json.at("count") == 2);
}

TEST_CASE("paired seeds: the difference where a value is not above 0, and of other metrics") {
  const std::vector<SeedPair> pairs = {exact_pair(2, 0), exact_pair(8, 1)};
  const PairedSeeds zero = paired_seeds(pairs, "test_loss_soft", false);
  CHECK_FALSE(zero.ratio.has_value());
  CHECK(paired_text(zero).starts_with("difference 4.5 ± "));
  CHECK(paired_json(zero).at("scale") == "difference");
  CHECK_FALSE(paired_seeds({exact_pair(2, 1)}, "cluster_entropy", false).ratio.has_value());
}

TEST_CASE("paired seeds: signs of a metric that may be censored") {
  const auto above = [](double last) { return Interval{last, std::numeric_limits<double>::infinity()}; };
  const std::vector<SeedPair> pairs = {exact_pair(10, 20),       exact_pair(20, 20),
                                       {{30, 30}, above(300)},   {above(300), {40, 40}},
                                       {above(300), above(300)}, {above(30), {200, 200}}};
  const PairedSeeds paired = paired_seeds(pairs, "steps_to_target.pure", false);
  CHECK(paired_text(paired) == "2 below, 1 above, 1 tied, 2 undecided");
  const Json json = paired_json(paired);
  CHECK(json.at("mean").is_null());
  CHECK(json.at("count") == 6);
  CHECK(json.at("signs").at("above") == 1);
}

TEST_CASE("compare shows what table shows, and ratios of positive metrics") {
  const Bench bench;
  const std::string other = (bench.folder.path() / "other").string();
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  REQUIRE(ask({"run", bench.file, "--out", other, "--set", "train.steps=8"}).status == 0);
  const std::string text = ask({"compare", bench.run, other, "--metric", "test_loss_soft"}).out;
  CHECK(text.starts_with("test_loss_soft (geometric mean over seeds [95 % interval])"));
  CHECK(text.find("±") == std::string::npos);
  CHECK(text.find("paired, against " + bench.run) != std::string::npos);
  CHECK(text.find("  ratio ") != std::string::npos);
  const Json rows = Json::parse(ask({"table", bench.run, "--metric", "test_loss_soft", "--json"}).out);
  const Json answer =
      Json::parse(ask({"compare", bench.run, other, "--metric", "test_loss_soft", "--json"}).out);
  const Json value = answer.at("rows")[0].at("values")[0];
  CHECK(value.at("mean") == rows.at(0).at("entries")[0].at("mean"));
  CHECK(value.at("statistic") == "geometric mean");
  const Json paired = answer.at("differences")[0].at("values")[0];
  CHECK(paired.at("scale") == "ratio");
  const double ratio =
      answer.at("rows")[0].at("values")[1].at("mean").get<double>() / value.at("mean").get<double>();
  CHECK(paired.at("ratio").at("mean").get<double>() == doctest::Approx(ratio));
}

TEST_CASE("compare counts signs of steps that may be censored") {
  Json scenario = tiny();
  scenario["metrics"].push_back(
      Json::parse(R"({"kind": "convergence", "name": "never", "metric": "test_loss_soft", "target": 1e-9})"));
  const Bench bench(scenario);
  const std::string other = (bench.folder.path() / "other").string();
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  REQUIRE(ask({"run", bench.file, "--out", other, "--set", "train.steps=8"}).status == 0);
  const std::string text = ask({"compare", bench.run, other, "--metric", "steps_to_target.never"}).out;
  CHECK(text.find("above 8 (2 of 2 censored)") != std::string::npos);
  CHECK(text.find("0 below, 0 above, 0 tied, 2 undecided") != std::string::npos);
}

}  // namespace
}  // namespace moelab::compare_test
