#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "app/run/results.h"
#include "app/scenario/overrides.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::summary_test {
namespace {

ResultTable example() {
  const Scenario scenario = small_scenario();
  ResultTable table;
  table.arms = scenario.arms;
  table.sweep_paths = scenario.sweep_paths;
  double value = 0;
  for (const Cell& cell : scenario.cells) {
    value += 1;
    table.rows.push_back({cell.id, cell.arm, cell.seed, cell.point, "done", {{"m", value}}, {}});
  }
  table.rows.back().state = "diverged";
  return table;
}

}  // namespace

TEST_CASE("summary: means over seeds, and what is missing") {
  const std::vector<SummaryEntry> entries = summarize(example(), "m");
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].estimate->mean == 1.5);
  CHECK(entries[0].planned == 2);
  CHECK(entries[3].estimate->mean == 7);
  CHECK(entries[3].estimate->count == 1);
  // Two values 1 apart: half the interval is t_1(0.975) / 2 = 12.706 / 2.
  CHECK(summary_text(example(), "m") ==
        "m (mean over seeds ± half of the 95 % interval)\n"
        "data.train_samples  learned    frozen\n"
        "10                  1.5 ± 6.4  5.5 ± 6.4\n"
        "20                  3.5 ± 6.4  7 (1 of 2)\n");
  CHECK(summarize(example(), "absent")[0].estimate.has_value() == false);
}

TEST_CASE("summary: where the lines are too long, every arm has rows of its own") {
  CHECK(summary_text(example(), "m", 41) == summary_text(example(), "m"));
  CHECK(summary_text(example(), "m", 40) ==
        "m (mean over seeds ± half of the 95 % interval)\n"
        "arm      data.train_samples  m\n"
        "learned  10                  1.5 ± 6.4\n"
        "learned  20                  3.5 ± 6.4\n"
        "frozen   10                  5.5 ± 6.4\n"
        "frozen   20                  7 (1 of 2)\n");
}

TEST_CASE("summary: half of a wide interval is a whole number, as its mean is") {
  const auto text = [](double half) {
    return estimate_text(MeanEstimate{223.3, 3, Interval{223.3 - half, 223.3 + half}});
  };
  CHECK(text(120.4) == "223.3 ± 120");
  CHECK(text(99.4) == "223.3 ± 99");
  CHECK(text(99.6) == "223.3 ± 100");
  CHECK(text(0.0123) == "223.3 ± 0.012");
  CHECK(text(123456) == "223.3 ± 1.2e+05");
}

TEST_CASE("summary: a metric that is declared positive has the geometric mean, as the figures") {
  ResultTable table = example();
  for (ResultRow& row : table.rows) row.metrics["test_nmse_top1"] = row.metrics.at("m");
  const std::vector<SummaryEntry> entries = summarize(table, "test_nmse_top1");
  CHECK(entries[0].estimate->mean == doctest::Approx(std::sqrt(2.0)));
  CHECK(entries[0].estimate->interval->low > 0);
  CHECK(summary_text(table, "test_nmse_top1").starts_with("test_nmse_top1 (geometric mean over seeds [95 %"));
}

TEST_CASE("summary: where positive metrics have other values the head says which mean was taken") {
  ResultTable table = example();
  for (ResultRow& row : table.rows) row.metrics["test_nmse_top1"] = row.metrics.at("m") - 1;
  CHECK(summary_text(table, "test_nmse_top1") ==
        "test_nmse_top1 (geometric mean over seeds [95 % interval]; where a value is not above 0, mean ± "
        "half of the interval)\n"
        "data.train_samples  learned              frozen\n"
        "10                  0.5 ± 6.4            4.472 [1.08, 18.5]\n"
        "20                  2.449 [0.186, 32.2]  6 (1 of 2)\n");
  const std::vector<SummaryEntry> entries = summarize(table, "test_nmse_top1");
  CHECK(column_head(entries, "test_nmse_top1").starts_with("test_nmse_top1 (geometric mean over seeds"));
  CHECK(column_head(summarize(example(), "m"), "m") == "m");
  for (ResultRow& row : table.rows) row.metrics["test_nmse_top1"] = 0;
  CHECK(
      summary_text(table, "test_nmse_top1")
          .starts_with("test_nmse_top1 (mean over seeds ± half of the 95 % interval, since values are not"));
  CHECK(summary_json(table, "test_nmse_top1").at("entries")[0].at("statistic") == "mean");
  // A decided run's intervals are wider, and its caption says whose they are.
  ResultTable decided = example();
  decided.is_decided = true;
  const auto width = [](const ResultTable& shown) {
    const Json interval = summary_json(shown, "m").at("entries")[0].at("interval");
    return interval.is_null() ? 1e9 : interval[1].get<double>() - interval[0].get<double>();
  };
  CHECK(width(decided) > width(example()));
  CHECK(summary_caption(decided, "m").ends_with("; of confidence sequences"));
  // The interval of two values excludes nothing.
  CHECK(entry_text(summarize(decided, "m")[0]) == "1.5 [-]");
  CHECK(excludes_nothing({0, std::numeric_limits<double>::infinity()}));
  CHECK_FALSE(excludes_nothing({0.1, std::numeric_limits<double>::infinity()}));
  CHECK_FALSE(excludes_nothing({0, 1}));
}

