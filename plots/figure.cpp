#include "plots/figure.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plots/gnuplot.h"
#include "plots/page.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Room between the outermost data and the frame, as a share of the axis.
constexpr double kAxisMargin = 0.05;

/// Letters of a number that a tick may stand at: 1048576, but not what was searched or computed.
constexpr std::size_t kLongestLabel = 7;
/// And where powers of ten could be short: 100000.
constexpr std::size_t kLongestPlain = 6;

double forward(double value, bool logarithmic) {
  return logarithmic ? std::log10(value) : value;
}
double backward(double value, bool logarithmic) {
  return logarithmic ? std::pow(10, value) : value;
}

std::string power_of_ten(int exponent) {
  static const std::vector<std::string> digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent)))
    text += digits[static_cast<std::size_t>(digit - '0')];
  return text;
}

Axis range_of(const std::vector<double>& values, bool logarithmic) {
  Axis axis;
  axis.logarithmic = logarithmic;
  std::vector<double> shown;
  for (const double value : values)
    if (std::isfinite(value) && (!logarithmic || value > 0)) shown.push_back(forward(value, logarithmic));
  if (shown.empty()) shown = {0, 1};
  auto [low, high] = std::minmax(
      {*std::min_element(shown.begin(), shown.end()), *std::max_element(shown.begin(), shown.end())});
  // A single value still needs an interval around it.
  const double least = logarithmic ? 0.3 : std::max(1e-12, 0.1 * std::abs(high));
  const double extra = std::max(kAxisMargin * (high - low), (least - (high - low)) / 2);
  axis.low = backward(low - extra, logarithmic);
  if (logarithmic) axis.low = std::max(axis.low, std::numeric_limits<double>::min());
  axis.high = backward(high + extra, logarithmic);
  return axis;
}

/// Decades, or 1-2-5 steps where there are few of them; unlabelled ticks in between.
void add_log_ticks(Axis& axis) {
  const double low = std::log10(axis.low), high = std::log10(axis.high);
  const int labelled_every = static_cast<int>(std::ceil((high - low) / 7));
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= static_cast<int>(std::ceil(high));
       ++exponent)
    for (int digit = 1; digit <= 9; ++digit) {
      const double place = digit * std::pow(10, exponent);
      if (place < axis.low || place > axis.high) continue;
      const bool labelled = high - low < 0.7 ? digit <= 6 || digit == 8
                            : high - low < 2 ? digit == 1 || digit == 2 || digit == 5
                                             : digit == 1 && exponent % labelled_every == 0;
      if (labelled || high - low < 5) axis.ticks.emplace_back(place, labelled ? tick_label(place, true) : "");
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, four to eight of them.
void add_linear_ticks(Axis& axis) {
  const double range = axis.high - axis.low;
  const double power = std::pow(10, std::floor(std::log10(range / 4)));
  double step = power;
  for (const double digit : {2.0, 5.0})
    if (range / (digit * power) >= 4) step = digit * power;
  // An end may be a tick, to rounding.
  for (double count = std::ceil(axis.low / step - 1e-9); count * step <= axis.high + 1e-9 * step; ++count)
    axis.ticks.emplace_back(count * step, tick_label(count * step + 0.0, false));  // + 0: not −0
}

bool is_power_label(const std::string& label) {
  return label.starts_with("10") && label.size() > 2 && (label[2] < '0' || label[2] > '9') && label[2] != '.';
}

/// "2×10⁵", or the power alone.
std::string scientific_label(double value) {
  const double exponent = std::floor(std::log10(value) + 1e-9);
  const double digits = value / std::pow(10, exponent);
  const std::string power = power_of_ten(static_cast<int>(exponent));
  return std::abs(digits - 1) < 1e-9 ? power : fmt::format("{:.4g}×{}", digits, power);
}

/// Labels of a logarithmic axis that are in part powers of ten, in part not, as numbers where these are
/// short, else as products with powers.
void use_one_form(Axis& axis) {
  bool any_power = false, any_number = false, is_short = true;
  for (const auto& [place, label] : axis.ticks) {
    if (label.empty()) continue;
    (is_power_label(label) ? any_power : any_number) = true;
    is_short = is_short && place >= 0.999e-4 && fmt::format("{:.7g}", place).size() <= kLongestPlain;
  }
  if (!any_power || !any_number) return;
  for (auto& [place, label] : axis.ticks)
    if (!label.empty()) label = is_short ? fmt::format("{:.7g}", place) : scientific_label(place);
}

}  // namespace

