#include "plots/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "plots/report/table.h"
#include "plots/texts.h"

namespace moelab {
namespace {

/// Narrower cells have no number.
constexpr double kNumberRoom = 18;
/// Lower cells have no interval below their number.
constexpr double kTwoTexts = 14;

/// Compact maps: the gap between panels, and the greatest height of their square cells together.
constexpr double kCompactGap = 6, kMostCompactHeight = 180;
/// Compact panels that would be narrower have several rows.
constexpr double kLeastCompactWidth = 45;
/// Rotated labels of compact maps may overlap the names above and below the cells by this much.
constexpr double kLabelOverhang = 12, kLeastLabelRoom = 60, kMostLabelRoom = 120;
/// Rows are higher than kRowHeight if the rotated labels need the room.
constexpr double kRowHeight = 17, kMostRowHeight = 44, kHeatMapName = 12, kBetweenPanels = 8;
/// Between the cells and the names of columns, with their height; between the cells and the names of rows.
constexpr double kColumnNames = 12, kRowNameGap = 6;
/// Between the cells and the colour scale, and between that and its numbers.
constexpr double kScaleGap = 5, kScaleNumberGap = 9;

/// Viridis, dark to bright, in even steps of lightness. Every common kind of colour vision can tell them
/// apart.
constexpr std::array<const char*, 6> kPalette = {"#440154", "#414487", "#2A788E",
                                                 "#22A884", "#7AD151", "#FDE725"};
/// Orange, white at 0, blue: for scales from −a to a.
constexpr std::array<const char*, 5> kSignedPalette = {"#B35806", "#F1A340", "#FFFFFF", "#67A9CF", "#08306B"};

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

/// From here on numbers are whole.
double whole_from(int digits) {
  return std::pow(10, digits) - 0.5;
}
constexpr double kWholeBelow = 9999.5;

bool is_censored(const HeatMapPanel& panel, std::size_t cell) {
  return cell < panel.censored.size() && panel.censored[cell];
}

std::string number_text(const HeatMapPanel& panel, std::size_t cell, int digits) {
  if (!panel.values[cell]) return "";
  return (is_censored(panel, cell) ? ">" : "") + signed_text(cell_number(*panel.values[cell], digits));
}

double widest_number(const HeatMap& map, int digits) {
  double most = 0;
  for (const HeatMapPanel& panel : map.panels)
    for (std::size_t i = 0; i < panel.values.size(); ++i)
      most = std::max(most, text_width(number_text(panel, i, digits), kNumberSize));
  return most;
}

/// Two to five significant digits: enough to tell apart numbers whose colours can be told apart.
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

/// An axis with a name at every k-th column or row, k the least with which no two names overlap. `room`:
/// points for each; `size`: the length of a name.
template <class Size>
Axis name_axis(const std::vector<std::string>& names, double room, Size size) {
  const auto fits = [&](std::size_t step) {
    for (std::size_t i = step; i < names.size(); i += step)
      if ((size(names[i]) + size(names[i - step])) / 2 > room * static_cast<double>(step)) return false;
    return true;
  };
  std::size_t step = 1;
  for (const std::size_t factor : {2U, 5U, 10U, 20U, 50U, 100U, 200U, 500U, 1000U})
    if (!fits(step)) step = factor;
  Axis axis;
  axis.low = -0.5;
  axis.high = static_cast<double>(names.size()) - 0.5;
  for (std::size_t i = 0; i < names.size(); i += step)
    axis.ticks.emplace_back(static_cast<double>(i), names[i]);
  return axis;
}

/// The ticks of a colour scale of this height. Numbers that would overlap the one below are left out.
std::vector<std::pair<double, std::string>> ticks_of_scale(const HeatMap& map, double height) {
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

/// The length at which a rotated label has two lines, at most kMostLabelRoom.
double rotated_length(const std::string& label) {
  double room = kLeastLabelRoom;
  while (room < kMostLabelRoom && wrapped(label, kFontSize, room).size() > 2) room += 4;
  return room;
}

}  // namespace

bool has_intervals(const HeatMap& map) {
  return std::any_of(map.panels.begin(), map.panels.end(),
                     [](const HeatMapPanel& panel) { return !panel.intervals.empty(); });
}

bool has_censored_cells(const HeatMap& map) {
  return std::any_of(map.panels.begin(), map.panels.end(), [](const HeatMapPanel& panel) {
    return std::find(panel.censored.begin(), panel.censored.end(), true) != panel.censored.end();
  });
}

std::string cell_number(double value, int digits) {
  const bool is_whole = std::abs(value) >= whole_from(digits) && std::abs(value) < kWholeBelow;
  if (is_whole || value == 0) return fmt::format("{:.0f}", value);
  const std::string text = fmt::format("{:#.{}g}", value, digits);
  // Of a whole number some versions of fmt show "99.", and others "99.0".
  if (text.ends_with('.')) return text.substr(0, text.size() - 1);
  const auto shown = std::ranges::count_if(text, [](char letter) { return letter >= '0' && letter <= '9'; });
  return text.ends_with(".0") && shown > digits ? text.substr(0, text.size() - 2) : text;
}

std::string half_number(double half) {
  return half >= 9.5 && half < kWholeBelow ? fmt::format("{:.0f}", half) : fmt::format("{:.1g}", half);
}

std::string heat_map_csv(const HeatMap& map) {
  const bool intervals = moelab::has_intervals(map), censored = has_censored_cells(map);
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

/// The colour at a share of the scale of equidistant colours, six hexadecimal digits.
std::string scale_colour(const std::vector<const char*>& palette, double share) {
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(palette.size() - 1);
  const std::size_t first = std::min(static_cast<std::size_t>(at), palette.size() - 2);
  const unsigned long low = std::stoul(palette[first] + 1, nullptr, 16),
                      high = std::stoul(palette[first + 1] + 1, nullptr, 16);
  std::string colour;
  for (const int shift : {16, 8, 0}) {
    const auto from = static_cast<double>((low >> shift) & 0xFF),
               to = static_cast<double>((high >> shift) & 0xFF);
    colour += fmt::format("{:02X}", std::lround(from + (at - static_cast<double>(first)) * (to - from)));
  }
  return colour;
}

/// The ends of the part of the scale on which black is easier to read than white, as shares.
std::pair<double, double> bright_part(const std::vector<const char*>& palette) {
  constexpr int kSteps = 200;
  std::pair<double, double> ends(1, 0);
  for (int i = 0; i <= kSteps; ++i) {
    const double share = static_cast<double>(i) / kSteps;
    const std::string colour = scale_colour(palette, share);
    if (contrast(colour, "000000") < contrast(colour, "FFFFFF")) continue;
    ends = {std::min(ends.first, share), std::max(ends.second, share)};
  }
  return ends;
}

}  // namespace

HeatMapLayout::HeatMapLayout(const HeatMap& map, Texts texts) {
  const bool is_whole = texts == Texts::all;
  set_page(is_whole ? map.style : FigureStyle(), kWidth);
  arrange(map, texts, 0);
  double extra = 0;
  if (const std::optional<double> wanted = is_whole ? height_of(map.style) : std::nullopt)
    // Cells of another height may change the lines of labels, and with them the room that is left.
    for (int round = 0; round < 3; ++round) {
      extra += *wanted - height;
      arrange(map, texts, extra);
    }
  write_cells(map, !map.compact || !is_whole);
}

void HeatMapLayout::arrange(const HeatMap& map, Texts texts, double extra) {
  panels.clear();
  const bool is_whole = texts == Texts::all;
  const double count = static_cast<double>(std::max<std::size_t>(map.panels.size(), 1));
  const double all_rows = count * static_cast<double>(std::max<std::size_t>(map.y_names.size(), 1));
  const double labels = std::max(rotated_length(map.y_label), rotated_length(map.value_label));
  // The report's page names its panels itself.
  const double name_room = is_whole ? kHeatMapName : 2;
  double named = name_room + kBetweenPanels;
  row_height_ = std::clamp((labels - (count - 1) * named) / all_rows, kRowHeight, kMostRowHeight);
  row_height_ = std::max(row_height_ + (map.compact ? 0 : extra / all_rows), kTickFontSize);
  const double all = row_height_ * all_rows + (count - 1) * named;
  const auto down = [&] { return std::ceil(count / static_cast<double>(columns_)); };
  const auto all_panels = [&] { return down() * (panel_height_ + named) - named; };
  place_panels(map, map.compact ? kMostCompactHeight : std::max(all, labels), extra);
  // The labels of compact cells set the width, the width sets the height, and the height limits the labels.
  if (map.compact) place_panels(map, std::max(all_panels() + 2 * kLabelOverhang, kLeastLabelRoom), extra);
  std::vector<std::string> names;
  for (const HeatMapPanel& panel : map.panels) names.push_back(panel.name);
  panel_names_ = is_whole ? fitted_names(names, kFontSize, map.compact ? panel_width_ : width - left_ - 2,
                                         map.compact ? 3 : 1, "P")
                          : FittedNames();
  std::size_t name_lines = 1;
  for (const std::vector<std::string>& lines : panel_names_.lines)
    name_lines = std::max(name_lines, lines.size());
  named += kLabelLine * static_cast<double>(name_lines - 1);
  const double label_length =
      std::max(widest(labels_.lines[0], labels_.size), widest(labels_.lines[1], labels_.size));
  // Rotated labels must not be longer than all panels. Labels of compact cells may overlap the names.
  const double beyond = label_length - all_panels();
  const double over_names = map.compact ? std::max(beyond / 2 - name_room, 0.0) : 0;
  const double step = panel_height_ + named + (map.compact ? 0 : std::max(beyond, 0.0) / down());
  scale_height = step * (down() - 1) + panel_height_;
  scale_ticks = ticks_of_scale(map, scale_height);
  // The label of x is centred below all cells, which are not in the middle of the page.
  const double room = width - std::abs(left_ - right_) - 2 * kPageMargin;
  const FittedNames x_names = fitted_names({map.x_label}, kFontSize, room, 6, "X");
  const std::vector<std::string>& x_label = x_names.lines.front();
  const double label_height = kLabelLine * static_cast<double>(x_label.size());
  cell_height = panel_height_ / static_cast<double>(std::max<std::size_t>(map.y_names.size(), 1));
  x = name_axis(map.x_names, cell_width,
                [](const std::string& name) { return text_width(name, kTickFontSize) + 3; });
  // The last name of a panel and the first one of the next share the gap.
  while (columns_ > 1 && x.ticks.size() > 1) {
    const auto& [place, last] = x.ticks.back();
    const double outside = text_width(last, kTickFontSize) / 2 - (x.high - place) * cell_width +
                           text_width(x.ticks.front().second, kTickFontSize) / 2 - cell_width / 2;
    if (outside < kCompactGap - 3) break;
    x.ticks.pop_back();
  }
  std::vector<std::string> rows;
  for (const std::vector<std::string>& lines : row_names_.lines)
    rows.push_back(lines.empty() ? "" : lines.front());
  y = name_axis(rows, cell_height, [](const std::string&) { return kTickFontSize + 1; });
  y.size = row_names_.size;
  caption = map.caption + labels_.key + row_names_.key + panel_names_.key + x_names.key;
  const Heading heading = is_whole ? Heading(map.style, map.title, caption, width) : Heading();
  const double caption_height = is_whole ? heading.caption_height() : 0;
  const double x_label_middle = caption_height + 2 + label_height / 2;
  const double bottom = x_label_middle + label_height / 2 + kColumnNames;
  // Without a title, nothing has to be kept apart above the names.
  const double above = is_whole && heading.title.empty() ? 3 - kBetweenPanels : 0;
  height = bottom + step * down() + over_names + above + heading.title_height();

  if (map.low == -map.high)
    palette.assign(kSignedPalette.begin(), kSignedPalette.end());
  else
    palette.assign(kPalette.begin(), kPalette.end());
  // Painters would widen an empty scale, with ticks of their own.
  const double margin = map.low < map.high ? 0 : std::max(1e-12, 0.1 * std::abs(map.low));
  low = map.low - margin;
  high = map.high + margin;
  scale_left = width - right_ + kScaleGap;
  scale_bottom = bottom;

  for (std::size_t p = 0; p < map.panels.size(); ++p) {
    const bool is_last = p + 1 == map.panels.size();
    const double row = down() - 1 - static_cast<double>(p / columns_);
    PanelPlace panel{left_ + static_cast<double>(p % columns_) * (panel_width_ + kCompactGap),
                     bottom + step * row,
                     panel_width_,
                     panel_height_,
                     p + columns_ >= map.panels.size(),
                     p % columns_ == 0};
    if (is_whole) {
      const std::vector<std::string>& lines = panel_names_.lines[p];
      for (std::size_t line = 0; line < lines.size(); ++line)
        panel.marks.push_back({TextRole::panel, lines[line], panel.left,
                               panel.bottom + panel_height_ + 0.5 * kHeatMapName +
                                   kLabelLine * static_cast<double>(lines.size() - 1 - line),
                               false, 0, panel_names_.size});
    }
    const std::vector<std::string>&y_label = labels_.lines[0], &value_label = labels_.lines[1];
    if (p == 0)
      place_centred(panel.marks, TextRole::y_label, y_label,
                    3 + kLabelLine * static_cast<double>(y_label.size()) / 2, bottom + scale_height / 2, true,
                    labels_.size);
    if (is_last)
      place_centred(panel.marks, TextRole::x_label, x_label,
                    left_ + (static_cast<double>(columns_) * (panel_width_ + kCompactGap) - kCompactGap) / 2,
                    x_label_middle, false, x_names.size);
    if (is_last) {
      place_centred(panel.marks, TextRole::value_label, value_label,
                    width - 2 - kLabelLine * static_cast<double>(value_label.size()) / 2,
                    bottom + scale_height / 2, true, labels_.size);
      heading.place(panel.marks, width, height);
    }
    panels.push_back(std::move(panel));
  }
}

void HeatMapLayout::place_panels(const HeatMap& map, double room, double extra) {
  /// Names of rows take at most this share of the page.
  constexpr double kMostRowNames = 0.35;
  labels_ = fitted_names({map.y_label, map.value_label}, kFontSize, room, 2, "Y");
  row_names_ = fitted_names(map.y_names, kTickFontSize, kMostRowNames * width, 1, "R");
  double name_width = 0;
  for (const std::vector<std::string>& lines : row_names_.lines)
    name_width = std::max(name_width, widest(lines, row_names_.size));
  left_ = 3 + kLabelLine * static_cast<double>(labels_.lines[0].size()) + kRowNameGap + name_width;
  // Room for all numbers of the scale.
  double tick_width = 0;
  for (const auto& tick : ticks_of_scale(map, 1000))
    tick_width = std::max(tick_width, text_width(tick.second, kTickFontSize));
  right_ = kScaleGap + kScaleWidth + kScaleNumberGap + tick_width + 3 +
           kLabelLine * static_cast<double>(labels_.lines[1].size());
  const auto width_of = [&](std::size_t columns) {
    return (width - left_ - right_ + kCompactGap) / static_cast<double>(columns) - kCompactGap;
  };
  const std::size_t count = map.compact ? std::max<std::size_t>(map.panels.size(), 1) : 1;
  std::size_t down = 1;
  const auto columns_of = [&] { return (count + down - 1) / down; };
  while (columns_of() > 1 && width_of(columns_of()) < kLeastCompactWidth) ++down;
  columns_ = columns_of();
  panel_width_ = width_of(columns_);
  cell_width = panel_width_ / static_cast<double>(std::max<std::size_t>(map.x_names.size(), 1));
  panel_height_ = (map.compact ? cell_width : row_height_) * static_cast<double>(map.y_names.size());
  if (map.compact)
    panel_height_ = std::max(std::min(panel_height_, kMostCompactHeight / static_cast<double>(down)) +
                                 extra / static_cast<double>(down),
                             kTickFontSize);
}

void HeatMapLayout::write_cells(const HeatMap& map, bool allows_numbers) {
  digits = needed_digits(map);
  while (digits > 2 && widest_number(map, digits) > cell_width - 2) --digits;
  has_numbers = allows_numbers && cell_width >= kNumberRoom && cell_height >= kNumberSize + 1;
  if (!has_numbers) return;
  is_symmetric = all_symmetric(map);
  const auto interval_text = [&](double low_end, double high_end) {
    if (is_symmetric) return "±" + half_number((high_end - low_end) / 2);
    return signed_text(cell_number(low_end, digits)) + "–" + signed_text(cell_number(high_end, digits));
  };
  const bool has_any = !holds_for_intervals(map, [](double, double, double) { return false; });
  has_intervals = has_any && cell_height >= kTwoTexts &&
                  (is_symmetric || holds_for_intervals(map, [&](double, double low_end, double high_end) {
                     return text_width(interval_text(low_end, high_end), kIntervalSize) <= cell_width - 2;
                   }));
  // With as many digits as a script has, so that a value at the limit is on the same side. A value beyond the
  // scale has the colour of its end.
  const auto [first, last] = bright_part(palette);
  const auto at_share = [&](double share) {
    return std::strtod(fmt::format("{:.8g}", map.low + share * (map.high - map.low)).c_str(), nullptr);
  };
  bright_from = first <= 0 ? std::numeric_limits<double>::lowest() : at_share(first);
  bright_to = last >= 1 ? std::numeric_limits<double>::max() : at_share(last);
  for (const HeatMapPanel& panel : map.panels) {
    std::vector<CellText>& texts = cells.emplace_back();
    for (std::size_t i = 0; i < panel.values.size(); ++i) {
      texts.push_back({number_text(panel, i, digits), "",
                       panel.values[i] && *panel.values[i] >= bright_from && *panel.values[i] <= bright_to});
      // Equal seeds do not make an interval of no width.
      if (has_intervals && panel.values[i] && i < panel.intervals.size() && panel.intervals[i] &&
          panel.intervals[i]->first < panel.intervals[i]->second)
        texts.back().interval = interval_text(panel.intervals[i]->first, panel.intervals[i]->second);
    }
  }
}

namespace {

using MapJson = nlohmann::ordered_json;

MapJson map_layout_json(const HeatMapLayout& layout) {
  MapJson json = layout_json(layout), cells = MapJson::array(), ticks = MapJson::array();
  for (const std::vector<CellText>& panel : layout.cells) {
    MapJson texts = MapJson::array();
    for (const CellText& cell : panel)
      texts.push_back({{"number", cell.number}, {"interval", cell.interval}, {"bright", cell.is_bright}});
    cells.push_back(std::move(texts));
  }
  for (const auto& [place, label] : layout.scale_ticks) ticks.push_back(MapJson::array({place, label}));
  json["cells"] = std::move(cells);
  json["has_intervals"] = layout.has_intervals;
  json["number_size"] = kNumberSize * layout.font_scale;
  json["interval_size"] = kIntervalSize * layout.font_scale;
  json["number_rise"] = layout.has_intervals ? kNumberRise : 0;
  json["interval_rise"] = kIntervalRise;
  json["scale"] = {{"low", layout.low},
                   {"high", layout.high},
                   {"left", layout.scale_left * layout.scale},
                   {"bottom", layout.scale_bottom * layout.scale},
                   {"width", kScaleWidth * layout.scale},
                   {"height", layout.scale_height * layout.scale},
                   {"palette", layout.palette},
                   {"ticks", std::move(ticks)}};
  return json;
}

/// The values of a panel at another time, with their numbers.
MapJson frame_json(const HeatMapPanel& panel, std::size_t frame, const HeatMapLayout& layout) {
  MapJson values = MapJson::array(), numbers = MapJson::array();
  for (const double value : panel.frames[frame]) {
    // A colour needs no more digits.
    values.push_back(std::round(value * 1000) / 1000);
    if (layout.has_numbers)
      numbers.push_back(std::isfinite(value) ? signed_text(cell_number(value, layout.digits)) : "");
  }
  return {{"name", frame < panel.frame_names.size() ? panel.frame_names[frame] : ""},
          {"values", std::move(values)},
          {"numbers", std::move(numbers)}};
}

}  // namespace

nlohmann::ordered_json data_json(const HeatMap& map) {
  MapJson panels = MapJson::array();
  for (const HeatMapPanel& panel : map.panels) {
    MapJson values = MapJson::array(), intervals = MapJson::array();
    for (const std::optional<double>& value : panel.values) values.push_back(number_json(value));
    for (const auto& interval : panel.intervals) intervals.push_back(pair_json(interval));
    panels.push_back({{"name", panel.name},
                      {"values", std::move(values)},
                      {"intervals", std::move(intervals)},
                      {"censored", panel.censored}});
  }
  const HeatMapLayout layout(map);
  return {{"kind", "heat_map"},
          {"id", map.id},
          {"title", map.title},
          {"caption", layout.caption},
          {"x_label", map.x_label},
          {"y_label", map.y_label},
          {"value_label", map.value_label},
          {"x_names", map.x_names},
          {"y_names", map.y_names},
          {"compact", map.compact},
          {"low", map.low},
          {"high", map.high},
          {"panels", std::move(panels)},
          {"layout", map_layout_json(layout)}};
}

nlohmann::ordered_json page_json(const HeatMap& given) {
  // The page writes these texts itself.
  HeatMap map = given;
  for (std::string* const text : {&map.x_label, &map.y_label, &map.value_label}) *text = math_text(*text);
  for (HeatMapPanel& panel : map.panels) panel.name = math_text(panel.name);
  MapJson json = data_json(map);
  json.erase("layout");
  HeatMap alone = map;
  for (std::size_t p = 0; p < map.panels.size(); ++p) {
    alone.panels = {map.panels[p]};
    const HeatMapLayout layout(alone, HeatMapLayout::Texts::axes);
    MapJson frames = MapJson::array();
    for (std::size_t frame = 0; frame < map.panels[p].frames.size(); ++frame)
      frames.push_back(frame_json(map.panels[p], frame, layout));
    MapJson& panel = json["panels"][p];
    panel["frames"] = std::move(frames);
    panel["row_notes"] = map.panels[p].row_notes;
    panel["layout"] = map_layout_json(layout);
  }
  return json;
}

}  // namespace moelab
