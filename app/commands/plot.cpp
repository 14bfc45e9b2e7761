#include "app/commands/plot.h"

#include <iostream>

#include "app/run/figures.h"
#include "app/run/results.h"

namespace moelab {

int run_plot_command(const std::filesystem::path& directory, bool json) {
  Json files = Json::array();
  for (const std::filesystem::path& file : draw_figures(load_results(directory), directory))
    files.push_back(file.string());
  if (json) {
    std::cout << Json({{"files", files}}).dump(2) << '\n';
  } else {
    for (const Json& file : files) std::cout << file.get<std::string>() << '\n';
  }
  return 0;
}

}  // namespace moelab
