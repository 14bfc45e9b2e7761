#include "plots/thinned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plots/style.h"

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

}  // namespace moelab
