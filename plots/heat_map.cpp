#include "plots/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "plots/figure.h"
#include "plots/gnuplot.h"
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

namespace {

/// Of compact maps: between panels.
constexpr double kCompactGap = 6;
/// Their cells are square up to this height of all.
constexpr double kMostCompactHeight = 180;
/// How far their rotated labels reach beyond the cells above and below, where the names of panels and columns
/// stand elsewhere, and the least room of such a label.
constexpr double kLabelOverhang = 12, kLeastLabelRoom = 60, kMostLabelRoom = 120;
/// Rows are higher where few of them would leave the rotated labels no room.
constexpr double kRowHeight = 17, kMostRowHeight = 44, kHeatMapName = 12, kBetweenPanels = 8;
/// Between the cells and the names of columns, and their height; left of the cells, right of the names of
/// rows.
constexpr double kColumnNames = 12, kRowNameGap = 6;
/// The colour scale: from the cells, its width, and from it to its numbers.
constexpr double kScaleGap = 5, kScaleWidth = 6, kScaleNumberGap = 9;

/// Viridis, dark to bright: even steps of lightness, told apart by every common kind of colour vision.
constexpr const char* kPalette =
    "0 '#440154', 1 '#414487', 2 '#2A788E', 3 '#22A884', 4 '#7AD151', 5 '#FDE725'";
/// Orange over white at 0 to blue, for scales from −a to a.
constexpr const char* kSignedPalette = "0 '#B35806', 1 '#F1A340', 2 '#FFFFFF', 3 '#67A9CF', 4 '#08306B'";
/// More would make the file large for no visible gain; odd, so that 0 has a colour of its own.
constexpr int kColourSteps = 33;

/// Every so many names, the fewest left out so that none runs into the one before. `room`: of each; `size`:
/// how much a name takes.
template <class Size>
std::string name_ticks(const std::vector<std::string>& names, double room, Size size) {
  const auto fits = [&](std::size_t step) {
    for (std::size_t i = step; i < names.size(); i += step)
      if ((size(names[i]) + size(names[i - step])) / 2 > room * static_cast<double>(step)) return false;
    return true;
  };
  std::size_t step = 1;
  for (const std::size_t factor : {2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U})
    if (!fits(step)) step = factor;
  std::string text = "nomirror scale 0,0 (";
  for (std::size_t i = 0; i < names.size(); i += step)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(names[i]), i);
  return text + fmt::format(") font ',{}'\n", kTickFontSize);
}

/// The ticks of a colour scale of this height between its ends; numbers that would run into the one below are
/// left out.
std::vector<std::pair<double, std::string>> scale_ticks(const HeatMap& map, double height) {
  // Of a single value that is all that there is to tell.
  if (!(map.low < map.high)) return {{map.low, tick_label(map.low, false)}};
  std::vector<std::pair<double, std::string>> ticks;
  double free_from = -height;
  for (const auto& tick : axis_between(map.low, map.high).ticks) {
    const double place = (tick.first - map.low) / (map.high - map.low) * height;
    if (place < free_from) continue;
    free_from = place + kTickFontSize + 1.5;
    ticks.push_back(tick);
  }
  return ticks;
}

}  // namespace

std::string heat_map_csv(const HeatMap& map) {
  const bool intervals = has_interval_columns(map), censored = has_censored_column(map);
  std::string text = "panel,x,y,value";
  if (intervals) text += ",low,high";
  if (censored) text += ",censored";
  text += "\n";
  for (const HeatMapPanel& panel : map.panels) {
    for (std::size_t i = 0; i < panel.values.size(); ++i) {
      const std::optional<double>& value = panel.values[i];
      text += fmt::format(
          "{},{},{},{}", gnuplot_csv_cell(panel.name), gnuplot_csv_cell(map.x_names[i % map.x_names.size()]),
          gnuplot_csv_cell(map.y_names[i / map.x_names.size()]), value ? fmt::format("{}", *value) : "");
      if (intervals)
        text += i < panel.intervals.size() && panel.intervals[i]
                    ? fmt::format(",{},{}", panel.intervals[i]->first, panel.intervals[i]->second)
                    : ",,";
      if (censored) text += i < panel.censored.size() && panel.censored[i] ? ",1" : ",0";
      text += "\n";
    }
  }
  return text;
}

namespace {

/// The room in which a rotated label has two lines, where that is not too much.
double rotated_length(const std::string& label) {
  double room = kLeastLabelRoom;
  while (room < kMostLabelRoom && wrapped(label, kFontSize, room).size() > 2) room += 4;
  return room;
}

/// Lengths in points: title, panels, names and label of x, caption; y label and names, cells, colour scale.
struct HeatMapLayout {
  Heading heading;
  std::vector<std::string> x_label, y_label, value_label;
  std::vector<std::pair<double, std::string>> ticks;
  double row_height = kRowHeight, left = 0, right = 0, panel_width = 0, cell_width = 0, panel_height = 0,
         step = 0, bottom = 0, x_label_middle = 0, labels_middle = 0, height = 0;

