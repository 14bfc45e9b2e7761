#include "plots/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "plots/report/table.h"
#include "plots/texts.h"

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
/// Most lines of a panel's name.
constexpr std::size_t kMostNameLines = 3;
/// Lines of the label of an axis.
constexpr std::size_t kMostLabelLines = 6;
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

/// Upright names of places are at most so long.
constexpr double kMostUpright = 100;

/// `width`: of the axis. Adds to `key` what stands for names.
Axis x_axis(const Figure& figure, double width, std::string& key) {
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
    const double slot = width / static_cast<double>(figure.x_categories.size());
    std::vector<std::string> names;
    for (const std::string& name : figure.x_categories) names.push_back(math_text(name));
    axis.upright = widest(names, kTickFontSize) > slot - 3;
    if (axis.upright) {
      const FittedNames fitted = fitted_names(names, kTickFontSize, kMostUpright, 1, "K");
      for (std::size_t i = 0; i < names.size(); ++i)
        names[i] = fitted.lines[i].empty() ? "" : fitted.lines[i].front();
      axis.size = fitted.size;
      key += fitted.key;
    }
    for (std::size_t i = 0; i < names.size(); ++i) axis.ticks.emplace_back(static_cast<double>(i), names[i]);
    if (axis.upright) thin_upright_labels(axis, slot);
    return axis;
  }
  if (figure.x_range) places = {figure.x_range->first, figure.x_range->second};
  axis = most_points <= 10 && !figure.x_range ? fit_axis_at(places, figure.x_log)
                                              : fit_axis(places, figure.x_log);
  keep_labels_apart(axis, width);
  return axis;
}

/// How far the labels of an axis of this width reach beyond its right or left end; below 0 if they do not.
double overhang_of(const Axis& axis, double width, bool at_left = false) {
  const auto forward = [&](double value) { return axis.logarithmic ? std::log10(value) : value; };
  double most = -width;
  for (const auto& [place, label] : axis.ticks) {
    if (label.empty()) continue;
    const double share = (forward(place) - forward(axis.low)) / (forward(axis.high) - forward(axis.low));
    const double half = (axis.upright ? axis.size : text_width(label, axis.size)) / 2;
    most = std::max(most, (at_left ? -share : share - 1) * width + half);
  }
  return most;
}

/// Calls `visit` with what the y axis has to show of a series: means first, or the ends of bands and the
/// seeds.
template <class Visit>
void each_height(const Figure& figure, const FigureSeries& series, bool of_means, const Visit& visit) {
  const bool has_seeds = has_seed_lines(series);
  for (const FigurePoint& point : series.points) {
    if (!is_within(point.x, figure.x_range)) continue;
    if (of_means) {
      if (point.mean) visit(point, *point.mean);
      continue;
    }
    if (series.look == SeriesLook::reference) continue;
    for (const std::optional<double>& value : {point.low, point.high})
      if (value) visit(point, *value);
    if (!has_seeds) continue;
    for (const std::optional<double>& value : point.seeds)
      if (value) visit(point, *value);
  }
}

Axis y_axis(const Figure& figure) {
  std::vector<double> values;
  const auto bounded = [&](double value) {
    return figure.y_bounds ? std::clamp(value, figure.y_bounds->first, figure.y_bounds->second) : value;
  };
  each_series(figure, [&](const FigureSeries& series) {
    for (const bool of_means : {true, false})
      each_height(figure, series, of_means,
                  [&](const FigurePoint&, double value) { values.push_back(bounded(value)); });
  });
  if (figure.y_range) values = {figure.y_range->first, figure.y_range->second};
  Axis axis = fit_axis(values, figure.y_log);
  if (!figure.y_bounds || figure.y_log || figure.y_range) return axis;
  return axis_between(bounded(axis.low), bounded(axis.high));
}

bool is_drawn(const Figure& figure, const FigurePoint& point) {
  return point.mean && std::isfinite(*point.mean) && !(figure.y_log && *point.mean <= 0) &&
         !(figure.x_log && point.x <= 0) && is_within(point.x, figure.x_range) &&
         is_within(*point.mean, figure.y_range);
}

