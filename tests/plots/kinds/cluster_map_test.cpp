#include <doctest/doctest.h>

#include <fstream>

#include "app/report/ledger.h"
#include "app/run/figures.h"
#include "app/store/store.h"
#include "sim/base/error.h"
#include "sim/data/npy.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"
#include "tests/temporary_folder.h"

namespace moelab::cluster_map_test {
namespace {

template <class Value>
void save(const std::filesystem::path& folder, const std::string& name,
          const std::vector<std::int64_t>& shape, const std::vector<Value>& values,
          const std::string& cell = "cell") {
  const std::filesystem::path file = array_file(folder, cell, name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << npy_bytes(shape, std::span<const Value>(values));
}

RunResults one_cell() {
  RunResults results;
  set_head(results, {{"title", "Routing"}, {"source", "Fig. 5"}});
  results.table.arms = {"a", "b"};
  results.table.rows.push_back({"cell", "a", 0, {}, "done", {}, {}});
  return results;
}

/// And one of arm b.
RunResults two_cells() {
  RunResults results = one_cell();
  results.table.rows.push_back({"other", "b", 0, {}, "done", {}, {}});
  return results;
}

}  // namespace

TEST_CASE("cluster maps: means over each cluster's rows, clusters in the order of their experts") {
  const TemporaryFolder folder;
  // Clusters 7 (rows 0 and 2), 4 (row 1) and 9 (row 3) go to experts 2, 1 and 0.
  save<std::int64_t>(folder.path(), "test_labels", {4}, {7, 4, 7, 9});
  save<double>(folder.path(), "test_probs", {4, 3}, {0, .2, .8, .1, .9, 0, 0, .4, .6, 1, 0, 0});
  save<double>(folder.path(), "test_inputs", {4, 2}, {0, 2, -3, 0, 0, 4, 5, 0});
  save<double>(folder.path(), "router_weight", {3, 2}, {2, 0, -1, 0, 1, 1});
  const RunResults results = one_cell();
  const HeatMap map = built_figure<HeatMap>({{"kind", "cluster_map"}, {"id", "m"}}, results, folder.path());
  REQUIRE(map.panels.size() == 1);
  const std::vector<double> routing = {1, 0, 0, .1, .9, 0, 0, .3, .7};
  REQUIRE(map.panels[0].values.size() == routing.size());
  for (std::size_t i = 0; i < routing.size(); ++i)
    CHECK(map.panels[0].values[i].value() == doctest::Approx(routing[i]));
  CHECK(map.compact);
  CHECK(map.caption.find("Panels left out, no cell done: 1.") != std::string::npos);

  const HeatMap rows = built_figure<HeatMap>({{"kind", "cluster_map"}, {"id", "m"}, {"value", "router_rows"}},
                                             results, folder.path());
  const double diagonal = std::sqrt(0.5);
  const std::vector<double> cosines = {1, -1, diagonal, -1, 1, -diagonal, 0, 0, diagonal};
  for (std::size_t i = 0; i < cosines.size(); ++i)
    CHECK(rows.panels[0].values[i].value() == doctest::Approx(cosines[i]));
  CHECK(rows.low == -1);
}

TEST_CASE(
    "cluster maps: a cluster opens its rows, and the page has the recorded steps where they were saved") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "test_labels", {3}, {7, 4, 7});
  save<double>(folder.path(), "test_probs", {3, 2}, {0, 1, 1, 0, 0, 1});
  const RunResults results = one_cell();
  const HeatMap map = built_figure<HeatMap>({{"kind", "cluster_map"}, {"id", "m"}}, results, folder.path());
  // Cluster 4 stands first: expert 0 serves it.
  REQUIRE(map.panels.at(0).row_notes.size() == 2);
  CHECK(map.panels[0].row_notes[0] == "cluster 4: 1 test rows\nrow 1: expert 0 (1)");
  CHECK(map.panels[0].row_notes[1] == "cluster 7: 2 test rows\nrow 0: expert 1 (1)\nrow 2: expert 1 (1)");
  CHECK(map.panels[0].frames.empty());

  save<std::int64_t>(folder.path(), "recorded_steps", {2}, {0, 50});
  // Of cluster 7, then of 4, as the rows show them.
  save<double>(folder.path(), "cluster_routing_steps", {2, 2, 2}, {.4, .6, .5, .5, 0, 1, 1, 0});
  const HeatMap moving =
      built_figure<HeatMap>({{"kind", "cluster_map"}, {"id", "m"}}, results, folder.path());
  CHECK(moving.panels.at(0).frame_names == std::vector<std::string>{"step 0", "step 50"});
  REQUIRE(moving.panels[0].frames.size() == 2);
  CHECK(moving.panels[0].frames[0] == std::vector<double>{.5, .5, .4, .6});
  CHECK(moving.panels[0].frames[1] == std::vector<double>{1, 0, 0, 1});
  for (const char* step : {"{\"name\":\"step 0\",\"values\":", "{\"name\":\"step 50\",\"values\":"})
    CHECK(drawing_of(moving).html.find(step) != std::string::npos);
}