  explicit HeatMapLayout(const HeatMap& map) : heading(map.title, map.caption) {
    const double count = static_cast<double>(std::max<std::size_t>(map.panels.size(), 1));
    const double named = kHeatMapName + kBetweenPanels;
    const double down = map.compact ? 1 : count;
    const double rows = count * static_cast<double>(std::max<std::size_t>(map.y_names.size(), 1));
    const double labels = std::max(rotated_length(map.y_label), rotated_length(map.value_label));
    row_height = std::clamp((labels - (count - 1) * named) / rows, kRowHeight, kMostRowHeight);
    const double all = row_height * rows + (count - 1) * named;
    place_panels(map, map.compact ? kMostCompactHeight : std::max(all, labels));
    // The height of compact cells, which their labels must not outgrow, follows from the width that these
    // leave.
    if (map.compact) place_panels(map, std::max(panel_height + 2 * kLabelOverhang, kLeastLabelRoom));
    ticks = scale_ticks(map, panel_height);
    const double label_length = std::max(widest(y_label, kFontSize), widest(value_label, kFontSize));
    step = panel_height + named;
    if (map.compact) {
      labels_middle = panel_height / 2;
      step += std::max((label_length - panel_height) / 2 - kHeatMapName, 0.0);
    } else {
      // Rotated labels must not be longer than all panels.
      step += std::max(label_length - (step * down - named), 0.0) / down;
      labels_middle = (step * down - named) / 2;
    }
    // In the middle of the cells, which is not that of the page.
    const double room = kWidth - std::abs(left - right) - 2 * kPageMargin;
    x_label = wrapped(map.x_label, kFontSize, map.compact ? panel_width : room);
    const double label_height = kLabelLine * static_cast<double>(x_label.size());
    x_label_middle = heading.caption_height() + 2 + label_height / 2;
    bottom = x_label_middle + label_height / 2 + kColumnNames;
    height = bottom + step * down + heading.title_height();
  }

 private:
  /// `room`: of the rotated labels.
  void place_panels(const HeatMap& map, double room) {
    const double across = map.compact ? static_cast<double>(std::max<std::size_t>(map.panels.size(), 1)) : 1;
    y_label = fitted_lines(map.y_label, kFontSize, room, 2);
    value_label = fitted_lines(map.value_label, kFontSize, room, 2);
    left = 3 + kLabelLine * static_cast<double>(y_label.size()) + kRowNameGap +
           widest(map.y_names, kTickFontSize);
    // Room for all numbers of the scale.
    double tick_width = 0;
    for (const auto& tick : scale_ticks(map, 1000))
      tick_width = std::max(tick_width, text_width(tick.second, kTickFontSize));
    right = kScaleGap + kScaleWidth + kScaleNumberGap + tick_width + 3 +
            kLabelLine * static_cast<double>(value_label.size());
    panel_width = (kWidth - left - right - (across - 1) * kCompactGap) / across;
    cell_width = panel_width / static_cast<double>(std::max<std::size_t>(map.x_names.size(), 1));
    panel_height = (map.compact ? cell_width : row_height) * static_cast<double>(map.y_names.size());
    if (map.compact) panel_height = std::min(panel_height, kMostCompactHeight);
  }
};

}  // namespace

bool draws_intervals(const HeatMap& map) {
  return has_room_for_intervals(map, HeatMapLayout(map).cell_width);
}

