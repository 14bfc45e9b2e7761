#include "plots/kinds/lines.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/plots/kinds/built_figure.h"

namespace moelab::lines_test {
namespace {

/// Arms learned and dense at n = 10, 20 with three seeds; dense has no `effective_experts`, and its last cell
/// failed.
RunResults example() {
  RunResults results;
  set_head(results, {{"title", "Sparsity"}, {"source", "Fig. 2c"}, {"figures", Json::array()}});
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
  const RunResults results = example();
  return built_figure<Figure>(Json::parse(description), results);
}

}  // namespace

TEST_CASE(
    "several metrics: what they share ends at words and commas; names that mean something beside them") {
  RunResults results = example();
  for (ResultRow& row : results.table.rows)
    if (row.state == "done") {
      row.metrics["effective_experts"] = 2;
      row.metrics["effective_experts_shuffled"] = 3;
      row.metrics["parameter_count"] = 100;
    }
  const auto of = [&](const char* y) {
    Json figure = {{"id", "f"}, {"x", "data.train_samples"}};
    figure["y"] = Json::parse(y);
    return built_figure<Figure>(figure, results);
  };
  const Figure shared = of(R"(["effective_experts", "effective_experts_shuffled"])");
  CHECK(shared.y_label == "effective experts per cluster");
  CHECK(shared.panels[0].series[0].name == "learned, router");
  const Figure other = of(R"(["effective_experts", "parameter_count"])");
  CHECK(other.y_label.empty());  // the legend names the metrics
  CHECK(other.panels[0].series[0].name == "learned, effective experts per cluster");
}

TEST_CASE("medians of so few seeds that none has an interval: the caption tells none") {
  const std::string none = "median, too few seeds for an interval";
  RunResults results = example();
  for (ResultRow& row : results.table.rows)
    if (row.state == "done") row.metrics = {{"steps_to_target.a", 10.0 + row.seed}};
  const Json figure = {{"id", "f"}, {"x", "data.train_samples"}, {"y", "steps_to_target.a"}};
  CHECK(built_figure<Figure>(figure, results).caption.find(none) != std::string::npos);
  const std::string mean = built(R"({"id": "f", "x": "data.train_samples", "y": "test_nmse_top1"})").caption;
  CHECK(mean.find("geometric mean, 95 % interval of logarithms") != std::string::npos);
}

TEST_CASE("one line for each arm, gaps where a cell failed, everything named") {
  const Figure figure =
      built(R"({"id": "f", "x": "data.train_samples", "y": "test_nmse_top1", "series": "arm",
                                  "x_scale": "log", "y_scale": "linear"})");
  REQUIRE(figure.panels[0].series.size() == 2);
  CHECK(figure.panels[0].series[0].name == "learned");
  CHECK(figure.x_label == "training samples");
  CHECK(figure.y_label == "test loss ÷ label variance (top-1)");
  CHECK(figure.title == "Sparsity");
  CHECK(figure.x_log);
  CHECK_FALSE(figure.y_log);
  const FigurePoint& last = figure.panels[0].series[1].points.at(1);
  CHECK(last.x == 20);
  // The metric is declared positive: the geometric mean of seeds 0 and 1.
  CHECK(last.mean.value() == doctest::Approx(std::sqrt(0.05 * 1.05)));
  CHECK(last.low.value() > 0);
  CHECK_FALSE(last.seeds.at(2).has_value());
  CHECK(figure.caption ==
        "Fig. 2c. 3 seeds: geometric mean, 95 % interval of logarithms; thin lines: single seeds. Cells left "
        "out: 1 "
        "failed. Outside the axis: dense reaches 5.8e+07; learned reaches 65.");
}

TEST_CASE("metrics that do not apply give no line, and the Bayes floor is drawn once") {
  const Figure figure = built(R"({"id": "f", "x": "data.train_samples",
                                  "y": ["effective_experts", "test_nmse_top1", "bayes_nmse"], "series": "arm"})");
  REQUIRE(figure.panels[0].series.size() == 4);
  CHECK(figure.panels[0].series[0].name == "learned, effective experts per cluster");
  CHECK(figure.panels[0].series[1].name == "learned, test loss ÷ label variance (top-1)");
  CHECK(figure.panels[0].series[2].name == "dense, test loss ÷ label variance (top-1)");
  CHECK(figure.panels[0].series[3].name == "Bayes floor");
  CHECK(figure.panels[0].series[3].look == SeriesLook::reference);
  CHECK(figure.panels[0].series[3].points.size() == 2);
}