TEST_CASE("cluster maps of a stack: the last layer, or the chosen one, and the caption names it") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "test_labels", {2}, {0, 1});
  save<double>(folder.path(), "test_probs_layer0", {2, 2}, {1, 0, 1, 0});
  save<double>(folder.path(), "test_probs_layer1", {2, 2}, {0, 1, 1, 0});
  const RunResults results = one_cell();
  Json figure = {{"kind", "cluster_map"}, {"id", "m"}};
  const HeatMap last = built_figure<HeatMap>(figure, results, folder.path());
  CHECK(last.panels.at(0).values == std::vector<std::optional<double>>{1, 0, 0, 1});
  CHECK(last.caption.find("test rows of each cluster in layer 1, first seed;") != std::string::npos);
  figure["layer"] = 0;
  const HeatMap first = built_figure<HeatMap>(figure, results, folder.path());
  CHECK(first.panels.at(0).values == std::vector<std::optional<double>>{1, 0, 1, 0});
  CHECK(first.caption.find("test rows of each cluster in layer 0, first seed;") != std::string::npos);
}

TEST_CASE("load maps: shares over the recorded steps, dead experts without one") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "recorded_steps", {2}, {0, 50});
  save<double>(folder.path(), "expert_load_steps", {2, 2}, {.5, .5, .96, .04});
  const RunResults results = one_cell();
  const Json figure = {{"id", "load"}, {"kind", "load_map"}};
  const Drawing drawing = drawing_of(built_figure<HeatMap>(figure, results, folder.path()));
  CHECK(drawing.csv ==
        "panel,x,y,value\n\"a\",\"0\",\"0\",0.5\n\"a\",\"50\",\"0\",0.96\n\"a\",\"0\",\"1\",0.5\n"
        "\"a\",\"50\",\"1\",\n");
  CHECK(drawing.caption.find("Panels left out, no cell done: 1.") != std::string::npos);
}

TEST_CASE("maps say which sweep point they show where `where` leaves several") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "recorded_steps", {2}, {0, 50});
  save<double>(folder.path(), "expert_load_steps", {2, 2}, {.5, .5, .96, .04});
  save<std::int64_t>(folder.path(), "test_labels", {3}, {7, 4, 7});
  save<double>(folder.path(), "test_probs", {3, 2}, {0, 1, 1, 0, 0, 1});
  RunResults results = one_cell();
  results.table.arms = {"a"};
  results.table.sweep_paths = {"data.train_samples"};
  results.table.rows = {{"other", "a", 0, {{"data.train_samples", 10}}, "done", {}, {}},
                        {"cell", "a", 0, {{"data.train_samples", 20}}, "done", {}, {}}};
  for (const char* kind : {"cluster_map", "load_map"}) {
    CAPTURE(kind);
    Json figure = {{"id", "m"}, {"kind", kind}};
    const auto caption = [&] {
      return drawing_of(built_figure<HeatMap>(figure, results, folder.path())).caption;
    };
    CHECK(caption().find(" Shown: samples = 20.") != std::string::npos);
    figure["where"] = {{"data.train_samples", 20}};
    CHECK(caption().find("Shown:") == std::string::npos);
  }
}

TEST_CASE(
    "cluster maps: arms with other numbers of clusters and experts have what they have, the rest grey") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "test_labels", {3}, {0, 1, 2});
  save<double>(folder.path(), "test_probs", {3, 2}, {1, 0, 0, 1, 0, 1});
  save<std::int64_t>(folder.path(), "test_labels", {2}, {0, 1}, "other");
  save<double>(folder.path(), "test_probs", {2, 3}, {1, 0, 0, 0, 0, 1}, "other");
  save<std::int64_t>(folder.path(), "recorded_steps", {2}, {0, 50}, "other");
  save<double>(folder.path(), "cluster_routing_steps", {2, 2, 3}, {0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1},
               "other");
  const RunResults results = two_cells();
  const HeatMap map = built_figure<HeatMap>({{"kind", "cluster_map"}, {"id", "m"}}, results, folder.path());
  REQUIRE(map.panels.size() == 2);
  CHECK(map.x_names == std::vector<std::string>{"0", "1", "2"});
  CHECK(map.y_names == std::vector<std::string>{"0", "1", "2"});
  const std::optional<double> none;
  CHECK(map.panels[0].values == std::vector<std::optional<double>>{1, 0, none, 0, 1, none, 0, 1, none});
  CHECK(map.panels[1].values == std::vector<std::optional<double>>{1, 0, 0, 0, 0, 1, none, none, none});
  CHECK(map.panels[0].frame_names.empty());
  REQUIRE(map.panels[1].frames.size() == 2);
  CHECK(map.panels[1].frames[0][2] == 1);
  CHECK(std::isnan(map.panels[1].frames[0][6]));
  CHECK(map.caption.find("Grey: what a panel does not have") != std::string::npos);
  CHECK(drawing_of(map).html.find("null") != std::string::npos);
}

