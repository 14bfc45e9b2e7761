#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "plots/painters/gnuplot.h"
#include "tests/temporary_folder.h"

namespace moelab::embedding_test {
namespace {

namespace fs = std::filesystem;

Embedding example() {
  Embedding embedding;
  embedding.id = "plane";
  embedding.title = "Who serves what";
  embedding.caption = "Two components.";
  embedding.label = "expert";
  embedding.panels = {{"none", {{0, 1, 3, 0}, {2, -1, 5, 1}, {0.5, 0.25, 9, -1}}},
                      {"aux", {{1, 1, 3, 2}}, {{0, 1, 0, 2, 3, 2}}, {{1, 0, 0, -1}}, {{0.5, 0.5, 3, 2}}}};
  embedding.mean_name = "mean";
  embedding.arrow_name = "row";
  embedding.x_label = "first";
  embedding.y_label = "second";
  return embedding;
}

}  // namespace

TEST_CASE("the CSV holds every point with its label and colour") {
  CHECK(embedding_csv(example()) ==
        "panel,part,x,y,expert,colour,x_high,y_high\n\"none\",point,0,1,3,0,,\n\"none\",point,2,-1,5,1,,\n"
        "\"none\",point,0.5,0.25,9,-1,,\n\"aux\",region,0,0,3,2,1,2\n\"aux\",point,1,1,3,2,,\n"
        "\"aux\",mean,1,0,0,-1,,\n\"aux\",arrow,0.5,0.5,3,2,,\n");
}

TEST_CASE("every panel takes its own rows of the CSV, all the same ranges") {
  const std::string script = gnuplot_script(example());
  CHECK(script.find("every ::1::3 ") != std::string::npos);
  for (const char* rows : {"every ::4::4 ", "every ::5::5 ", "every ::6::6 ", "every ::7::7 "})
    CHECK(script.find(rows) != std::string::npos);
  CHECK(script.find("set xrange [-0.06:2.06]") != std::string::npos);
  CHECK(script.find("set yrange [-1.06:1.06]") != std::string::npos);
}

TEST_CASE("the page shows what is drawn, or draws panels with frames itself, and others beside them") {
  Embedding embedding = example();
  CHECK(drawing_of(embedding).html.empty());
  embedding.panels[1].frames = {{"step 0", {{1, 0, 0.123456789}, {0, 1, 0}}, {1}}};
  CHECK(drawing_of(embedding).html.empty());  // one frame is what was drawn
  embedding.panels[1].frames.push_back({"step 9", {{1, 0, 0}, {0, 2, 0}}, {0}});
  embedding.colours = {0, -1};
  const std::string html = drawing_of(embedding).html;
  for (
      const char* part :
      {R"("colours":["0072B2","D0D0D0"],"grey":"D0D0D0")", R"("low":-0.06,"high":2.06)",
       R"("name":"none","points":[[0.0,1.0],[2.0,-1.0],[0.5,0.25]],"means":[],"frames":[{"name":"","scores":[],"labels":[3,5,9]}])",
       R"({"name":"step 0","scores":[[1.0,0.0,0.12346],[0.0,1.0,0.0]],"labels":[1]})",
       R"({"name":"step 9","scores":[[1.0,0.0,0.0],[0.0,2.0,0.0]],"labels":[0]})"}) {
    CAPTURE(part);
    CHECK_MESSAGE(html.find(part) != std::string::npos, html);
  }
}

TEST_CASE("no points are black, as crosses and rows are; areas are opaque, so that their edges do not show") {
  Embedding embedding = example();
  embedding.panels[0].points[0].colour = 6;
  const std::string script = gnuplot_script(embedding);
  CHECK(script.find("ps dot_size lc rgb '#8C6BB1'") != std::string::npos);
  CHECK(script.find("ps dot_size lc rgb '#000000'") == std::string::npos);
  CHECK(script.find("transparent") == std::string::npos);
  CHECK(script.find("fc rgb '#B8E4D8' fs solid 1") != std::string::npos);  // of 009E73, 28 % on white
}

TEST_CASE("labels of one colour differ in marker and area, and the legend names them in their order") {
  const int colours = static_cast<int>(kAreaColours.size());
  CHECK(area_colour(colours + 2) == area_colour(2));
  for (int place = 0; place < kMostLooks; ++place)
    for (int other = place + colours; other < kMostLooks; other += colours) {
      CHECK(area_marker(place) != area_marker(other));
      CHECK(pale_area_colour(place) != pale_area_colour(other));
    }
  Embedding embedding = example();
  embedding.panels[0].points.clear();
  for (int label = 15; label >= 0; --label)
    embedding.panels[0].points.push_back({1.0 * label, 0, label, label});
  embedding.panels.resize(1);
  const EmbeddingLayout layout(embedding);
  std::vector<std::string> names;
  std::set<std::pair<std::string, int>> samples;
  for (const PageMark& mark : layout.panels[0].marks) {
    if (mark.role != TextRole::legend) continue;
    if (mark.sample)
      samples.emplace(mark.sample->colour, mark.sample->marker);
    else
      names.push_back(mark.text);
  }
  CHECK(samples.size() == 16);
  REQUIRE(names.size() == 17);
  CHECK(names.back() == "expert");
  for (int label = 0; label < 16; ++label)
    CHECK(names[static_cast<std::size_t>(label)] == std::to_string(label));
}

TEST_CASE("gnuplot draws the panels, without complaint") {
  const TemporaryFolder folder;
  CHECK(render(drawing_of(example()), folder.path()).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "plane.svg").rdbuf();
  for (const char* text : {"none", "aux", "Two components.", "Who serves what", "expert", "3", "5",
                           "1 other expert", "mean", "row", "first", "second"}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  for (const char* ending : {"pdf", "png"})
    CHECK(fs::file_size(folder.path() / (std::string("plane.") + ending)) > 1000);
}

}  // namespace moelab::embedding_test