std::string tick_label(double value, bool logarithmic) {
  const double exponent = logarithmic && value > 0 ? std::log10(value) : 0;
  const double nearest = std::round(exponent);
  if (std::abs(exponent) >= 4 && std::abs(exponent - nearest) < 1e-9)
    return power_of_ten(static_cast<int>(nearest));
  if (value != 0 && (std::abs(value) >= 1e7 || std::abs(value) < 1e-4)) return fmt::format("{:.3g}", value);
  return fmt::format("{:.7g}", value);
}

Axis fit_axis(const std::vector<double>& values, bool logarithmic) {
  Axis axis = range_of(values, logarithmic);
  if (logarithmic)
    add_log_ticks(axis);
  else
    add_linear_ticks(axis);
  if (logarithmic) use_one_form(axis);
  return axis;
}

Axis fit_axis_at(std::vector<double> places, bool logarithmic) {
  const auto is_long = [&](double place) { return tick_label(place, logarithmic).size() > kLongestLabel; };
  if (std::any_of(places.begin(), places.end(), is_long)) return fit_axis(places, logarithmic);
  Axis axis = range_of(places, logarithmic);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (const double place : places)
    if (!logarithmic || place > 0) axis.ticks.emplace_back(place, tick_label(place, logarithmic));
  if (logarithmic) use_one_form(axis);
  return axis;
}

Axis axis_between(double low, double high) {
  Axis axis;
  axis.low = low;
  axis.high = high;
  add_linear_ticks(axis);
  return axis;
}

void keep_labels_apart(Axis& axis, double width) {
  const double low = forward(axis.low, axis.logarithmic), high = forward(axis.high, axis.logarithmic);
  struct Label {
    std::size_t tick;
    double middle, half;
  };
  std::vector<Label> labels;
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const auto& [place, label] = axis.ticks[i];
    if (label.empty()) continue;
    labels.push_back({i, (forward(place, axis.logarithmic) - low) / (high - low) * width,
                      0.5 * text_width(label, kTickFontSize) + 2});
  }
  if (labels.empty()) return;
  const auto run_together = [](const Label& left, const Label& right) {
    return left.middle + left.half > right.middle - right.half;
  };
  // All from the last one back that are `every` apart.
  const auto fits = [&](std::size_t every) {
    for (std::size_t i = labels.size() - 1; i >= every; i -= every)
      if (run_together(labels[i - every], labels[i])) return false;
    return true;
  };
  bool is_even = true;
  const double step = labels.size() > 1 ? labels[1].middle - labels[0].middle : 0;
  for (std::size_t i = 1; i < labels.size(); ++i)
    is_even = is_even && std::abs(labels[i].middle - labels[i - 1].middle - step) < 0.01 * step;
  std::size_t every = 1;
  while (is_even && !fits(every)) ++every;
  // Of others both ends, and between them what has room beside the one to its right.
  const Label* right = &labels.back();
  for (std::size_t back = 1; back < labels.size(); ++back) {
    const Label& label = labels[labels.size() - 1 - back];
    const bool is_first = back + 1 == labels.size();
    const bool has_room =
        !run_together(label, *right) && (is_even || is_first || !run_together(labels[0], label));
    if (back % every == 0 && has_room)
      right = &label;
    else
      axis.ticks[label.tick].second.clear();
  }
}

void thin_upright_labels(Axis& axis, double room) {
  const auto every = static_cast<std::size_t>(std::ceil((kTickFontSize + 1) / room));
  for (std::size_t i = 0; i < axis.ticks.size(); ++i)
    if (i % every != 0) axis.ticks[i].second.clear();
}