TEST_CASE("load maps: arms with other recorded steps and experts") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "recorded_steps", {3}, {0, 50, 100});
  save<double>(folder.path(), "expert_load_steps", {3, 2}, {.5, .5, .6, .4, .96, .04});
  save<std::int64_t>(folder.path(), "recorded_steps", {3}, {0, 40, 80}, "other");
  save<double>(folder.path(), "expert_load_steps", {3, 1}, {1, 1, 1}, "other");
  const RunResults results = two_cells();
  const HeatMap map = built_figure<HeatMap>({{"kind", "load_map"}, {"id", "m"}}, results, folder.path());
  REQUIRE(map.panels.size() == 2);
  CHECK(map.x_names == std::vector<std::string>{"0", "40", "50", "80", "100"});
  const std::optional<double> none;
  CHECK(map.panels[0].values ==
        std::vector<std::optional<double>>{.5, .5, .6, .6, .96, .5, .5, .4, .4, none});
  CHECK(map.panels[1].values ==
        std::vector<std::optional<double>>{1, 1, 1, 1, none, none, none, none, none, none});
  CHECK(map.caption.find("or not there") != std::string::npos);
}

TEST_CASE("figures that the arrays cannot be shown by are left out with a sentence, the others are drawn") {
  const TemporaryFolder folder;
  save<std::int64_t>(folder.path(), "test_labels", {2, 2}, {0, 1, 2, 3});
  save<double>(folder.path(), "test_probs", {2, 2}, {0, 1, 1, 0});
  save<double>(folder.path(), "test_inputs", {2, 1}, {0, 1});
  save<std::int64_t>(folder.path(), "recorded_steps", {2}, {0, 50});
  save<double>(folder.path(), "expert_load_steps", {2, 2}, {.5, .5, .96, .04});
  RunResults results = one_cell();
  set_head(results, {{"claims", Json::array()}});
  set_head(results, {{"figures", Json::parse(R"([
    {"id": "labels", "kind": "cluster_map", "value": "routing"}, {"id": "plane", "kind": "embedding"},
    {"id": "load", "kind": "load_map"}])")}});
  const FigureSource source = figure_source(results, folder.path());
  CHECK(drawn_figure(results.head.figures[0], source).failure.find("4 labels for 2 rows") !=
        std::string::npos);
  CHECK(drawn_figure(results.head.figures[1], source).failure.find("figures.plane") == 0);
  CHECK(drawn_figure(results.head.figures[2], source).drawing.has_value());
  ReportedRun run;
  add_figures(results, folder.path(), run);
  REQUIRE(run.figures.size() == 3);
  CHECK(run.drawn.size() == 1);
  Report report;
  report.runs.push_back(run);
  CHECK(report_html(report).find("Not drawn: figures.labels: arm") != std::string::npos);
}

TEST_CASE("figures of arrays: what models and data cannot give is refused") {
  const auto refused = [](const char* figure, const char* pointer, const char* value, const std::string& path,
                          const std::string& message) {
    Json document = tiny();
    document["arms"] = {{"learned", Json::object()}};
    document["save"] = {"routing", "weights"};
    document["figures"] = Json::array({Json::parse(figure)});
    expand_scenario(document, "", {});
    document[Json::json_pointer(pointer)] = Json::parse(value);
    CAPTURE(figure);
    check_refused(document, "", {}, path, message);
  };
  refused(R"({"id": "m", "kind": "cluster_map", "value": "router_rows"})", "/model/router/kind",
          "\"nearest_centroid\"", "figures[0].value", "needs a router that is linear in x");
  refused(R"({"id": "e", "kind": "embedding"})", "/data/dim", "1", "figures[0]", "one input");
  refused(R"({"id": "m", "kind": "cluster_map"})", "/data",
          R"({"generator": "dictionary", "atoms": 8, "dim": 8,
          "rank": 2, "mean_std": 1.5, "separation": 3, "noise_std": 0.5,
          "target": {"kind": "linear", "dim": 2}, "train_samples": 20, "test_samples": 30})",
          "figures[0]", "2 labels for 1 row routed; needs one label for each row");
}

TEST_CASE("cluster maps: arrays that were not saved are an error") {
  const TemporaryFolder folder;
  const RunResults results = one_cell();
  CHECK_THROWS_AS(built_figure<HeatMap>({{"kind", "cluster_map"}, {"id", "m"}}, results, folder.path()),
                  UserError);
}

}  // namespace moelab::cluster_map_test
