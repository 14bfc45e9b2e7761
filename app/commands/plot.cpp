#include "app/commands/plot.h"

#include <iostream>

#include "app/run/figures.h"
#include "app/run/results.h"

namespace moelab {

int run_plot_command(const std::filesystem::path& directory) {
  for (const std::filesystem::path& file : draw_figures(load_results(directory), directory))
    std::cout << file.string() << '\n';
  return 0;
}

}  // namespace moelab