/// The names of the series, in an order that all panels agree with if there is one: a name stands behind the
/// name that precedes it in its panel.
std::vector<std::string> series_names(const Figure& figure) {
  std::vector<std::string> names;
  for (const FigurePanel& panel : figure.panels) {
    std::size_t next = 0;
    for (const FigureSeries& series : panel.series) {
      const auto found = std::find(names.begin(), names.end(), series.name);
      if (found != names.end()) {
        next = std::max(next, static_cast<std::size_t>(found - names.begin()) + 1);
        continue;
      }
      if (next == 0 && &panel != &figure.panels.front()) next = names.size();
      names.insert(names.begin() + static_cast<std::ptrdiff_t>(next++), series.name);
    }
  }
  return names;
}

/// The looks of the series by name, in the order in which they are first seen.
std::vector<SeriesStyle> styles_of(const Figure& figure) {
  std::vector<SeriesStyle> entries;
  std::size_t styled = 0, references = 0;
  for (const std::string& name : series_names(figure)) {
    std::optional<SeriesLook> look;
    each_series(figure, [&](const FigureSeries& series) {
      if (!look && series.name == name) look = series.look;
    });
    if (look == SeriesLook::reference) {
      entries.push_back(
          {name, kReferenceColour, kReferenceDashes[references++ % kReferenceDashes.size()], 0});
    } else {
      entries.push_back(style_of(styled++, name));
      if (look == SeriesLook::marks) entries.back().dash.clear();
    }
  }
  return entries;
}

