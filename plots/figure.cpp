#include "plots/figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "plots/gnuplot.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Double quotes become single ones: gnuplot misreads doubled quotes in a CSV field.
std::string csv_text(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  return "\"" + text + "\"";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  if (!stream)
    throw EnvironmentError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
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
      text += fmt::format("{},{},{},{},{}", csv_text(series.name), point.x, csv_number(point.mean),
                          csv_number(point.low), csv_number(point.high));
      for (std::size_t seed = 0; seed < seeds; ++seed)
        text += "," + (seed < point.seeds.size() ? csv_number(point.seeds[seed]) : "");
      if (!figure.x_categories.empty())
        text += "," + csv_text(figure.x_categories.at(static_cast<std::size_t>(point.x)));
      text += "\n";
    }
  return text;
}

std::vector<std::filesystem::path> render(const Figure& figure, const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    throw EnvironmentError(fmt::format("cannot create {}: {}", directory.string(), failure.message()));
  write_text(directory / (figure.id + ".csv"), figure_csv(figure));
  write_text(directory / (figure.id + ".gp"), figure_script(figure));
  run_gnuplot(directory, figure.id + ".gp");
  std::vector<std::filesystem::path> paths;
  for (const char* ending : {".csv", ".gp", ".svg", ".pdf", ".png"})
    paths.push_back(directory / (figure.id + ending));
  return paths;
}

}  // namespace moelab
