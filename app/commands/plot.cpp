#include "app/commands/plot.h"

#include <fmt/format.h>

#include <iostream>

#include "app/run/figures.h"
#include "app/run/results.h"

namespace moelab {

std::string figures_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const std::filesystem::path& file : files) {
    if (file.extension() != ".svg") continue;
    std::vector<std::string> others;
    for (const std::filesystem::path& other : files) {
      if (other != file && other.parent_path() == file.parent_path() && other.stem() == file.stem())
        others.push_back(other.extension().string());
    }
    text += fmt::format("{} ({})\n", file.string(), fmt::join(others, " "));
  }
  return text;
}

int run_plot_command(const std::filesystem::path& directory, bool json) {
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

}  // namespace moelab