std::string axis_script(char name, const Axis& axis, bool with_labels) {
  std::string text = axis.logarithmic ? fmt::format("set logscale {}\n", name) : "";
  text += fmt::format("set {0}range [{1:.8g}:{2:.8g}]\nset {0}tics (", name, axis.low, axis.high);
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const auto& [place, label] = axis.ticks[i];
    // The last number is the level: 1 for a minor tick.
    text += fmt::format("{}{} {:.8g} {}", i ? ", " : "", quoted(with_labels ? label : ""), place,
                        label.empty() ? 1 : 0);
  }
  return text + fmt::format(") font ',{}'{}\n", kTickFontSize, axis.upright ? " rotate by 90 right" : "");
}

namespace {

constexpr double kSample = 20, kSampleGap = 4, kEntryGap = 12, kLegendLine = 10;
constexpr std::size_t kMostColumns = 4;

/// The colour, or one that nobody can tell from it: gnuplot 5.4 joins lines of one colour that follow each
/// other in an SVG to one path, which has the dashes of the last.
std::string unlike(const std::string& colour, const std::string& before) {
  if (colour != before) return colour;
  const unsigned long own = std::stoul(colour, nullptr, 16);
  return fmt::format("{:06X}", (own & 0xFF) == 0xFF ? own - 1 : own + 1);
}

}  // namespace

Legend::Legend(std::vector<LegendEntry> entries, double page_width)
    : entries_(std::move(entries)), page_width_(page_width) {
  if (entries_.empty()) return;
  const double room = page_width - 2 * kPageMargin - kSample - kSampleGap;
  double longest = 0;
  for (const LegendEntry& entry : entries_) {
    names_.push_back(wrapped(entry.name, kFontSize, room));
    longest = std::max(longest, widest(names_.back(), kFontSize));
  }
  entry_width_ = kSample + kSampleGap + longest;
  const double most = (page_width - 2 * kPageMargin + kEntryGap) / (entry_width_ + kEntryGap);
  columns_ = std::clamp<std::size_t>(static_cast<std::size_t>(most), 1, kMostColumns);
  const std::size_t rows = (entries_.size() + columns_ - 1) / columns_;
  // Two rows of two read better than a row of three and one of one.
  columns_ = (entries_.size() + rows - 1) / rows;
  row_lines_.resize(rows, 1);
  for (std::size_t i = 0; i < names_.size(); ++i)
    row_lines_[i / columns_] = std::max(row_lines_[i / columns_], names_[i].size());
  for (const std::size_t lines : row_lines_) height_ += kLegendLine * static_cast<double>(lines);
}

std::string Legend::script(double bottom, double page_height) const {
  std::string text;
  if (entries_.empty()) return text;
  const auto across = [&](double points) { return points / page_width_; };
  const auto up = [&](double points) { return points / page_height; };
  const double width = static_cast<double>(columns_) * (entry_width_ + kEntryGap) - kEntryGap;
  double top = bottom + height_;
  std::string colour_before;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && i % columns_ == 0) top -= kLegendLine * static_cast<double>(row_lines_[i / columns_ - 1]);
    const LegendEntry& entry = entries_[i];
    const double left =
        (page_width_ - width) / 2 + static_cast<double>(i % columns_) * (entry_width_ + kEntryGap);
    const double middle = up(top - kLegendLine / 2);
    if (!entry.dash.empty()) {
      colour_before = unlike(entry.colour, colour_before);
      text += fmt::format(
          "set arrow from screen {:.5f}, screen {:.5f} to screen {:.5f}, screen {:.5f} nohead lw 1.3 dt {} "
          "lc rgb '#{}'\n",
          across(left), middle, across(left + kSample), middle, entry.dash, colour_before);
    }
    if (entry.marker != 0) {
      text += fmt::format("set label '' at screen {:.5f}, screen {:.5f} point pt {} ps {} lc rgb '#{}'\n",
                          across(left + kSample / 2), middle, entry.marker, kMarkerSize, entry.colour);
    }
    for (std::size_t line = 0; line < names_[i].size(); ++line)
      text += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left\n", quoted(names_[i][line]),
                          across(left + kSample + kSampleGap),
                          up(top - kLegendLine * (static_cast<double>(line) + 0.5)));
  }
  return text;
}

