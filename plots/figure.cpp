#include "plots/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "plots/report/table.h"

namespace moelab {
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
/// Between panels, and right of them.
constexpr double kBetween = 9, kRightMargin = 12;
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
std::vector<SeriesStyle> styles_of(const Figure& figure) {
  std::vector<SeriesStyle> entries;
  std::size_t styled = 0, references = 0;
  each_series(figure, [&](const FigureSeries& series) {
    const auto is_same = [&](const SeriesStyle& entry) { return entry.name == series.name; };
    if (std::any_of(entries.begin(), entries.end(), is_same)) return;
    if (series.look == SeriesLook::reference) {
      entries.push_back(
          {series.name, kReferenceColour, kReferenceDashes[references++ % kReferenceDashes.size()], 0});
    } else {
      entries.push_back(style_of(styled++, series.name));
      if (series.look == SeriesLook::marks) entries.back().dash.clear();
    }
  });
  return entries;
}

}  // namespace

bool is_within(double value, const std::optional<std::pair<double, double>>& range) {
  return !range || (value >= range->first && value <= range->second);
}

std::size_t seeds_of(const FigureSeries& series) {
  std::size_t count = 0;
  for (const FigurePoint& point : series.points) count = std::max(count, point.seeds.size());
  return count;
}

bool has_seed_lines(const FigureSeries& series) {
  return series.look == SeriesLook::line && seeds_of(series) > 1 && seeds_of(series) < kSeedLinesBelow;
}

std::size_t marker_step(const FigureSeries& series) {
  constexpr std::size_t kMarkersPerSeries = 12;
  if (series.look != SeriesLook::line) return 1;
  return std::max<std::size_t>((series.points.size() + kMarkersPerSeries - 1) / kMarkersPerSeries, 1);
}

FigureLayout::FigureLayout(const Figure& figure, Texts texts) : looks(styles_of(figure)) {
  const bool is_whole = texts == Texts::all;
  const std::size_t count = std::max<std::size_t>(figure.panels.size(), 1);
  const bool named = count > 1;
  width = named ? kTwoColumns : kWidth;
  y = y_axis(figure);
  const Heading heading(is_whole ? figure.title : "", is_whole ? figure.caption : "", width);
  const Legend legend(is_whole ? looks : std::vector<SeriesStyle>(), width);
  columns = count == 1 ? 1 : count == 2 || count == 4 ? 2 : 3;
  rows = (count + columns - 1) / columns;
  const double panel_height = named ? kSmallPanelHeight : kPanelHeight;
  double tick_width = 0;
  for (const auto& [place, label] : y.ticks)
    tick_width = std::max(tick_width, text_width(label, kTickFontSize));
  // The label of y has as many lines as fit beside the panels without their names.
  const std::vector<std::string> y_label =
      wrapped(figure.y_label, kFontSize, (panel_height + kBetween) * static_cast<double>(rows) - kBetween);
  const double left_margin = 3 + kLabelLine * static_cast<double>(y_label.size()) + kTickRoom + tick_width;
  panel_width = (width - left_margin - kRightMargin - static_cast<double>(columns - 1) * kBetween) /
                static_cast<double>(columns);
  std::size_t most_lines = 0;
  for (const FigurePanel& panel : figure.panels) {
    if (!named) break;
    panel_names.push_back(fitted_lines(panel.name, kFontSize, panel_width, kMostNameLines));
    most_lines = std::max(most_lines, panel_names.back().size());
  }
  const double panel_name = named ? kLabelLine * static_cast<double>(most_lines) + kPanelNameGap : 0;
  step = panel_height + kBetween + panel_name;
  x = x_axis(figure, panel_width);
  // The label of x is centred below the panels, which lie right of the middle of the page.
  const std::vector<std::string> x_label =
      wrapped(figure.x_label, kFontSize, width - left_margin + kRightMargin - 2 * kPageMargin);

  const double legend_bottom = (is_whole ? heading.caption_height() : 0) + kLegendGap;
  const double label_height = kLabelLine * static_cast<double>(x_label.size());
  const double x_label_middle = legend_bottom + legend.height() + kLegendGap + label_height / 2;
  const double bottom = x_label_middle + label_height / 2 +
                        (x.upright ? widest(figure.x_categories, kTickFontSize) + 8 : kXTickRoom);
  height = bottom + step * static_cast<double>(rows) - kBetween + kTopMargin + heading.title_height();

  for (std::size_t p = 0; p < count; ++p) {
    const std::size_t row = p / columns;
    PanelPlace panel{left_margin + static_cast<double>(p % columns) * (panel_width + kBetween),
                     bottom + static_cast<double>(rows - 1 - row) * step,
                     panel_width,
                     panel_height,
                     p + columns >= count,  // the lowest panel of each column
                     p % columns == 0};
    if (named)
      // Just above its panel, however many lines other names have.
      place_centred(
          panel.marks, TextRole::panel, panel_names[p], panel.left + panel_width / 2,
          panel.bottom + panel_height + 1 + kLabelLine * static_cast<double>(panel_names[p].size()) / 2);
    if (p == 0) {
      heading.place(panel.marks, width, height);
      legend.place(panel.marks, legend_bottom);
      place_centred(panel.marks, TextRole::x_label, x_label, (left_margin + width - kRightMargin) / 2,
                    x_label_middle);
      place_centred(panel.marks, TextRole::y_label, y_label,
                    3 + kLabelLine * static_cast<double>(y_label.size()) / 2,
                    bottom + (step * static_cast<double>(rows) - kBetween) / 2, true);
    }
    panels.push_back(std::move(panel));
  }
}

