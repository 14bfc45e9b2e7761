#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plots/painters/gnuplot.h"
#include "tests/temporary_folder.h"

namespace moelab::rate_panels_test {
namespace {

namespace fs = std::filesystem;

RatePanels example() {
  RatePanels figure;
  figure.id = "rates";
  figure.title = "How it's estimated";
  figure.caption = "Means of 3 repetitions.";
  figure.x_label = "training samples";
  figure.y_label = "error";
  figure.rows = {"upper"};
  figure.columns = {"left", "right"};
  figure.references = {{-0.5, "slope −1/2"}};
  const RateLine line = {
      "2 experts",
      {{1000, 0.1, 0.09, 0.12, 0.11}, {10000, 0.03, 0.02, 0.04, 0.035}, {100000, {}, {}, {}, {}}},
      "-0.50 ± 0.02"};
  const RateLine other = {"3 experts", {{1000, 0.3, 0.2, 0.4, {}}}, "-0.25 ± 0.01"};
  figure.panels = {{line}, {line, other}};
  return figure;
}

TEST_CASE("the CSV names panel and series of every point; what is absent is empty") {
  std::istringstream lines(rate_panels_csv(example()));
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  REQUIRE(rows.size() == 8);
  CHECK(rows[0] == "row,column,series,x,mean,low,high,fitted");
  CHECK(rows[1] == "\"upper\",\"left\",\"2 experts\",1000,0.1,0.09,0.12,0.11");
  CHECK(rows[3] == "\"upper\",\"left\",\"2 experts\",100000,,,,");
  CHECK(rows[7] == "\"upper\",\"right\",\"3 experts\",1000,0.3,0.2,0.4,");
}

TEST_CASE("gnuplot draws panels, slopes and legend, without complaint") {
  const TemporaryFolder folder;
  CHECK(render(drawing_of(example()), folder.path()).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "rates.svg").rdbuf();
  for (const char* text : {"upper", "left", "right", "-0.50 ± 0.02", "-0.25 ± 0.01", "2 experts", "3 experts",
                           "slope −1/2", "How it's estimated", "Means of 3 repetitions."}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  for (const char* ending : {"pdf", "png"})
    CHECK(fs::file_size(folder.path() / (std::string("rates.") + ending)) > 1000);
}

TEST_CASE("long names of rows have two lines, and an axis within a decade its numbers") {
  RatePanels figure = example();
  figure.rows = {"exponent of the location of the first component"};
  figure.panels[0][0].points = {{200, 0.1, 0.09, 0.12, {}}, {800, 0.08, 0.07, 0.09, {}}};
  figure.panels[1] = figure.panels[0];
  const std::string script = gnuplot_script(figure);
  CHECK(script.find("…") == std::string::npos);
  CHECK(script.find("'200' 200 0") != std::string::npos);
  CHECK(script.find("'500' 500 0") != std::string::npos);
}

}  // namespace
}  // namespace moelab::rate_panels_test