/// Steps to a target of ten seeds that stopped at step 300, `censored` of them before they got there.
ResultTable steps_of_ten(int censored) {
  ResultTable table;
  table.arms = {"a"};
  for (int seed = 0; seed < 10; ++seed) {
    ResultRow row{"", "a", seed, {}, "done", {{"steps_to_target_censored.pure", 1}}, {{300, {}}}};
    if (seed >= censored)
      row.metrics = {{"steps_to_target.pure", 10 * seed}, {"steps_to_target_censored.pure", 0}};
    table.rows.push_back(row);
  }
  return table;
}

TEST_CASE("summary: steps that may be censored have their median") {
  const std::string metric = "steps_to_target.pure",
                    head =
                        "steps_to_target.pure (median over seeds [95 % interval of order statistics])\na\n";
  // The second and the ninth of ten bound the median; the first seed has the value 0.
  CHECK(summary_text(steps_of_ten(0), metric) == head + "45 [10, 80]\n");
  CHECK(summary_text(steps_of_ten(3), metric) == head + "75 [40, above 300] (3 of 10 censored)\n");
  CHECK(summary_text(steps_of_ten(7), metric) == head + "above 300 (7 of 10 censored)\n");
  ResultTable lacking = steps_of_ten(7);
  lacking.rows[9].state = "diverged";
  CHECK(summary_text(lacking, metric) == head + "above 300 (7 of 9 censored) (9 of 10)\n");
  CHECK(
      column_head(summarize(lacking, metric), metric).starts_with("steps_to_target.pure (median over seeds"));
  CHECK(summary_caption(lacking, metric).starts_with("steps_to_target.pure, median over seeds"));
}

TEST_CASE("summary: a median for programs") {
  const auto entry_of = [](int censored) {
    return summary_json(steps_of_ten(censored), "steps_to_target.pure").at("entries")[0];
  };
  const Json some = entry_of(3), most = entry_of(7);
  CHECK(some.at("statistic") == "median");
  CHECK(some.at("mean").is_null());
  CHECK(some.at("median") == 75);
  CHECK(some.at("count") == 10);
  CHECK(some.at("censored") == 3);
  CHECK(some.at("interval") == Json::array({40, nullptr}));
  CHECK(most.at("median").is_null());
  CHECK(most.at("above") == 300);
}

TEST_CASE("summary: the main metric is the first figure's") {
  PlanHead plan;
  CHECK(main_metric(plan) == "test_nmse_top1");
  plan.document = Json::parse(R"({"loss": {"task": "cross_entropy"}})");
  plan.read_document();
  CHECK(main_metric(plan) == "test_loss_eval");
  const auto metric_with = [&](const Json& figure) {
    plan.written_figures = Json::array({figure});
    plan.read_document();
    return main_metric(plan);
  };
  const Json y = {"router_norm_ratio", "other"};
  CHECK(metric_with({{"id", "f"}, {"x", "step"}, {"y", "effective_experts"}}) == "effective_experts");
  CHECK(metric_with({{"id", "f"}, {"x", "step"}, {"y", y}}) == "router_norm_ratio");
  CHECK(metric_with({{"id", "f"},
                     {"kind", "heat_map"},
                     {"x", "data.dim"},
                     {"y", "model.experts"},
                     {"value", "effective_experts"}}) == "effective_experts");
}

}  // namespace moelab::summary_test