TEST_CASE("a floor far below a logarithmic axis is told in the caption") {
  const auto floor_at = [](double share, const char* scale) {
    RunResults results = example();
    for (ResultRow& row : results.table.rows) {
      if (row.state == "done")
        row.metrics["bayes_nmse"] = share * std::sqrt(0.05 * 1.05);  // of the least mean, dense at n = 20
    }
    return built_figure<Figure>({{"id", "f"},
                                 {"x", "data.train_samples"},
                                 {"y", {"test_nmse_top1", "bayes_nmse"}},
                                 {"y_scale", scale}},
                                results);
  };
  CHECK(floor_at(0.012, "log").panels[0].series.size() == 3);
  CHECK(floor_at(0.008, "linear").panels[0].series.size() == 3);
  const Figure below = floor_at(0.008, "log");
  CHECK(below.panels[0].series.size() == 2);
  CHECK(below.caption.find(" Bayes floor: 0.002, below the figure.") != std::string::npos);
}

TEST_CASE("a line that a logarithmic axis cannot show is named in the caption") {
  RunResults results = example();
  for (ResultRow& row : results.table.rows) row.metrics["dead_experts"] = row.arm == "dense" ? 0 : 0.25;
  const std::string description =
      R"({"id": "f", "x": "data.train_samples", "y": "dead_experts", "y_scale": )";
  const auto caption_on = [&](const char* scale) {
    return built_figure<Figure>(Json::parse(description + scale + "}"), results).caption;
  };
  CHECK(caption_on("\"log\"").find("Not above 0, left out on the logarithmic axis: dense.") !=
        std::string::npos);
  CHECK(caption_on("\"linear\"").find("logarithmic axis") == std::string::npos);
}

TEST_CASE("steps come from the trace; a swept path may be the series; `where` and `arms` choose") {
  const Figure steps =
      built(R"({"id": "f", "x": "step", "y": "test_nmse_top1", "series": "data.train_samples",
                                 "arms": ["learned"]})");
  REQUIRE(steps.panels[0].series.size() == 2);
  CHECK(steps.panels[0].series[1].name == "samples = 20");
  REQUIRE(steps.panels[0].series[1].points.size() == 2);
  CHECK(steps.panels[0].series[1].points[1].x == 5);
  CHECK(steps.panels[0].series[1].points[1].mean.value() ==
        doctest::Approx(std::cbrt(1.0 / 20 * (1 + 1.0 / 20) * (2 + 1.0 / 20))));
  const Figure chosen = built(R"({"id": "f", "x": "step", "y": "test_nmse_top1", "series": "arm",
                                  "where": {"data.train_samples": 10}})");
  REQUIRE(chosen.panels[0].series.size() == 2);
  CHECK(chosen.panels[0].series[0].points[1].mean.value() ==
        doctest::Approx(std::cbrt(1.0 / 10 * (1 + 1.0 / 10) * (2 + 1.0 / 10))));
}

namespace {

/// One arm and a second swept path. Some seeds did not reach the target.
RunResults censored_example() {
  RunResults results;
  set_head(results,
           {{"title", "Steps"},
            {"scenario", {{"labels", {{"base", "the base"}, {"model.experts=4", "four experts"}}}}}});
  results.table.arms = {"base"};
  results.table.sweep_paths = {"model.experts", "data.n"};
  for (const int experts : {2, 4})
    for (const int n : {1, 2})
      for (int seed = 0; seed < 3; ++seed) {
        MetricValues metrics = {{"steps_to_target_censored", 1}};
        if (seed < n) metrics = {{"steps_to_target_censored", 0}, {"steps_to_target", 10.0 * (seed + 1)}};
        results.table.rows.push_back(
            {"", "base", seed, {{"model.experts", experts}, {"data.n", n}}, "done", metrics, {{100, {}}}});
      }
  return results;
}

}  // namespace

TEST_CASE("a second swept path makes panels; names come from the labels") {
  const RunResults results = censored_example();
  const Figure figure =
      built_figure<Figure>(Json::parse(R"({"id": "f", "x": "data.n", "y": "steps_to_target"})"), results);
  REQUIRE(figure.panels.size() == 2);
  CHECK(figure.panels[0].name == "experts = 2");
  CHECK(figure.panels[1].name == "four experts");
  CHECK(figure.panels[0].series.at(0).name == "the base");
}