/// The looks of what the figure draws. A series whose points no line joins has no line in the legend.
std::vector<SeriesStyle> legend_entries(const Figure& figure, const std::vector<SeriesStyle>& looks) {
  std::vector<SeriesStyle> entries;
  for (const SeriesStyle& look : looks) {
    bool has_point = false, has_line = false;
    each_series(figure, [&](const FigureSeries& series) {
      if (series.name != look.name) return;
      for (std::size_t i = 0; i < series.points.size(); ++i) {
        if (!is_drawn(figure, series.points[i])) continue;
        has_point = true;
        has_line = has_line || (i > 0 && is_drawn(figure, series.points[i - 1]));
      }
    });
    if (!has_point) continue;
    entries.push_back(look);
    if (!has_line && look.marker != 0) entries.back().dash.clear();
  }
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

void leave_out_outliers(Figure& figure) {
  // A band may reach so many times as far as the means do. A mean is an outlier if it does, and few are.
  constexpr double kBandReach = 3, kMeanReach = 10, kFew = 0.1;
  if (figure.y_range) return;
  const auto height = [&](double value) { return figure.y_log ? std::log10(value) : value; };
  const auto is_shown = [&](double value) { return std::isfinite(value) && (!figure.y_log || value > 0); };
  std::vector<double> means;
  each_series(figure, [&](const FigureSeries& series) {
    each_height(figure, series, true, [&](const FigurePoint&, double value) {
      if (is_shown(value)) means.push_back(height(value));
    });
  });
  if (means.size() < 2) return;
  std::sort(means.begin(), means.end());
  const auto quantile = [&](double share) {
    return means[static_cast<std::size_t>(share * static_cast<double>(means.size() - 1))];
  };
  double low = means.front(), high = means.back();
  const double middle = quantile(0.9) - quantile(0.1);
  const auto is_far = [&](double mean) {
    return middle > 0 &&
           (mean > quantile(0.9) + kMeanReach * middle || mean < quantile(0.1) - kMeanReach * middle);
  };
  const auto far = static_cast<double>(std::count_if(means.begin(), means.end(), is_far));
  if (!figure.y_log && far > 0 && far <= kFew * static_cast<double>(means.size())) {
    low = *std::find_if_not(means.begin(), means.end(), is_far);
    high = *std::find_if_not(means.rbegin(), means.rend(), is_far);
  }
  if (!(low < high)) return;
  const double room = kBandReach * (high - low);
  double lowest = low, highest = high;
  std::vector<std::string> outside;
  each_series(figure, [&](const FigureSeries& series) {
    std::optional<double> farthest;
    for (const bool of_means : {true, false})
      each_height(figure, series, of_means, [&](const FigurePoint&, double value) {
        if (!is_shown(value)) return;
        const double own = height(value), beyond = std::max(own - high, low - own);
        if (beyond <= room) {
          lowest = std::min(lowest, own);
          highest = std::max(highest, own);
        } else if (!farthest || beyond > std::max(height(*farthest) - high, low - height(*farthest))) {
          farthest = value;
        }
      });
    if (farthest) outside.push_back(fmt::format("{} reaches {:.2g}", series.name, *farthest));
  });
  if (outside.empty()) return;
  const double margin = 0.05 * (highest - lowest);
  const auto value = [&](double own) { return figure.y_log ? std::pow(10, own) : own; };
  figure.y_range = {value(lowest - margin), value(highest + margin)};
  std::sort(outside.begin(), outside.end());
  outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
  figure.caption += fmt::format(" Outside the axis: {}.", fmt::join(outside, "; "));
}

namespace {

constexpr double kDirectGap = 3;

/// Names at the ends of lines.
struct DirectLabel {
  const SeriesStyle* look;
  double height;  ///< of its middle, above the lower edge of the panel
};

/// The labels of the lines of a panel of this height, apart from each other; none if they would be far from
/// their ends.
std::vector<DirectLabel> direct_labels(const Figure& figure, const std::vector<SeriesStyle>& entries,
                                       const Axis& y, double panel_height) {
  constexpr std::size_t kMostDirect = 4;
  std::vector<DirectLabel> labels;
  if (figure.panels.size() != 1 || entries.size() > kMostDirect) return labels;
  const auto height = [&](double value) { return y.logarithmic ? std::log10(value) : value; };
  for (const SeriesStyle& look : entries)
    for (const FigureSeries& series : figure.panels.front().series) {
      if (series.name != look.name) continue;
      const auto last = std::find_if(series.points.rbegin(), series.points.rend(),
                                     [&](const FigurePoint& point) { return is_drawn(figure, point); });
      if (last == series.points.rend()) continue;
      labels.push_back(
          {&look, panel_height * (height(*last->mean) - height(y.low)) / (height(y.high) - height(y.low))});
    }
  std::sort(labels.begin(), labels.end(),
            [](const DirectLabel& left, const DirectLabel& right) { return left.height < right.height; });
  const std::vector<DirectLabel> ends = labels;
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].height = std::max(labels[i].height, labels[i - 1].height + kLabelLine);
  for (std::size_t i = labels.size(); i-- > 0;) {
    const double most = i + 1 < labels.size() ? labels[i + 1].height - kLabelLine : panel_height;
    labels[i].height = std::min(labels[i].height, most);
    if (std::abs(labels[i].height - ends[i].height) > 1.5 * kLabelLine) return {};
  }
  return labels;
}

/// The corner of the panel, of 0, 1, 2 and 3 from the upper right anticlockwise, in which the fewest points
/// lie within this part of the width and height.
int emptiest_corner(const Figure& figure, const Axis& x, const Axis& y, double across, double up) {
  const auto share = [](const Axis& axis, double value) {
    const auto place = [&](double own) { return axis.logarithmic ? std::log10(own) : own; };
    return (place(value) - place(axis.low)) / (place(axis.high) - place(axis.low));
  };
  std::array<int, 4> counts{};
  for (const FigureSeries& series : figure.panels.front().series)
    for (const FigurePoint& point : series.points) {
      if (!is_drawn(figure, point)) continue;
      const double left = share(x, point.x), height = share(y, *point.mean);
      for (int corner = 0; corner < 4; ++corner) {
        const bool is_right = corner == 0 || corner == 3, is_upper = corner < 2;
        if ((is_right ? left > 1 - across : left < across) && (is_upper ? height > 1 - up : height < up))
          ++counts[static_cast<std::size_t>(corner)];
      }
    }
  return static_cast<int>(std::min_element(counts.begin(), counts.end()) - counts.begin());
}

}  // namespace

FigureLayout::FigureLayout(const Figure& figure, Texts texts, const PageLayout* scales)
    : looks(styles_of(figure)), scales_(scales) {
  // The report's page has its own width, font and legend.
  const bool is_whole = texts == Texts::all, is_named = figure.panels.size() > 1;
  set_page(is_whole ? figure.style : FigureStyle(), is_named ? kTwoColumns : kWidth);
  LegendPlace place = is_whole ? figure.style.legend.value_or(LegendPlace::below) : LegendPlace::below;
  double panel_height = is_named ? kSmallPanelHeight : kPanelHeight;
  if (!arrange(figure, texts, place, panel_height)) {
    place = LegendPlace::below;
    arrange(figure, texts, place, panel_height);
  }
  const std::optional<double> wanted = is_whole ? height_of(figure.style) : std::nullopt;
  if (!wanted) return;
  constexpr double kLeastPanel = 20;
  // Panels of another height may change the lines of names, and with them the room that is left.
  for (int round = 0; round < 3; ++round) {
    panel_height = std::max(panel_height + (*wanted - height) / static_cast<double>(rows), kLeastPanel);
    if (arrange(figure, texts, place, panel_height)) continue;
    place = LegendPlace::below;
    arrange(figure, texts, place, panel_height);
  }
}

