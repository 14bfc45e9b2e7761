#include <doctest/doctest.h>

#include <set>

#include "app/run/figures.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::figure_kinds_test {
namespace {

/// Arms half and whole with the same three seeds; half's metric is half of whole's, except for one seed.
RunResults paired_results() {
  RunResults results;
  set_head(results, {{"title", "Halves"}, {"source", "Fig. 1"}, {"figures", Json::array()}});
  set_head(results, {{"claims", Json::parse(R"([
    {"id": "below", "op": "<", "left": {"arm": "half", "metric": "test_nmse_top1", "factor": 1},
     "right": {"arm": "whole", "metric": "test_nmse_top1", "factor": 1}, "at": "each"},
    {"id": "equal", "op": "~", "left": {"arm": "half", "metric": "test_nmse_top1", "factor": 1},
     "right": {"arm": "whole", "metric": "test_nmse_top1", "factor": 1}, "at": "each", "tolerance": 0.1}])")}});
  results.table.arms = {"half", "whole"};
  results.table.sweep_paths = {"data.n"};
  for (const std::string& arm : results.table.arms)
    for (const int n : {10, 20})
      for (int seed = 0; seed < 3; ++seed) {
        const double value = 0.1 * (1 + seed), factor = arm == "half" ? 0.5 : 1;
        results.table.rows.push_back(
            {"", arm, seed, {{"data.n", n}}, "done", {{"test_nmse_top1", factor * value}}, {}});
      }
  return results;
}

}  // namespace

TEST_CASE("figure kinds: distinct names, each with a sentence, checks and a drawing") {
  std::set<std::string> names;
  for (const FigureKind& kind : FigureAxis::table()) {
    CAPTURE(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK_FALSE(kind.help.empty());
    CHECK((kind.check != nullptr));
    CHECK((kind.build != nullptr));
    const auto figure = read_options<FigureOptions>({{"id", "f"}, {"kind", kind.name}});
    CHECK(figure.chosen() == kind.name);
    CHECK(common_of(figure).id == "f");
  }
  CHECK(read_options<FigureOptions>({{"id", "f"}}).chosen() == "lines");
  CHECK_THROWS_WITH_AS(FigureOptions::named("heatmap"), doctest::Contains("heat_map"), InvalidOption);
}

TEST_CASE("a figure without a kind is of the first one, and a field of another kind is unknown") {
  Json figure = {{"id", "f"}, {"x", "step"}, {"y", "train_loss"}};
  const Json lines = resolve(shape_of<FigureOptions>(), figure, "figures[0]");
  CHECK(lines.at("kind") == "lines");
  CHECK(lines.at("series") == "arm");
  figure["at_least"] = 1;
  CHECK_THROWS_WITH_AS(resolve_options<FigureOptions>(figure, "figures[0]"),
                       doctest::Contains("unknown key 'at_least'"), UserError);
}

TEST_CASE("the figure of a claim: paired ratios with the line that they are judged against") {
  const RunResults results = paired_results();
  const std::vector<Drawing> drawings = claim_drawings(figure_source(results, "."));
  REQUIRE(drawings.size() == 2);
  // Every pair has the ratio 1/2, so the interval has no width; 1 is what it is judged against.
  const std::string& csv = drawings[0].csv;
  const std::string start = "\"paired seeds, 95 % interval\",0,";
  const std::size_t at = csv.find(start);
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(csv.substr(at + start.size())) == doctest::Approx(0.5));
  CHECK(csv.find("\"equal sides\",-0.5,1,,") != std::string::npos);
  CHECK(drawings[0].caption.starts_with("below: reproduced. Halves. Fig. 1. "));
  CHECK(drawings[1].csv.find("\"tolerance 0.1\",-0.5,0.9,,") != std::string::npos);
  CHECK(drawings[1].csv.find("\"tolerance 0.1\",-0.5,1.1,,") != std::string::npos);
}

TEST_CASE("all claims make one forest plot, with a row for each claim and point in their order") {
  const RunResults results = paired_results();
  const Forest forest = claims_forest(figure_source(results, "."), "claims").value();
  CHECK(forest.title == "Claims: 1 reproduced, 1 refuted");
  REQUIRE(forest.panels.size() == 1);
  const ForestPanel& panel = forest.panels[0];
  CHECK(panel.is_log);
  CHECK(panel.no_effect == 1);
  REQUIRE(panel.rows.size() == 4);
  CHECK(panel.rows[0].claim == "below");
  CHECK(panel.rows[1].point == "20");
  CHECK(panel.rows[3].claim == "equal");
  CHECK(panel.rows[3].limits == std::vector<double>{0.9, 1.1});
  for (const ForestRow& row : panel.rows) CHECK(row.mean.value() == doctest::Approx(0.5));
  const ForestLayout layout(forest);
  // A line for the name of each claim, and one for each point.
  CHECK(layout.panels.at(0).own_y->high == 6);
  CHECK(layout.marks.at(0).at(0).look.marker != layout.marks[0].at(2).look.marker);
  CHECK(forest.csv.find("\"left ÷ right\",\"equal\",\"20\",0.5") != std::string::npos);
}

TEST_CASE("the figure of a claim calls arms and metrics by their labels, in its title as at its axes") {
  RunResults results = paired_results();
  const std::vector<Drawing> plain = claim_drawings(figure_source(results, "."));
  const std::string metric = "(test loss ÷ label variance (top-1))";
  CHECK(plain[1].title == "half " + metric + " ~ whole " + metric + " within 10 %");
  set_head(results,
           {{"scenario",
             {{"labels", {{"half", "one half"}, {"test_nmse_top1", "loss"}, {"data.n", "samples"}}}}}});
  const std::vector<Drawing> labelled = claim_drawings(figure_source(results, "."));
  CHECK(labelled[0].title == "one half loss < whole loss");
  CHECK(labelled[1].title == "one half loss ~ whole loss within 10 %");

  set_head(results, {{"claims", Json::parse(R"([
    {"id": "down", "op": "decreases", "arm": "half", "metric": "test_nmse_top1", "along": "data.n"},
    {"id": "at", "op": "<", "left": {"arm": "half", "metric": "test_nmse_top1", "where": {"data.n": 20}},
     "right": {"value": "0.5"}, "at": "last"}])")}});
  const std::vector<Drawing> others = claim_drawings(figure_source(results, "."));
  CHECK(others[0].title == "one half loss decreases along samples");
  CHECK(others[1].title == "one half loss at samples = 20 < 0.5");
}

}  // namespace moelab::figure_kinds_test
