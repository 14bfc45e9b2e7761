#include "app/figures/line_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/stats/bands.h"
#include "analysis/stats/observation.h"
#include "plots/style.h"

namespace moelab {
namespace {

BandPoint point_of_seeds(double x, const std::vector<std::optional<Interval>>& observations,
                         const PlottedValue& value, bool is_sequential) {
  if (value.may_be_censored()) return median_point(x, observations, is_sequential);
  std::vector<std::optional<double>> seeds;
  for (const std::optional<Interval>& seed : observations)
    seeds.push_back(seed ? std::optional(seed->low) : std::nullopt);
  return band_point(x, std::move(seeds), value.is_positive(), is_sequential);
}

}  // namespace

std::vector<FigurePoint> line_points(const LineGroup& group, const Horizontal& horizontal,
                                     const PlottedValue& value, bool is_sequential, CensoredCount& count) {
  std::size_t seeds = 0;
  for (const ResultRow* row : group.rows) seeds = std::max(seeds, static_cast<std::size_t>(row->seed) + 1);
  std::map<std::pair<double, std::string>, std::vector<std::optional<Interval>>> observations;
  bool any_done = false, any_value = false;
  for (const ResultRow* row : group.rows)
    for (const auto& [x, metrics] : horizontal.places(*row)) {
      std::vector<std::optional<Interval>>& at_x =
          observations.try_emplace({x, horizontal.point_of(*row)}, seeds).first->second;
      if (row->state != "done") continue;
      any_done = true;
      const std::optional<Interval> observation = value.of(*row, *metrics);
      if (!observation) continue;
      any_value = true;
      ++count.all;
      count.censored += is_exact(*observation) ? 0 : 1;
      at_x[static_cast<std::size_t>(row->seed)] = observation;
    }
  std::vector<FigurePoint> points;
  if (any_done && !any_value) return points;
  for (const auto& [place, at_x] : observations) {
    const double x = place.first;
    BandPoint band = point_of_seeds(x, at_x, value, is_sequential);
    points.push_back({x, band.mean, band.low, band.high, std::move(band.seeds), band.is_open});
  }
  return points;
}

std::string statistic_text(const std::vector<ShownValue>& values, std::size_t seeds, bool is_sequential) {
  // What each kind of value is drawn by: whether there is any, and whether it has intervals.
  struct Statistic {
    std::string mean, interval;
    bool is_there = false, has_interval = false;
  };
  const char* const interval = is_sequential ? "confidence sequence" : "interval";
  std::array<Statistic, 3> statistics = {
      Statistic{"geometric mean", fmt::format("95 % {} of logarithms", interval)},
      Statistic{"mean", fmt::format("95 % {}", is_sequential ? interval : "Student-t interval")},
      Statistic{"median",
                fmt::format("95 % {} of {}", interval, is_sequential ? "signs" : "order statistics")}};
  for (const ShownValue& shown : values) {
    Statistic& own = statistics[shown.value.may_be_censored() ? 2 : shown.value.is_positive() ? 0 : 1];
    own.is_there = true;
    own.has_interval = own.has_interval || shown.has_interval;
  }
  std::vector<std::string> parts;
  for (const Statistic& own : statistics)
    if (own.is_there)
      parts.push_back(own.mean + ", " + (own.has_interval ? own.interval : "too few seeds for an interval"));
  return fmt::format("{}{} seeds: {}{}.", is_sequential ? "Up to " : "", seeds, fmt::join(parts, "; "),
                     seeds < kSeedLinesBelow ? "; thin lines: single seeds" : "");
}

std::string censored_text(const CensoredCount& count) {
  if (count.censored == 0) return "";
  return fmt::format(
      " {} of {} seeds had not reached the target at their last step, which stands for them; where the "
      "median is among them its marker is open.",
      count.censored, count.all);
}

}  // namespace moelab