namespace {

constexpr std::size_t kKeptOfStretch = 4;
/// Beside the seeds: x, mean and the band.
constexpr std::size_t kNumbersOfPoint = 4;

std::size_t numbers_of(const Figure& figure) {
  std::size_t numbers = 0;
  for (const FigurePanel& panel : figure.panels)
    for (const FigureSeries& line : panel.series)
      for (const FigurePoint& point : line.points) numbers += kNumbersOfPoint + point.seeds.size();
  return numbers;
}

bool is_lower(const FigurePoint& left, const FigurePoint& right) {
  return left.mean && (!right.mean || *left.mean < *right.mean);
}

bool is_higher(const FigurePoint& left, const FigurePoint& right) {
  return left.mean && (!right.mean || *left.mean > *right.mean);
}

/// Of points that stand in the order of x, those that stretches keep.
std::vector<FigurePoint> kept_points(const std::vector<FigurePoint>& points, std::size_t stretches,
                                     bool is_log) {
  // A point that a logarithmic axis cannot show is in the first stretch.
  const auto place = [&](const FigurePoint& point) {
    return is_log ? std::log(std::max(point.x, std::numeric_limits<double>::min())) : point.x;
  };
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const FigurePoint& point : points) {
    if (is_log && !(point.x > 0)) continue;
    low = std::min(low, place(point));
    high = std::max(high, place(point));
  }
  const auto stretch_of = [&](const FigurePoint& point) {
    const double share = high > low ? (place(point) - low) / (high - low) : 0;
    return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(stretches - 1));
  };
  std::vector<FigurePoint> kept;
  for (std::size_t first = 0; first < points.size();) {
    std::size_t last = first;
    while (last + 1 < points.size() && stretch_of(points[last + 1]) == stretch_of(points[first])) ++last;
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    std::vector<std::ptrdiff_t> places = {begin - points.begin(), end - points.begin() - 1,
                                          std::min_element(begin, end, is_lower) - points.begin(),
                                          std::min_element(begin, end, is_higher) - points.begin()};
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const std::ptrdiff_t at : places) kept.push_back(points[static_cast<std::size_t>(at)]);
    first = last + 1;
  }
  return kept;
}

}  // namespace

Figure thinned(const Figure& figure, std::size_t most) {
  const std::size_t numbers = numbers_of(figure);
  if (numbers <= most) return figure;
  Figure thin = figure;
  std::size_t lines = 0, all = 0, left = 0, seeds = 0;
  for (FigurePanel& panel : thin.panels) {
    lines += panel.series.size();
    for (FigureSeries& line : panel.series) {
      all += line.points.size();
      for (FigurePoint& point : line.points) {
        if (point.seeds.size() >= kSeedLinesBelow) point.seeds.clear();
        seeds = std::max(seeds, point.seeds.size());
      }
    }
  }
  const std::size_t of_stretch = kKeptOfStretch * (kNumbersOfPoint + seeds) * lines;
  const std::size_t stretches = std::max<std::size_t>(most / of_stretch, 2);
  for (FigurePanel& panel : thin.panels)
    for (FigureSeries& line : panel.series) {
      line.points = kept_points(line.points, stretches, figure.x_log);
      left += line.points.size();
    }
  thin.caption += fmt::format(
      "{}Thinned to {} of {} points, the first, last, lowest and highest of each of {} stretches of the "
      "axis; "
      "figures/{}.csv has all.",
      thin.caption.empty() ? "" : " ", left, all, stretches, figure.id);
  return thin;
}