const SeriesStyle& FigureLayout::look_of(const std::string& name) const {
  return *std::find_if(looks.begin(), looks.end(),
                       [&](const SeriesStyle& style) { return style.name == name; });
}

namespace {

using FigureJson = nlohmann::ordered_json;

std::string figure_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

FigureJson series_json(const FigureSeries& line) {
  constexpr std::array<const char*, 3> kLooks = {"line", "marks", "reference"};
  FigureJson points = FigureJson::array();
  for (const FigurePoint& point : line.points) {
    FigureJson seeds = FigureJson::array();
    for (const std::optional<double>& seed : point.seeds) seeds.push_back(number_json(seed));
    points.push_back({{"x", point.x},
                      {"mean", number_json(point.mean)},
                      {"low", number_json(point.low)},
                      {"high", number_json(point.high)},
                      {"seeds", std::move(seeds)},
                      {"censored", point.censored}});
  }
  return {{"name", line.name},
          {"look", kLooks[static_cast<std::size_t>(line.look)]},
          {"seed_lines", has_seed_lines(line)},
          {"marker_step", marker_step(line)},
          {"points", std::move(points)}};
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

}  // namespace

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

nlohmann::ordered_json data_json(const Figure& figure) {
  const FigureLayout layout(figure);
  FigureJson panels = FigureJson::array(), styles = FigureJson::object();
  for (const FigurePanel& panel : figure.panels) {
    FigureJson series = FigureJson::array();
    for (const FigureSeries& line : panel.series) series.push_back(series_json(line));
    panels.push_back({{"name", panel.name}, {"series", std::move(series)}});
  }
  for (const SeriesStyle& style : layout.looks) styles[style.name] = style_json(style);
  return {{"kind", "lines"},
          {"id", figure.id},
          {"title", figure.title},
          {"caption", figure.caption},
          {"x_label", figure.x_label},
          {"y_label", figure.y_label},
          {"x_log", figure.x_log},
          {"y_log", figure.y_log},
          {"x_range", pair_json(figure.x_range)},
          {"y_range", pair_json(figure.y_range)},
          {"x_categories", figure.x_categories},
          {"panels", std::move(panels)},
          {"styles", std::move(styles)},
          {"layout", layout_json(layout)}};
}

nlohmann::ordered_json page_json(const Figure& figure) {
  FigureJson json = data_json(figure);
  json.erase("layout");
  Figure alone = figure;
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    alone.panels = {figure.panels[p]};
    json["panels"][p]["layout"] = layout_json(FigureLayout(alone, FigureLayout::Texts::axes));
  }
  return json;
}

}  // namespace moelab
