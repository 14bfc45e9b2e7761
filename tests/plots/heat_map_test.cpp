#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plots/painters/gnuplot.h"
#include "tests/temporary_folder.h"

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
  const TemporaryFolder folder;
  CHECK(render(drawing_of(example()), folder.path()).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "map.svg").rdbuf();
  for (const char* text :
       {"normal", "other", "Share of 3 seeds.", "0.75", ">16<", ">2<", "Where it's found"}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  for (const char* ending : {"pdf", "png"})
    CHECK(fs::file_size(folder.path() / (std::string("map.") + ending)) > 1000);
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
  CHECK(gnuplot_script(map).find("±") != std::string::npos);
  for (std::size_t i = 0; i < 5; ++i) map.panels[0].intervals[i]->first = *map.panels[0].values[i] - 0.1;
  CHECK(gnuplot_script(map).find("'±'.") == std::string::npos);
}

/// What gnuplot writes, as SVG.
std::string drawn(const HeatMap& map) {
  const TemporaryFolder folder;
  render(drawing_of(map), folder.path());
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "map.svg").rdbuf();
  return svg.str();
}

TEST_CASE("numbers of cells: as many digits as needed, whole from there on, half of their intervals") {
  HeatMap map = example();
  const auto texts = [&](const HeatMapPanel& panel) {
    map.panels = {panel};
    map.y_names.resize(1);
    map.x_names.assign(panel.values.size(), "0");
    std::vector<std::string> found;
    for (const std::vector<CellText>& cells : HeatMapLayout(map).cells)
      for (const CellText& cell : cells)
        for (const std::string& text : {cell.number, cell.interval})
          if (!text.empty()) found.push_back(text);
    return found;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts({"", {400.4, 99.4, 99.6, 9999.4, 12345, -123.4, 0.12345, std::nullopt}}) ==
        Texts{"400", "99", "100", "9999", "1.2e+04", "−123", "0.12"});
  CHECK(texts({"", {400, 0.5}, {{{388, 412}}, {{0.38, 0.62}}}}) == Texts{"400", "±12", "0.50", "±0.1"});
  CHECK(texts({"", {100, 200, std::nullopt}, {}, {false, true, false}}) == Texts{"100", ">200"});
  CHECK(texts({"", {0.5, 400, std::nullopt}, {{{0.12, 0.88}}, {{250.4, 640}}, std::nullopt}}) ==
        Texts{"0.50", "0.12–0.88", "400", "250–640"});
  CHECK(texts({"", std::vector<std::optional<double>>(16, 0.5)}).empty());  // no room
  map.low = 100.04;
  map.high = 101;
  CHECK(texts({"", {100.04, 100.5, 101}}) == Texts{"100.04", "100.50", "101.00"});
}

TEST_CASE("intervals that are not symmetric stand below the numbers from end to end, where there is room") {
  HeatMap map = example();
  map.panels = {{"normal", {1.0, 2.0, 3.0, 4.0, 5.0, std::nullopt}, {}}};
  map.high = 5;
  CHECK_FALSE(HeatMapLayout(map).has_intervals);
  map.panels[0].intervals.resize(6);
  CHECK_FALSE(HeatMapLayout(map).has_intervals);
  map.panels[0].intervals[1] = {1.6, 2.7};
  CHECK(HeatMapLayout(map).has_intervals);
  CHECK(drawn(map).find(">1.6–2.7<") != std::string::npos);
  map.panels[0].values[1] = 2.15;
  CHECK(drawn(map).find(">±0.6<") != std::string::npos);
  map.panels[0].values[1] = 2;
  for (int i = 0; i < 6; ++i) map.x_names.push_back("more");
  map.panels[0].values.resize(18);
  map.panels[0].intervals.resize(18);
  map.panels[0].intervals[1] = {0.0016, 0.0027};
  CHECK_FALSE(HeatMapLayout(map).has_intervals);
}