namespace {

// Lengths in points (1/72 inch).
constexpr double kPanelHeight = 132, kSmallPanelHeight = 100;
/// Lines of a panel's name, and what it takes beside them.
constexpr std::size_t kMostNameLines = 3;
constexpr double kPanelNameGap = 1.5;
constexpr double kTickRoom = 7, kTopMargin = 6;
/// Between the tick labels and the label of x, and between that and the legend.
constexpr double kXTickRoom = 13, kLegendGap = 5;
/// Dashes of references, in turn.
constexpr std::array<const char*, 3> kReferenceDashes = {"(8,5)", "(2,3)", "(12,3,2,3)"};

template <class Visit>
void each_series(const Figure& figure, const Visit& visit) {
  for (const FigurePanel& panel : figure.panels)
    for (const FigureSeries& series : panel.series) visit(series);
}

/// `width`: of the axis.
Axis x_axis(const Figure& figure, double width) {
  std::vector<double> places;
  std::size_t most_points = 0;
  each_series(figure, [&](const FigureSeries& series) {
    for (const FigurePoint& point : series.points)
      if (is_within(point.x, figure.x_range)) places.push_back(point.x);
    most_points = std::max(most_points, series.points.size());
  });
  Axis axis;
  if (!figure.x_categories.empty()) {
    axis.low = -0.5;
    axis.high = static_cast<double>(figure.x_categories.size()) - 0.5;
    for (std::size_t i = 0; i < figure.x_categories.size(); ++i)
      axis.ticks.emplace_back(static_cast<double>(i), figure.x_categories[i]);
    const double slot = width / static_cast<double>(figure.x_categories.size());
    axis.upright = widest(figure.x_categories, kTickFontSize) > slot - 3;
    if (axis.upright) thin_upright_labels(axis, slot);
    return axis;
  }
  if (figure.x_range) places = {figure.x_range->first, figure.x_range->second};
  axis = most_points <= 10 && !figure.x_range ? fit_axis_at(places, figure.x_log)
                                              : fit_axis(places, figure.x_log);
  keep_labels_apart(axis, width);
  return axis;
}

Axis y_axis(const Figure& figure) {
  std::vector<double> values;
  each_series(figure, [&](const FigureSeries& series) {
    const bool has_seeds = has_seed_lines(series);
    for (const FigurePoint& point : series.points) {
      if (!is_within(point.x, figure.x_range)) continue;
      if (point.mean) values.push_back(*point.mean);
      if (series.look == SeriesLook::reference) continue;
      for (const std::optional<double>& value : {point.low, point.high})
        if (value) values.push_back(*value);
      if (has_seeds)
        for (const std::optional<double>& value : point.seeds)
          if (value) values.push_back(*value);
    }
  });
  if (figure.y_range) values = {figure.y_range->first, figure.y_range->second};
  return fit_axis(values, figure.y_log);
}

/// The looks of the series by name, in the order in which they are first seen.
std::vector<LegendEntry> legend_entries(const Figure& figure) {
  std::vector<LegendEntry> entries;
  std::size_t styled = 0, references = 0;
  each_series(figure, [&](const FigureSeries& series) {
    const auto is_same = [&](const LegendEntry& entry) { return entry.name == series.name; };
    if (std::any_of(entries.begin(), entries.end(), is_same)) return;
    if (series.look == SeriesLook::reference) {
      entries.push_back(
          {series.name, kReferenceColour, kReferenceDashes[references++ % kReferenceDashes.size()], 0});
    } else {
      const Style style = style_of(styled++);
      entries.push_back(
          {series.name, style.colour, series.look == SeriesLook::marks ? "" : style.dash, style.marker});
    }
  });
  return entries;
}

}  // namespace

std::size_t seeds_of(const FigureSeries& series) {
  std::size_t count = 0;
  for (const FigurePoint& point : series.points) count = std::max(count, point.seeds.size());
  return count;
}

bool has_seed_lines(const FigureSeries& series) {
  return series.look == SeriesLook::line && seeds_of(series) > 1 && seeds_of(series) < kSeedLinesBelow;
}

