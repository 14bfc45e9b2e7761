#include "plots/figure.h"

#include <fmt/core.h>

#include <algorithm>

#include "plots/csv_cell.h"
#include "plots/page.h"

namespace moelab {
namespace {

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string figure_csv(const Figure& figure) {
  std::size_t seeds = 0;
  for (const FigureSeries& series : figure.series)
    for (const FigurePoint& point : series.points) seeds = std::max(seeds, point.seeds.size());
  std::string text = "series,x,mean,low,high";
  for (std::size_t seed = 0; seed < seeds; ++seed) text += fmt::format(",seed_{}", seed);
  text += figure.x_categories.empty() ? "\n" : ",x_label\n";
  for (const FigureSeries& series : figure.series)
    for (const FigurePoint& point : series.points) {
      text += fmt::format("{},{},{},{},{}", gnuplot_csv_cell(series.name), point.x, csv_number(point.mean),
                          csv_number(point.low), csv_number(point.high));
      for (std::size_t seed = 0; seed < seeds; ++seed)
        text += "," + (seed < point.seeds.size() ? csv_number(point.seeds[seed]) : "");
      if (!figure.x_categories.empty())
        text += "," + gnuplot_csv_cell(figure.x_categories.at(static_cast<std::size_t>(point.x)));
      text += "\n";
    }
  return text;
}

std::vector<std::filesystem::path> render(const Figure& figure, const std::filesystem::path& directory) {
  return write_figure(figure.id, figure_csv(figure), figure_script(figure), directory);
}

}  // namespace moelab
