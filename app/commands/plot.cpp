#include <iostream>

#include "app/commands/verbs.h"
#include "app/run/figures.h"
#include "app/run/results.h"

namespace moelab {
namespace {

int draw(const std::filesystem::path& directory, bool json) {
  const std::vector<std::filesystem::path> figures = draw_figures(load_results(directory), directory);
  if (json) {
    Json files = Json::array();
    for (const std::filesystem::path& file : figures) files.push_back(file.string());
    std::cout << Json({{"files", files}}).dump(2) << '\n';
  } else {
    std::cout << figures_text(figures);
  }
  return 0;
}

}  // namespace

Verb plot_verb() {
  return {"plot", "Draw the scenario's figures again", "plot runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {{directory_option(arguments), json_option(arguments)},
                    [&] { return draw(arguments.directory, arguments.json); }};
          }};
}

}  // namespace moelab