FigureLayout::FigureLayout(const Figure& figure)
    : width(figure.panels.size() > 1 ? kTwoColumns : kWidth),
      y(y_axis(figure)),
      heading(figure.title, figure.caption, width),
      looks(legend_entries(figure)),
      legend(looks, width) {
  const std::size_t count = std::max<std::size_t>(figure.panels.size(), 1);
  columns = count == 1 ? 1 : count == 2 || count == 4 ? 2 : 3;
  rows = (count + columns - 1) / columns;
  const bool named = count > 1;
  panel_height = named ? kSmallPanelHeight : kPanelHeight;
  double tick_width = 0;
  for (const auto& [place, label] : y.ticks)
    tick_width = std::max(tick_width, text_width(label, kTickFontSize));
  // The label of y has as many lines as the panels' height leaves, which grows with their names.
  y_label =
      wrapped(figure.y_label, kFontSize, (panel_height + kBetween) * static_cast<double>(rows) - kBetween);
  left_margin = 3 + kLabelLine * static_cast<double>(y_label.size()) + kTickRoom + tick_width;
  panel_width = (width - left_margin - kRightMargin - static_cast<double>(columns - 1) * kBetween) /
                static_cast<double>(columns);
  std::size_t most_lines = 0;
  for (const FigurePanel& panel : figure.panels) {
    if (!named) break;
    panel_names.push_back(fitted_lines(panel.name, kFontSize, panel_width, kMostNameLines));
    most_lines = std::max(most_lines, panel_names.back().size());
  }
  panel_name = named ? kLabelLine * static_cast<double>(most_lines) + kPanelNameGap : 0;
  step = panel_height + kBetween + panel_name;
  x = x_axis(figure, panel_width);
  // In the middle of the panels, which is right of that of the page.
  x_label = wrapped(figure.x_label, kFontSize, width - left_margin + kRightMargin - 2 * kPageMargin);

  legend_bottom = heading.caption_height() + kLegendGap;
  const double label_height = kLabelLine * static_cast<double>(x_label.size());
  x_label_middle = legend_bottom + legend.height() + kLegendGap + label_height / 2;
  bottom = x_label_middle + label_height / 2 +
           (x.upright ? widest(figure.x_categories, kTickFontSize) + 8 : kXTickRoom);
  height = bottom + step * static_cast<double>(rows) - kBetween + kTopMargin + heading.title_height();
}

double FigureLayout::left(std::size_t panel) const {
  return left_margin + static_cast<double>(panel % columns) * (panel_width + kBetween);
}

double FigureLayout::low(std::size_t panel) const {
  const std::size_t row = panel / columns;
  return bottom + static_cast<double>(rows - 1 - row) * step;
}

const LegendEntry& FigureLayout::look_of(const std::string& name) const {
  return *std::find_if(looks.begin(), looks.end(),
                       [&](const LegendEntry& entry) { return entry.name == name; });
}

namespace {

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  if (!stream)
    throw EnvironmentError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

/// Viewers blur the cells of a small picture that they enlarge, unless they are told not to.
void keep_images_sharp(const std::filesystem::path& svg) {
  std::ostringstream content;
  content << std::ifstream(svg, std::ios::binary).rdbuf();
  std::string text = content.str();
  const std::string image = "<image ", sharp = "<image style='image-rendering:pixelated' ";
  bool has_any = false;
  for (std::size_t at = text.find(image); at != std::string::npos; at = text.find(image, at + sharp.size())) {
    text.replace(at, image.size(), sharp);
    has_any = true;
  }
  if (has_any) write_text(svg, text);
}

}  // namespace

std::vector<std::filesystem::path> render(const Drawing& drawing, const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    throw EnvironmentError(fmt::format("cannot create {}: {}", directory.string(), failure.message()));
  write_text(directory / (drawing.id + ".csv"), drawing.csv);
  write_text(directory / (drawing.id + ".gp"), drawing.script);
  run_gnuplot(directory, drawing.id + ".gp");
  keep_images_sharp(directory / (drawing.id + ".svg"));
  std::vector<std::filesystem::path> paths;
  for (const char* ending : {".csv", ".gp", ".svg", ".pdf", ".png"})
    paths.push_back(directory / (drawing.id + ending));
  return paths;
}