TEST_CASE("a censored number has its sign before it, and a column; numbers below 10000 have no exponents") {
  HeatMap map = example();
  map.panels = {{"normal", {1.0, 99.7, 200.0, 1234.0, 0.126, 56789.0}}};
  map.high = 5000;
  CHECK(heat_map_csv(map).starts_with("panel,x,y,value\n"));
  map.panels[0].censored = {false, false, true, false, false, false};
  CHECK(heat_map_csv(map).starts_with("panel,x,y,value,censored\n\"normal\",\"0.5\",\"8\",1,0\n"));
  CHECK(heat_map_csv(map).find(",200,1\n") != std::string::npos);
  const std::string svg = drawn(map);
  for (const char* text : {">1<", ">100<", ">>200<", ">1234<", ">0.13<", ">5.7e+04<"}) {
    CAPTURE(text);
    CHECK(svg.find(text) != std::string::npos);
  }
  map.panels[0].intervals.resize(6);
  CHECK(heat_map_csv(map).find(",200,,,1\n") != std::string::npos);
  CHECK(drawn(map).find(">>200<") != std::string::npos);
}

TEST_CASE("values that lie close together: ticks between them, and as many digits as tell them apart") {
  HeatMap map = example();
  map.panels = {{"normal", {0.939, 0.9412, 0.9437, 0.946, 0.95, 0.952}}};
  map.low = 0.939;
  map.high = 0.952;
  const std::string svg = drawn(map);
  for (const char* text : {">0.939<", ">0.941<", ">0.944<", ">0.942<", ">0.948<"}) {
    CAPTURE(text);
    CHECK(svg.find(text) != std::string::npos);
  }
  map.panels[0].values.assign(6, 0.939);
  map.high = map.low;
  const std::string script = gnuplot_script(map);
  CHECK(script.find("set cbtics scale 0.4 ('0.939' 0.939)") != std::string::npos);
  CHECK(script.find("set cbrange [0.8451:1.0329]") != std::string::npos);
}

TEST_CASE("few rows are higher, so that the label of the scale is whole") {
  HeatMap map = example();
  map.panels.resize(1);
  map.value_label = "maximal violation of the balance of load, softmax gates";
  map.y_names.resize(1);
  map.panels[0].values.resize(3);
  CHECK(gnuplot_script(map).find("…") == std::string::npos);
}

TEST_CASE("a compact map has its panels side by side, and no numbers; every name that has room") {
  const TemporaryFolder folder;
  HeatMap map = example();
  map.compact = true;
  CHECK(render(drawing_of(map), folder.path()).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "map.svg").rdbuf();
  for (const char* text : {"normal", "other", "Share of 3 seeds.", ">c<", ">E<"}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  CHECK(svg.str().find(">0.75<") == std::string::npos);
}

}  // namespace
TEST_CASE("the cells of a compact map are sharp in its SVG: boxes, or a picture that says so") {
  const auto svg_of = [](std::size_t cells) {
    HeatMap map = example();
    map.compact = true;
    map.panels.resize(1);
    map.x_names.resize(cells, "0");
    map.y_names.resize(cells, "0");
    map.panels[0].values.assign(cells * cells, 0.5);
    const TemporaryFolder folder;
    render(drawing_of(map), folder.path());
    std::ostringstream svg;
    svg << std::ifstream(folder.path() / "map.svg").rdbuf();
    return svg.str();
  };
  CHECK(svg_of(6).find("<image") == std::string::npos);
  const std::string large = svg_of(60);
  CHECK(large.find("<image style='image-rendering:pixelated' ") != std::string::npos);
  CHECK(large.find("<image x") == std::string::npos);
}

TEST_CASE("the labels of a compact map leave no gap below its title") {
  HeatMap map = example();
  map.compact = true;
  map.y_label = "cluster, by its expert";
  map.panels.resize(4, map.panels[1]);
  const std::string script = gnuplot_script(map);
  const auto share = [&](const std::string& before) {
    const std::size_t at = script.find(before);
    REQUIRE(at != std::string::npos);
    return std::stod(script.substr(script.find(", screen ", at) + 9));
  };
  std::size_t at = script.find("size ");
  at = script.find(',', at) + 1;
  const double height = std::stod(script.substr(at)) * 72 / 96;
  CHECK((share("set label \"Where it's found\"") - share("set label 'normal'")) * height < 32);
}

}  // namespace moelab::heat_map_test
