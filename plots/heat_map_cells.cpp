#include "plots/heat_map_cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "plots/page.h"

namespace moelab {
namespace {

/// Cells narrower than this have no number in them.
constexpr double kNumberRoom = 18;
/// Numbers stand above the middle of a cell, their intervals below.
constexpr double kIntervalFontSize = 5;
/// Above this share of the scale a cell is too bright for white numbers.
constexpr double kBright = 0.6;

/// Up to so many cells an image is drawn as boxes, which are sharp wherever an SVG is shown; more would make
/// the file large.
constexpr std::size_t kMostBoxes = 2500;

bool is_full(const HeatMap& map) {
  return std::all_of(map.panels.begin(), map.panels.end(), [](const HeatMapPanel& panel) {
    return std::all_of(panel.values.begin(), panel.values.end(),
                       [](const auto& value) { return value.has_value(); });
  });
}

/// Whether a condition on the value and the ends of its interval holds for all that there are.
template <class Condition>
bool holds_for_intervals(const HeatMap& map, const Condition& condition) {
  for (const HeatMapPanel& panel : map.panels)
    for (std::size_t i = 0; i < panel.intervals.size(); ++i) {
      if (!panel.intervals[i] || !panel.values[i]) continue;
      if (!condition(*panel.values[i], panel.intervals[i]->first, panel.intervals[i]->second)) return false;
    }
  return true;
}

/// Whether "±" tells every interval.
bool all_symmetric(const HeatMap& map) {
  return holds_for_intervals(map, [](double value, double low, double high) {
    return std::abs(low + high - 2 * value) <= 1e-6 * (high - low);
  });
}

/// From here numbers are whole: 123 takes less room than 1.2e+02, and says more.
double whole_from(int digits) {
  return std::pow(10, digits) - 0.5;
}
constexpr double kWholeBelow = 9999.5;

/// As `moelab_number` of heat_map_functions() writes it.
std::string cell_number(double value, int digits) {
  const bool is_whole = std::abs(value) >= whole_from(digits) && std::abs(value) < kWholeBelow;
  return is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
}

/// The widest number in a cell, with its sign of censoring.
double widest_number(const HeatMap& map, int digits) {
  double most = 0;
  for (const HeatMapPanel& panel : map.panels)
    for (std::size_t i = 0; i < panel.values.size(); ++i) {
      if (!panel.values[i]) continue;
      const bool is_censored = i < panel.censored.size() && panel.censored[i];
      const std::string text = (is_censored ? ">" : "") + cell_number(*panel.values[i], digits);
      most = std::max(most, text_width(text, kSmallFontSize));
    }
  return most;
}

}  // namespace

bool has_interval_columns(const HeatMap& map) {
  return std::any_of(map.panels.begin(), map.panels.end(),
                     [](const HeatMapPanel& panel) { return !panel.intervals.empty(); });
}

bool has_censored_column(const HeatMap& map) {
  return std::any_of(map.panels.begin(), map.panels.end(), [](const HeatMapPanel& panel) {
    return std::find(panel.censored.begin(), panel.censored.end(), true) != panel.censored.end();
  });
}

bool has_room_for_intervals(const HeatMap& map, double cell_width) {
  if (map.compact || cell_width < kNumberRoom) return false;
  if (holds_for_intervals(map, [](double, double, double) { return false; })) return false;  // none
  const int digits = cell_digits(map, cell_width);
  return all_symmetric(map) || holds_for_intervals(map, [&](double, double low, double high) {
           const std::string text = cell_number(low, digits) + "–" + cell_number(high, digits);
           return text_width(text, kIntervalFontSize) <= cell_width - 2;
         });
}

int needed_digits(const HeatMap& map) {
  constexpr int kMostDigits = 5;
  // A tenth of the scale is three of its colours.
  const double step = (map.high - map.low) / 10, largest = std::max(std::abs(map.low), std::abs(map.high));
  int digits = 2;
  if (!(step > 0)) return digits;
  const double exponent = std::floor(std::log10(largest));
  while (digits < kMostDigits && std::pow(10, exponent + 1 - digits) > step * (1 + 1e-9)) ++digits;
  return digits;
}

int cell_digits(const HeatMap& map, double cell_width) {
  int digits = needed_digits(map);
  while (digits > 2 && widest_number(map, digits) > cell_width - 2) --digits;
  return digits;
}

std::string heat_map_functions(int digits) {
  return fmt::format(
             "moelab_number(v) = abs(v) >= {} && abs(v) < {} ? sprintf('%.0f',v) : sprintf('%.{}g',v)\n",
             whole_from(digits), kWholeBelow, digits) +
         "moelab_half(v) = v >= 9.5 && v < 9999.5 ? sprintf('%.0f',v) : sprintf('%.1g',v)\n";
}

std::string heat_map_cells(const HeatMap& map, double cell_width, std::size_t first) {
  const std::size_t columns = map.x_names.size(), rows = map.y_names.size();
  // The place of a cell follows from its row in the file, whose names are for people.
  const std::string x = fmt::format("(int($0)%{})", columns), y = fmt::format("(int($0)/{})", columns);
  const std::string range = fmt::format("data every ::{}::{} using ", first, first + columns * rows - 1);
  if (map.compact && is_full(map)) {
    // Boxes are for the viewers of SVG: the others draw a picture's cells sharp, and boxes with fine gaps.
    const bool is_large = columns * rows * map.panels.size() > kMostBoxes;
    return fmt::format("cells = GPVAL_TERM eq 'svg' ? 'image{}' : 'image'\nplot {}{}:{}:4 with @cells",
                       is_large ? "" : " pixels", range, x, y);
  }
  std::string plot = fmt::format(
      "plot {0}{1}:{2}:({1}-0.5):({1}+0.5):({2}-0.5):({2}+0.5):4 with boxxyerror fc palette fs solid 1 "
      "noborder",
      range, x, y);
  if (map.compact || cell_width < kNumberRoom) return plot;
  const bool two_lines = has_room_for_intervals(map, cell_width);
  const char* const interval =
      all_symmetric(map) ? "'±'.moelab_half(($6-$5)/2)" : "moelab_number($5).'–'.moelab_number($6)";
  const std::string over =
      has_censored_column(map) ? fmt::format("(${} > 0 ? '>' : '').", has_interval_columns(map) ? 7 : 5) : "";
  const double limit = map.low + kBright * (map.high - map.low);
  // gnuplot 5.4 crashes on a clause without any defined point: where nothing is to be said labels are empty.
  const auto labels = [&](const std::string& condition, const std::string& label, double up, double size,
                          const char* colour) {
    return fmt::format(", \\\n     {}{}:({}+{}):({} ? {} : '') with labels font ',{}' tc rgb '{}'", range, x,
                       y, up, condition, label, size, colour);
  };
  for (const auto& [side, colour] : {std::pair{"<", "#FFFFFF"}, {">=", "#000000"}}) {
    const std::string condition = fmt::format("valid(4) && $4{}{:.8g}", side, limit);
    plot += labels(condition, over + "moelab_number($4)", two_lines ? 0.18 : 0.0, kSmallFontSize, colour);
    if (two_lines) plot += labels(condition + " && valid(5)", interval, -0.27, kIntervalFontSize, colour);
  }
  return plot;
}

}  // namespace moelab
