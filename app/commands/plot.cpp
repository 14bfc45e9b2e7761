#include <iostream>

#include "app/commands/verbs.h"
#include "app/run/figures.h"
#include "app/run/results.h"

namespace moelab {
namespace {

int draw(const RunAddress& run, bool json) {
  const RunResults results = load_results(run);
  print_notes(results);
  std::vector<std::filesystem::path> figures = draw_figures(results, run.directory());
  for (std::filesystem::path& file : draw_claims(results, run.directory()))
    figures.push_back(std::move(file));
  if (json) {
    Json files = Json::array();
    for (const std::filesystem::path& file : figures) files.push_back(file.string());
    std::cout << json_text({{"files", files}}) << '\n';
  } else {
    std::cout << figures_text(figures);
  }
  return 0;
}

}  // namespace

Verb plot_verb() {
  return {"plot", "Draw the scenario's figures again, and one of each claim", "plot runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {joined(directory_options(arguments), {{json_option(arguments)}}),
                    [&] { return draw(run_address(arguments), arguments.json); }};
          }};
}

}  // namespace moelab