bool FigureLayout::arrange(const Figure& figure, Texts texts, LegendPlace legend_place, double panel_height) {
  panels.clear();
  panel_names.clear();
  y = scales_ ? scales_->y : y_axis(figure);
  keep_labels_apart(y, panel_height, true);
  const bool is_whole = texts == Texts::all;
  const std::size_t count = std::max<std::size_t>(figure.panels.size(), 1);
  const bool named = count > 1;
  std::string key;

  // The legend, and the room that it takes beside or below the panels.
  const std::vector<SeriesStyle> entries =
      is_whole ? legend_entries(figure, looks) : std::vector<SeriesStyle>();
  const double natural = Legend::natural_width(entries);
  const bool is_below = legend_place == LegendPlace::below;
  std::vector<DirectLabel> direct;
  double right_margin = kRightMargin;
  if (legend_place == LegendPlace::direct) {
    direct = direct_labels(figure, entries, y, panel_height);
    if (direct.empty()) return false;
    double longest = 0;
    for (const DirectLabel& label : direct)
      longest = std::max(longest, text_width(math_text(label.look->name), kFontSize));
    right_margin = kDirectGap + longest + 2;
  }
  const double side = legend_place == LegendPlace::right ? natural : 0;
  right_margin = std::max(right_margin, side);
  if (right_margin > 0.4 * width) return false;
  const Legend legend(legend_place == LegendPlace::direct ? std::vector<SeriesStyle>() : entries,
                      is_below ? width : natural);
  key += legend.key();

  const auto columns_of = [&](double room) {
    constexpr double kLeastPanelWidth = 85;
    const std::size_t most = count == 1 ? 1 : count == 2 || count == 4 ? 2 : 3;
    const auto fitting =
        static_cast<std::size_t>(std::max((room + kBetween) / (kLeastPanelWidth + kBetween), 1.0));
    return std::min(most, fitting);
  };
  double tick_width = 0;
  for (const auto& [place, label] : y.ticks)
    tick_width = std::max(tick_width, text_width(label, kTickFontSize));
  columns = columns_of(width - 3 - kLabelLine - kTickRoom - tick_width - right_margin);
  rows = (count + columns - 1) / columns;
  // The label of y has as many lines as fit beside the panels without their names.
  const FittedNames y_names =
      fitted_names({figure.y_label}, kFontSize,
                   (panel_height + kBetween) * static_cast<double>(rows) - kBetween, kMostLabelLines, "Y");
  const std::vector<std::string>& y_label = y_names.lines.front();
  key += y_names.key;
  const double left_margin = 3 + kLabelLine * static_cast<double>(y_label.size()) + kTickRoom + tick_width;
  panel_width = (width - left_margin - right_margin - static_cast<double>(columns - 1) * kBetween) /
                static_cast<double>(columns);
  double name_size = kFontSize;
  std::size_t most_lines = 0;
  if (named) {
    std::vector<std::string> names;
    for (const FigurePanel& panel : figure.panels) names.push_back(panel.name);
    FittedNames fitted = fitted_names(names, kFontSize, panel_width, kMostNameLines, "P");
    panel_names = std::move(fitted.lines);
    name_size = fitted.size;
    key += fitted.key;
    for (const std::vector<std::string>& lines : panel_names) most_lines = std::max(most_lines, lines.size());
  }
  const double panel_name = named ? kLabelLine * static_cast<double>(most_lines) + kPanelNameGap : 0;
  step = panel_height + kBetween + panel_name;
  std::string key_of_x;
  x = scales_ ? scales_->x : x_axis(figure, panel_width, key_of_x);
  if (const double overhang = overhang_of(x, panel_width) - right_margin + 1; overhang > 0) {
    right_margin += overhang;
    panel_width -= overhang / static_cast<double>(columns);
    key_of_x.clear();
    if (!scales_) x = x_axis(figure, panel_width, key_of_x);
  }
  key += key_of_x;
  // The last label of a panel and the first one of the next share the gap.
  const auto labelled = [](const std::pair<double, std::string>& tick) { return !tick.second.empty(); };
  for (bool is_apart = columns == 1 || x.upright; !is_apart;) {
    const auto last = std::find_if(x.ticks.rbegin(), x.ticks.rend(), labelled);
    const double beyond = overhang_of(x, panel_width) + overhang_of(x, panel_width, true);
    is_apart = beyond < kBetween - 2 || last == x.ticks.rend() ||
               std::count_if(x.ticks.begin(), x.ticks.end(), labelled) < 2;
    if (!is_apart) last->second.clear();
  }
  // The label of x is centred below the panels, which lie right of the middle of the page.
  const FittedNames x_names =
      fitted_names({figure.x_label}, kFontSize, width - left_margin + right_margin - 2 * kPageMargin,
                   kMostLabelLines, "X");
  const std::vector<std::string>& x_label = x_names.lines.front();
  caption = figure.caption + key + x_names.key;
  const Heading heading = is_whole ? Heading(figure.style, figure.title, caption, width) : Heading();
  const double legend_bottom = is_whole ? heading.caption_height() + kLegendGap : 0;
  const double label_height = kLabelLine * static_cast<double>(x_label.size());
  const double x_label_middle =
      legend_bottom + (is_below ? legend.height() : 0) + (is_whole ? kLegendGap : 1) + label_height / 2;
  std::vector<std::string> x_ticks;
  for (const auto& [place, label] : x.ticks) x_ticks.push_back(label);
  const double bottom =
      x_label_middle + label_height / 2 + (x.upright ? widest(x_ticks, x.size) + 8 : kXTickRoom);
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
          panel.bottom + panel_height + 1 + kLabelLine * static_cast<double>(panel_names[p].size()) / 2,
          false, name_size);
    if (p == 0) {
      heading.place(panel.marks, width, height);
      place_centred(panel.marks, TextRole::x_label, x_label, (left_margin + width - right_margin) / 2,
                    x_label_middle, false, x_names.size);
      place_centred(panel.marks, TextRole::y_label, y_label,
                    3 + kLabelLine * static_cast<double>(y_label.size()) / 2,
                    bottom + (step * static_cast<double>(rows) - kBetween) / 2, true, y_names.size);
      const double top = bottom + step * static_cast<double>(rows) - kBetween - panel_name;
      if (is_below) {
        legend.place(panel.marks, legend_bottom);
      } else if (legend_place == LegendPlace::right) {
        legend.place(panel.marks, std::max(top - legend.height(), legend_bottom), width - right_margin);
      } else if (legend_place == LegendPlace::inside) {
        const double across = natural / panel_width, up = (legend.height() + 4) / panel_height;
        if (across > 0.8 || up > 0.6) return false;
        const int corner = emptiest_corner(figure, x, y, across, up);
        const bool is_right = corner == 0 || corner == 3, is_upper = corner < 2;
        legend.place(panel.marks,
                     is_upper ? panel.bottom + panel_height - legend.height() - 2 : panel.bottom + 2,
                     is_right ? panel.left + panel_width - natural : panel.left);
      }
      for (const DirectLabel& label : direct) {
        const std::string colour = readable_colour(label.look->colour);
        panel.marks.push_back({TextRole::legend, math_text(label.look->name),
                               panel.left + panel_width + kDirectGap, panel.bottom + label.height, false, 0,
                               kFontSize, colour});
      }
    }
    panels.push_back(std::move(panel));
  }
  return true;
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
          {"caption", layout.caption},
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

nlohmann::ordered_json page_json(const Figure& given) {
  // The page writes these texts itself.
  Figure figure = given;
  const auto set_math = [](std::string& text) { text = math_text(text); };
  set_math(figure.x_label);
  std::for_each(figure.x_categories.begin(), figure.x_categories.end(), set_math);
  for (FigurePanel& panel : figure.panels) {
    set_math(panel.name);
    for (FigureSeries& series : panel.series) set_math(series.name);
  }
  FigureJson json = data_json(figure);
  json.erase("layout");
  // Panels share their scales, as they do on paper.
  const FigureLayout all(figure, FigureLayout::Texts::axes);
  Figure alone = figure;
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    alone.panels = {figure.panels[p]};
    const FigureLayout layout(alone, FigureLayout::Texts::axes, &all);
    json["panels"][p]["layout"] = layout_json(layout);
  }
  return json;
}

}  // namespace moelab