namespace {

/// Of a figure on the page: some 400 kB.
constexpr std::size_t kMostNumbers = 8000;

std::string figure_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

nlohmann::ordered_json panel_json(const FigurePanel& panel) {
  using Json = nlohmann::ordered_json;
  Json series = Json::array();
  for (const FigureSeries& line : panel.series) {
    Json points = Json::array();
    for (const FigurePoint& point : line.points) {
      Json seeds = Json::array();
      for (const std::optional<double>& seed : point.seeds) seeds.push_back(number_json(seed));
      points.push_back({{"x", point.x},
                        {"mean", number_json(point.mean)},
                        {"low", number_json(point.low)},
                        {"high", number_json(point.high)},
                        {"seeds", std::move(seeds)},
                        {"censored", point.censored}});
    }
    series.push_back({{"name", line.name},
                      {"reference", line.look == SeriesLook::reference},
                      {"joined", line.look != SeriesLook::marks},
                      {"points", std::move(points)}});
  }
  return {{"name", panel.name}, {"series", std::move(series)}};
}

nlohmann::ordered_json range_json(const std::optional<std::pair<double, double>>& range) {
  return range ? nlohmann::ordered_json({range->first, range->second}) : nlohmann::ordered_json();
}

}  // namespace

bool is_within(double value, const std::optional<std::pair<double, double>>& range) {
  return !range || (value >= range->first && value <= range->second);
}

bool has_censored(const Figure& figure) {
  for (const FigurePanel& panel : figure.panels)
    for (const FigureSeries& series : panel.series)
      for (const FigurePoint& point : series.points)
        if (point.censored) return true;
  return false;
}

std::size_t seed_count(const Figure& figure) {
  std::size_t seeds = 0;
  for (const FigurePanel& panel : figure.panels)
    for (const FigureSeries& series : panel.series)
      for (const FigurePoint& point : series.points) seeds = std::max(seeds, point.seeds.size());
  return seeds;
}

std::string figure_csv(const Figure& figure) {
  const std::size_t seeds = seed_count(figure);
  const bool names_panels = figure.panels.size() > 1, censored = has_censored(figure);
  std::string text = names_panels ? "panel,series,x,mean,low,high" : "series,x,mean,low,high";
  for (std::size_t seed = 0; seed < seeds; ++seed) text += fmt::format(",seed_{}", seed);
  if (censored) text += ",censored";
  text += figure.x_categories.empty() ? "\n" : ",x_label\n";
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        if (names_panels) text += gnuplot_csv_cell(panel.name) + ",";
        text += fmt::format("{},{},{},{},{}", gnuplot_csv_cell(series.name), point.x,
                            figure_number(point.mean), figure_number(point.low), figure_number(point.high));
        for (std::size_t seed = 0; seed < seeds; ++seed)
          text += "," + (seed < point.seeds.size() ? figure_number(point.seeds[seed]) : "");
        if (censored) text += point.censored ? ",1" : ",0";
        if (!figure.x_categories.empty())
          text += "," + gnuplot_csv_cell(figure.x_categories.at(static_cast<std::size_t>(point.x)));
        text += "\n";
      }
    }
  }
  return text;
}

std::string figure_html(const Figure& figure) {
  nlohmann::ordered_json panels = nlohmann::ordered_json::array();
  for (const FigurePanel& panel : figure.panels) panels.push_back(panel_json(panel));
  return page_data({{"draw", "lines"},
                    {"title", figure.title},
                    {"xLabel", figure.x_label},
                    {"yLabel", figure.y_label},
                    {"xLog", figure.x_log},
                    {"yLog", figure.y_log},
                    {"xRange", range_json(figure.x_range)},
                    {"yRange", range_json(figure.y_range)},
                    {"xNames", figure.x_categories},
                    {"panels", std::move(panels)}});
}

Drawing drawing_of(const Figure& figure) {
  const Figure shown = thinned(figure, kMostNumbers);
  return {figure.id,
          figure.title,
          figure.caption,
          figure_csv(figure),
          figure_script(figure),
          figure_html(shown),
          shown.caption.substr(figure.caption.size())};
}

}  // namespace moelab