TEST_CASE("x may be a metric: points stand at its means over seeds, whatever was swept") {
  const Figure figure =
      built(R"({"id": "f", "x": "effective_experts", "y": "test_nmse_top1", "arms": ["learned"]})");
  REQUIRE(figure.panels.size() == 1);
  REQUIRE(figure.panels[0].series.size() == 1);
  const std::vector<FigurePoint>& points = figure.panels[0].series[0].points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].x == doctest::Approx(std::cbrt(10.0 * 11 * 12)));
  CHECK(points[1].x == doctest::Approx(std::cbrt(20.0 * 21 * 22)));
  CHECK(points[0].seeds.size() == 3);
  CHECK(figure.panels[0].series[0].look == SeriesLook::marks);  // no line joins them
  CHECK(figure.caption.find("effective experts per cluster: means over seeds.") != std::string::npos);

  // Points with the same mean stay points of their own.
  RunResults results = example();
  for (ResultRow& row : results.table.rows)
    if (row.arm == "learned") row.metrics["effective_experts"] = 3;
  const Figure same = built_figure<Figure>(
      Json::parse(R"({"id": "f", "x": "effective_experts", "y": "test_nmse_top1", "arms": ["learned"]})"),
      results);
  REQUIRE(same.panels[0].series[0].points.size() == 2);
  CHECK(same.panels[0].series[0].points[0].mean != same.panels[0].series[0].points[1].mean);

  const Figure scaled = built(
      R"({"id": "f", "x": "effective_experts / data.train_samples", "y": "test_nmse_top1", "arms": ["learned"]})");
  CHECK(scaled.panels[0].series[0].points.at(0).x == doctest::Approx(std::cbrt(20.0 * 21 * 22) / 20));
}

TEST_CASE("censored steps: medians, open where a seed is censored, counted in the caption") {
  const RunResults results = censored_example();
  const Figure figure = built_figure<Figure>(
      Json::parse(R"({"id": "f", "x": "data.n", "y": "steps_to_target", "where": {"model.experts": 2}})"),
      results);
  const std::vector<FigurePoint>& points = figure.panels.at(0).series.at(0).points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].mean == 100);  // the median seed did not reach it: the last step stands for it
  CHECK(points[0].censored);
  CHECK(points[1].mean == 20);
  CHECK_FALSE(points[1].censored);
  CHECK(figure.caption.find(" 3 of 6 seeds had not reached the target") != std::string::npos);
}

TEST_CASE("a metric of an evaluation is averaged as the metric is, whatever the evaluation's name") {
  RunResults results = example();
  for (ResultRow& row : results.table.rows) {
    if (!row.metrics.empty()) row.metrics["attacked.test_nmse_top1"] = row.metrics.at("test_nmse_top1");
  }
  const Json description =
      Json::parse(R"({"id": "f", "x": "data.train_samples", "y": "attacked.test_nmse_top1"})");
  const Figure figure = built_figure<Figure>(description, results);
  CHECK(figure.caption.find("geometric mean") != std::string::npos);
  CHECK(figure.caption.find("median") == std::string::npos);
  CHECK(figure.panels[0].series[1].points.at(1).mean.value() == doctest::Approx(std::sqrt(0.05 * 1.05)));
}

TEST_CASE("x may be an expression of swept paths: paths that it settles make no panels") {
  RunResults results;
  set_head(results, {{"title", "Ratio"}});
  results.table.arms = {"base"};
  results.table.sweep_paths = {"model.experts", "data.clusters"};
  for (const int experts : {4, 8})
    results.table.rows.push_back({"",
                                  "base",
                                  0,
                                  {{"model.experts", experts}, {"data.clusters", 8}},
                                  "done",
                                  {{"train_loss", 1.0 / experts}},
                                  {}});
  const Figure figure = built_figure<Figure>(
      Json::parse(R"({"id": "f", "x": "model.experts / data.clusters", "y": "model.experts * train_loss"})"),
      results);
  REQUIRE(figure.panels.size() == 1);
  const std::vector<FigurePoint>& points = figure.panels[0].series.at(0).points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].x == 0.5);
  CHECK(points[1].x == 1);
  CHECK(points[1].mean.value() == doctest::Approx(1));
  CHECK(figure.x_label == "experts ÷ clusters");
  CHECK(figure.caption.find("One seed") == 0);
}

}  // namespace moelab::lines_test
