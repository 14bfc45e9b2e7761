#include "app/run/figures.h"

#include <doctest/doctest.h>

namespace moelab::figures_test {
namespace {

/// Arms learned and dense at n = 10, 20 with three seeds; dense has no `effective_experts`, and its last cell
/// failed.
RunResults example() {
  RunResults results;
  results.plan = {{"title", "Sparsity"}, {"source", "Fig. 2c"}, {"figures", Json::array()}};
  results.table.arms = {"learned", "dense"};
  results.table.sweep_paths = {"data.train_samples"};
  for (const std::string& arm : results.table.arms)
    for (const int n : {10, 20})
      for (int seed = 0; seed < 3; ++seed) {
        MetricValues metrics = {{"test_nmse_top1", 1.0 / n + seed}, {"bayes_nmse", 0.01}};
        if (arm == "learned") metrics["effective_experts"] = n + seed;
        results.table.rows.push_back({"",
                                      arm,
                                      seed,
                                      {{"data.train_samples", n}},
                                      "done",
                                      metrics,
                                      {{0, {{"test_nmse_top1", 1.0}}}, {5, metrics}}});
      }
  results.table.rows.back().state = "failed";
  results.table.rows.back().metrics.clear();
  return results;
}

Figure built(const std::string& description) {
  return build_figure(Json::parse(description), example());
}

}  // namespace

TEST_CASE("one line for each arm, gaps where a cell failed, everything named") {
  const Figure figure =
      built(R"({"id": "f", "x": "data.train_samples", "y": "test_nmse_top1", "series": "arm",
                                  "x_scale": "log", "y_scale": "linear"})");
  REQUIRE(figure.series.size() == 2);
  CHECK(figure.series[0].name == "learned");
  CHECK(figure.x_label == "training samples");
  CHECK(figure.y_label == "test loss ÷ label variance (top-1)");
  CHECK(figure.title == "Sparsity");
  CHECK(figure.x_log);
  CHECK_FALSE(figure.y_log);
  const FigurePoint& last = figure.series[1].points.at(1);
  CHECK(last.x == 20);
  CHECK(last.mean.value() == doctest::Approx(1.0 / 20 + 0.5));  // of seeds 0 and 1
  CHECK_FALSE(last.seeds.at(2).has_value());
  CHECK(figure.caption ==
        "Fig. 2c. Mean of 3 seeds, 95 % Student-t band; thin lines: single seeds. Cells left out: 1 failed.");
}

TEST_CASE("metrics that do not apply give no line, and the Bayes floor is drawn once") {
  const Figure figure = built(R"({"id": "f", "x": "data.train_samples",
                                  "y": ["effective_experts", "test_nmse_top1", "bayes_nmse"], "series": "arm"})");
  REQUIRE(figure.series.size() == 4);
  CHECK(figure.series[0].name == "learned, router");
  CHECK(figure.series[1].name == "learned, test, top-1");
  CHECK(figure.series[2].name == "dense, test, top-1");
  CHECK(figure.series[3].name == "Bayes floor");
  CHECK(figure.series[3].reference);
  CHECK(figure.series[3].points.size() == 2);
}

TEST_CASE("a floor far below a logarithmic axis is told in the caption") {
  const auto floor_at = [](double share, const char* scale) {
    RunResults results = example();
    for (ResultRow& row : results.table.rows) {
      if (row.state == "done") row.metrics["bayes_nmse"] = share * 0.55;  // of the least mean, at n = 20
    }
    return build_figure({{"id", "f"},
                         {"x", "data.train_samples"},
                         {"y", {"test_nmse_top1", "bayes_nmse"}},
                         {"y_scale", scale}},
                        results);
  };
  CHECK(floor_at(0.012, "log").series.size() == 3);
  CHECK(floor_at(0.008, "linear").series.size() == 3);
  const Figure below = floor_at(0.008, "log");
  CHECK(below.series.size() == 2);
  CHECK(below.caption.ends_with(" Bayes floor: 0.004, below the figure."));
}

TEST_CASE("steps come from the trace; a swept path may be the series; `where` and `arms` choose") {
  const Figure steps =
      built(R"({"id": "f", "x": "step", "y": "test_nmse_top1", "series": "data.train_samples",
                                 "arms": ["learned"]})");
  REQUIRE(steps.series.size() == 2);
  CHECK(steps.series[1].name == "samples = 20");
  REQUIRE(steps.series[1].points.size() == 2);
  CHECK(steps.series[1].points[1].x == 5);
  CHECK(steps.series[1].points[1].mean.value() == doctest::Approx(1.0 / 20 + 1));
  const Figure chosen = built(R"({"id": "f", "x": "step", "y": "test_nmse_top1", "series": "arm",
                                  "where": {"data.train_samples": 10}})");
  REQUIRE(chosen.series.size() == 2);
  CHECK(chosen.series[0].points[1].mean.value() == doctest::Approx(1.0 / 10 + 1));
}

}  // namespace moelab::figures_test
