#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "plots/painters/gnuplot.h"
#include "tests/temporary_folder.h"

namespace moelab::legend_test {

TEST_CASE("references of one colour have their own dashes in the legend, as at their lines") {
  const TemporaryFolder folder;
  Figure figure;
  figure.id = "slopes";
  figure.panels.emplace_back();
  for (const char* name : {"first", "second", "third"})
    figure.panels[0].series.push_back(
        {name, {{1, 1, {}, {}, {}}, {2, 2, {}, {}, {}}}, SeriesLook::reference});
  render(drawing_of(figure), folder.path());
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / "slopes.svg").rdbuf();
  const std::string text = svg.str();
  std::map<std::string, int> dashes;
  const std::regex pattern("stroke-dasharray='([^']*)'");
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) ++dashes[(*at)[1]];
  // Each once in the panel, and once, a little thicker, in the legend; and the grid's.
  CHECK(dashes.size() == 7);
}

}  // namespace moelab::legend_test
