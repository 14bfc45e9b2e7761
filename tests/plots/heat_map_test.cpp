#include "plots/heat_map.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace moelab::heat_map_test {
namespace {

namespace fs = std::filesystem;

HeatMap example() {
  HeatMap map;
  map.id = "map";
  map.title = "Where it's found";
  map.caption = "Share of 3 seeds.";
  map.x_label = "c";
  map.y_label = "E";
  map.x_names = {"0.5", "1", "2"};
  map.y_names = {"8", "16"};
  map.panels = {{"normal", {0.0, 0.25, std::nullopt, 0.5, 0.75, 1.0}},
                {"other", {1.0, 1.0, 1.0, 1.0, 1.0, 1.0}}};
  return map;
}

TEST_CASE("the CSV names panel, column and row of every value, rows from below") {
  const std::string csv = heat_map_csv(example());
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "panel,x,y,value");
  std::getline(lines, line);
  CHECK(line == "\"normal\",\"0.5\",\"8\",0");
  std::getline(lines, line);
  CHECK(line == "\"normal\",\"1\",\"8\",0.25");
  std::getline(lines, line);
  CHECK(line == "\"normal\",\"2\",\"8\",");
  std::getline(lines, line);
  CHECK(line == "\"normal\",\"0.5\",\"16\",0.5");
}

TEST_CASE("gnuplot draws all panels and numbers, without complaint") {
  const fs::path folder = fs::temp_directory_path() / "moelab_heat_map_test";
  fs::remove_all(folder);
  CHECK(render(drawing_of(example()), folder).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder / "map.svg").rdbuf();
  for (const char* text :
       {"normal", "other", "Share of 3 seeds.", "0.75", ">16<", ">2<", "Where it's found"}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  for (const char* ending : {"pdf", "png"})
    CHECK(fs::file_size(folder / (std::string("map.") + ending)) > 1000);
  fs::remove_all(folder);
}

TEST_CASE("intervals: columns of their own, half of them in the cells where they are symmetric") {
  HeatMap map = example();
  map.panels = {{"normal", {1.0, 2.0, 3.0, 4.0, 5.0, std::nullopt}, {}}};
  for (const std::optional<double>& value : map.panels[0].values) {
    map.panels[0].intervals.emplace_back();
    if (value) map.panels[0].intervals.back() = {*value - 0.5, *value + 0.5};
  }
  CHECK(heat_map_csv(map).starts_with("panel,x,y,value,low,high\n\"normal\",\"0.5\",\"8\",1,0.5,1.5\n"));
  CHECK(heat_map_csv(map).ends_with("\"16\",,,\n"));
  CHECK(heat_map_script(map).find("±") != std::string::npos);
  for (std::size_t i = 0; i < 5; ++i) map.panels[0].intervals[i]->first = *map.panels[0].values[i] - 0.1;
  CHECK(heat_map_script(map).find("±") == std::string::npos);
}

TEST_CASE("a compact map has its panels side by side, and no numbers; every name that has room") {
  const fs::path folder = fs::temp_directory_path() / "moelab_compact_map_test";
  fs::remove_all(folder);
  HeatMap map = example();
  map.compact = true;
  CHECK(render(drawing_of(map), folder).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder / "map.svg").rdbuf();
  for (const char* text : {"normal", "other", "Share of 3 seeds.", ">c<", ">E<"}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  CHECK(svg.str().find(">0.75<") == std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace moelab::heat_map_test
