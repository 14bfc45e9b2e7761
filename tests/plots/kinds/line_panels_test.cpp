#include <doctest/doctest.h>

#include "plots/kinds/lines.h"
#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::line_panels_test {

TEST_CASE("a line's name leaves out what the names of all metrics begin with") {
  const auto names = [](const std::vector<NamedLine>& lines) {
    const FigurePanel panel = line_panels({""}, lines).front();
    std::vector<std::string> found;
    for (const FigureSeries& series : panel.series) found.push_back(series.name);
    return found;
  };
  const auto line = [](const char* arm, const char* metric) { return NamedLine{"", arm, "", metric, {}}; };
  CHECK(names({line("plain", "test, evaluation"), line("plain", "test, evaluation, swapped")}) ==
        std::vector<std::string>{"plain", "plain, swapped"});
  CHECK(names({line("plain", "test, soft"), line("plain", "train, soft")}) ==
        std::vector<std::string>{"plain, test, soft", "plain, train, soft"});
  CHECK(names({line("", "test, soft"), line("", "test, top-1")}) ==
        std::vector<std::string>{"test, soft", "test, top-1"});
  std::vector<NamedLine> many;  // arms that stand above their panels are in no name
  for (const char* arm : {"a", "b", "c", "d", "e", "f", "g"})
    for (const char* metric : {"perplexity", "perplexity, swapped"}) many.push_back(line(arm, metric));
  CHECK(names(many) == std::vector<std::string>{"perplexity", "perplexity, swapped"});
}

TEST_CASE("more than six lines become panels") {
  RunResults results;
  set_head(results, {{"title", "Many"}});
  for (int arm = 0; arm < 8; ++arm) {
    results.table.arms.push_back("arm" + std::to_string(arm));
    results.table.rows.push_back(
        {"", results.table.arms.back(), 0, {}, "done", {{"train_loss", 1.0}}, {{0, {{"train_loss", 1.0}}}}});
  }
  const Figure figure =
      built_figure<Figure>(Json::parse(R"({"id": "f", "x": "step", "y": "train_loss"})"), results);
  REQUIRE(figure.panels.size() == 2);
  CHECK(figure.panels[0].series.size() == 4);
  CHECK(figure.panels[1].series.size() == 4);
  CHECK(figure.panels[0].name == "arm0, arm1, arm2, arm3");
  CHECK(figure.panels[0].series[0].name == "arm0");
}

TEST_CASE("panels of metrics: a panel says what its lines do not, and an arm looks alike in all") {
  RunResults results;
  set_head(results, {{"title", "Many"}});
  const MetricValues metrics = {{"train_loss", 1.0}, {"train_nmse", 2.0}};
  for (int arm = 0; arm < 4; ++arm) {
    results.table.arms.push_back("arm" + std::to_string(arm));
    results.table.rows.push_back({"", results.table.arms.back(), 0, {}, "done", metrics, {{0, metrics}}});
  }
  const Figure figure = built_figure<Figure>(
      Json::parse(R"({"id": "f", "x": "step", "y": ["train_loss", "train_nmse - train_loss"]})"), results);
  REQUIRE(figure.panels.size() == 2);
  CHECK(figure.panels[0].name == "training loss");
  CHECK(figure.panels[1].name == "(training loss ÷ label variance) − training loss");
  for (const FigurePanel& panel : figure.panels) {
    REQUIRE(panel.series.size() == 4);
    CHECK(panel.series[2].name == "arm2");
  }
  CHECK(figure.panels[1].series[0].points.at(0).mean == 1);
}

TEST_CASE("panels of metrics and swept values: the metric first, and an axis of what the metrics share") {
  RunResults results;
  set_head(results, {{"title", "Many"}});
  results.table.sweep_paths = {"model.experts"};
  const MetricValues metrics = {{"test_nmse_top1", 1.0}, {"test_nmse_soft", 2.0}, {"parameter_count", 3.0}};
  for (int arm = 0; arm < 4; ++arm) {
    results.table.arms.push_back("arm" + std::to_string(arm));
    for (const int experts : {2, 4})
      results.table.rows.push_back(
          {"", results.table.arms.back(), 0, {{"model.experts", experts}}, "done", metrics, {{0, metrics}}});
  }
  const auto of = [&](const Json& y) {
    return built_figure<Figure>({{"id", "f"}, {"x", "step"}, {"y", y}}, results);
  };
  const Figure figure = of({"test_nmse_top1", "test_nmse_soft"});
  REQUIRE(figure.panels.size() == 4);
  CHECK(figure.panels[0].name == "test loss ÷ label variance (top-1), experts = 2");
  CHECK(figure.panels[3].name == "test loss ÷ label variance (soft), experts = 4");
  CHECK(figure.y_label == "test loss ÷ label variance");
  CHECK(of({"test_nmse_top1", "parameter_count"}).y_label.empty());
}

TEST_CASE("too many panels of metrics and swept values are refused with a hint") {
  Json document = example_with("/figures/0", R"({"id": "many", "x": "step", "y": ["train_loss"]})");
  document["sweep"] = {{"data.train_samples", {640, 1280, 2560}}, {"data.noise_std", {0.5, 1, 2}}};
  document["claims"] = Json::array();
  CHECK_NOTHROW(expand_scenario(document, "", {}));
  document["figures"][0]["y"] = {"train_loss", "test_loss_soft", "test_nmse_soft"};
  document["figures"][0]["y"].push_back("train_nmse");
  check_refused(document, "", {}, "figures[0].y",
                "makes 36 panels of at most six lines over 9 values of the swept paths");
}

}  // namespace moelab::line_panels_test
