#include "plots/figure_layout.h"

#include <algorithm>

#include "plots/style.h"

namespace moelab {
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

}  // namespace moelab
