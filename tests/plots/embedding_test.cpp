#include "plots/embedding.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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
  embedding.panels = {{"none", {{0, 1, 3, 0}, {2, -1, 5, 1}, {0.5, 0.25, 9, -1}}}, {"aux", {{1, 1, 3, 2}}}};
  return embedding;
}

}  // namespace

TEST_CASE("the CSV holds every point with its label and colour") {
  CHECK(embedding_csv(example()) ==
        "panel,x,y,expert,colour\n\"none\",0,1,3,0\n\"none\",2,-1,5,1\n\"none\",0.5,0.25,9,-1\n"
        "\"aux\",1,1,3,2\n");
}

TEST_CASE("every panel takes its own rows of the CSV, all the same ranges") {
  const std::string script = embedding_script(example());
  CHECK(script.find("every ::1::3 ") != std::string::npos);
  CHECK(script.find("every ::4::4 ") != std::string::npos);
  CHECK(script.find("set xrange [-0.06:2.06]") != std::string::npos);
  CHECK(script.find("set yrange [-1.06:1.06]") != std::string::npos);
}

TEST_CASE("gnuplot draws the panels, without complaint") {
  const TemporaryFolder folder;
  CHECK(render(example(), folder.path()).size() == 5);
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "plane.svg").rdbuf();
  for (const char* text : {"none", "aux", "Two components.", "Who serves what"}) {
    CAPTURE(text);
    CHECK(svg.str().find(text) != std::string::npos);
  }
  for (const char* ending : {"pdf", "png"})
    CHECK(fs::file_size(folder.path() / (std::string("plane.") + ending)) > 1000);
}

}  // namespace moelab::embedding_test