std::string heat_map_script(const HeatMap& map) {
  const std::size_t columns = map.x_names.size(), rows = map.y_names.size();
  const HeatMapLayout page(map);
  std::string text = script_head(map.id, map.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(map.id + ".csv"));
  text += "set border 0\nset tics scale 0,0 nomirror\nunset key\n";
  text += "set object rectangle from graph 0,0 to graph 1,1 behind fc rgb '#D9D9D9' fs solid noborder\n";
  text += fmt::format("set palette defined ({})\nset palette maxcolors {}\n",
                      map.low == -map.high ? kSignedPalette : kPalette, kColourSteps);
  // An empty range would be widened, with ticks of gnuplot's own.
  const double extra = map.low < map.high ? 0 : std::max(1e-12, 0.1 * std::abs(map.low));
  text +=
      fmt::format("set cbrange [{:.8g}:{:.8g}]\nset cbtics scale 0.4 (", map.low - extra, map.high + extra);
  for (std::size_t i = 0; i < page.ticks.size(); ++i)
    text += fmt::format("{}{} {:.8g}", i ? ", " : "", quoted(page.ticks[i].second), page.ticks[i].first);
  text += fmt::format(") font ',{}'\n", kTickFontSize);
  text += fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n", static_cast<double>(columns) - 0.5,
                      static_cast<double>(rows) - 0.5);
  const double cell_height = page.panel_height / static_cast<double>(std::max<std::size_t>(rows, 1));
  const std::string y_ticks =
      name_ticks(map.y_names, cell_height, [](const std::string&) { return kTickFontSize + 1; });
  const std::string x_ticks = name_ticks(map.x_names, page.cell_width, [](const std::string& name) {
    return text_width(name, kTickFontSize) + 3;
  });
  if (!map.compact) text += heat_map_functions(cell_digits(map, page.cell_width));
  std::string plot = "set multiplot\n";
  for (std::size_t p = 0; p < map.panels.size(); ++p) {
    const std::size_t place = map.panels.size() - 1 - p;
    const double low = page.bottom + (map.compact ? 0 : page.step * static_cast<double>(place));
    const double from =
        page.left + (map.compact ? static_cast<double>(p) * (page.panel_width + kCompactGap) : 0);
    const bool is_last = p + 1 == map.panels.size(), is_left = p == 0 || !map.compact;
    plot += panel_margins(from, from + page.panel_width, low, low + page.panel_height, kWidth, page.height) +
            "unset label\n";
    plot += fmt::format(
        "set label {} at screen {:.5f}, screen {:.5f} left\n",
        quoted(fitted_line(map.panels[p].name, kFontSize, map.compact ? page.panel_width : kWidth - from)),
        from / kWidth, (low + page.panel_height + 0.5 * kHeatMapName) / page.height);
    if (p == 0)
      plot += centred_label(page.y_label, 3 + kLabelLine * static_cast<double>(page.y_label.size()) / 2,
                            page.bottom + page.labels_middle, kWidth, page.height, true);
    plot += is_left ? "set ytics " + y_ticks : "unset ytics\n";
    plot += is_last || map.compact ? "set xtics offset 0,0.4 " + x_ticks : "unset xtics\n";
    if (is_last || map.compact)
      plot +=
          centred_label(page.x_label, from + page.panel_width / 2, page.x_label_middle, kWidth, page.height);
    if (is_last || !map.compact) {
      const double scale = kWidth - page.right + kScaleGap;
      plot += fmt::format(
          "set colorbox user origin screen {:.5f}, screen {:.5f} size screen {:.5f}, screen {:.5f}\n",
          scale / kWidth, low / page.height, kScaleWidth / kWidth, page.panel_height / page.height);
      if (is_last)
        plot += centred_label(page.value_label,
                              kWidth - 2 - kLabelLine * static_cast<double>(page.value_label.size()) / 2,
                              page.bottom + page.labels_middle, kWidth, page.height, true);
    } else {
      plot += "unset colorbox\n";
    }
    if (is_last) plot += page.heading.script(page.height);
    plot += heat_map_cells(map, page.cell_width, 1 + p * columns * rows) +
            "\n";  // row 0 of the CSV is its header
  }
  plot += "unset multiplot";
  return text + on_terminals(map.id, page.height, plot);
}

Drawing drawing_of(const HeatMap& map) {
  using Json = nlohmann::ordered_json;
  Json panels = Json::array();
  for (const HeatMapPanel& panel : map.panels) {
    Json values = Json::array(), intervals = Json::array();
    for (const std::optional<double>& value : panel.values) values.push_back(number_json(value));
    for (const auto& interval : panel.intervals)
      intervals.push_back(interval ? Json({interval->first, interval->second}) : Json());
    Json frames = Json::array();
    for (const std::vector<double>& frame : panel.frames) {
      Json shown = Json::array();
      // A colour needs no more digits.
      for (const double value : frame) shown.push_back(std::round(value * 1000) / 1000);
      frames.push_back(std::move(shown));
    }
    panels.push_back({{"name", panel.name},
                      {"values", std::move(values)},
                      {"intervals", std::move(intervals)},
                      {"censored", panel.censored},
                      {"frames", std::move(frames)},
                      {"frameNames", panel.frame_names},
                      {"rowNotes", panel.row_notes}});
  }
  const std::string html = page_data({{"draw", "heatMap"},
                                      {"title", map.title},
                                      {"xLabel", map.x_label},
                                      {"yLabel", map.y_label},
                                      {"valueLabel", map.value_label},
                                      {"xNames", map.x_names},
                                      {"yNames", map.y_names},
                                      {"low", map.low},
                                      {"high", map.high},
                                      {"digits", needed_digits(map)},
                                      {"panels", std::move(panels)}});
  return {map.id, map.title, map.caption, heat_map_csv(map), heat_map_script(map), html};
}

}  // namespace moelab
