#include "analysis/stats/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/stats/observation.h"
#include "analysis/stats/rate_regression.h"

namespace moelab {
namespace {

constexpr std::size_t kLeastSizes = 3;

/// ln of `typical` of the errors at each size, regressed on ln n; none with fewer than three sizes.
template <class TypicalError>
std::optional<Line> typical_line(const RateData& data, const std::vector<double>& weights,
                                 const TypicalError& typical) {
  std::vector<double> log_n, log_error, weight;
  for (std::size_t s = 0; s < data.samples.size(); ++s) {
    std::vector<double> errors;
    for (const auto& repetition : data.errors) {
      if (repetition[s]) errors.push_back(*repetition[s]);
    }
    if (errors.empty()) continue;
    log_n.push_back(std::log(data.samples[s]));
    log_error.push_back(std::log(typical(errors)));
    weight.push_back(weights[s]);
  }
  if (log_n.size() < kLeastSizes) return std::nullopt;
  return regress(log_n, log_error, weight);
}

double root_mean_square(const std::vector<double>& errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

double median(const std::vector<double>& errors) {
  std::vector<Interval> exact;
  for (const double error : errors) exact.push_back({error, error});
  return median_of(exact).value;
}

/// The line of one repetition.
std::optional<Line> repetition_line(const RateData& data, const std::vector<double>& weights,
                                    std::size_t repetition) {
  return typical_line({data.samples, {data.errors[repetition]}}, weights,
                      [](const std::vector<double>& errors) { return errors.front(); });
}

/// What a repetition adds to `all`, the line of the root mean squares: a jackknife's pseudo-value.
std::optional<Line> pseudo_line(const std::optional<Line>& all, const RateData& data,
                                const std::vector<double>& weights, std::size_t repetition) {
  RateData others = data;
  others.errors.erase(others.errors.begin() + static_cast<std::ptrdiff_t>(repetition));
  const std::optional<Line> without = typical_line(others, weights, root_mean_square);
  if (!all || !without) return std::nullopt;
  const auto count = static_cast<double>(data.errors.size());
  const auto value = [count](double with_it, double without_it) {
    return count * with_it - (count - 1) * without_it;
  };
  return Line{value(all->slope, without->slope), value(all->intercept, without->intercept)};
}

}  // namespace

RateData rate_data(const ResultTable& table, const RateQuery& query) {
  RateData data{{}, {}, query.average};
  std::vector<std::pair<double, const ResultRow*>> chosen;
  std::size_t repetitions = 0;
  for (const ResultRow& row : table.rows) {
    if (row.arm != query.arm) continue;
    const SweepValue* const along = row.coordinate(query.along);
    if (!row.is_at(query.where) || !along || !query.reads(along->number())) continue;
    const double n = *along->number();
    chosen.emplace_back(n, &row);
    data.samples.push_back(n);
    repetitions = std::max(repetitions, static_cast<std::size_t>(row.seed) + 1);
  }
  std::sort(data.samples.begin(), data.samples.end());
  data.samples.erase(std::unique(data.samples.begin(), data.samples.end()), data.samples.end());
  data.errors.assign(repetitions, std::vector<std::optional<double>>(data.samples.size()));
  for (const auto& [n, row] : chosen) {
    const auto metric = row->metrics.find(query.metric);
    if (row->state != "done" || metric == row->metrics.end()) continue;
    // An error of zero or no number has no logarithm.
    if (!(metric->second > 0) || !std::isfinite(metric->second)) continue;
    const auto place = std::lower_bound(data.samples.begin(), data.samples.end(), n) - data.samples.begin();
    data.errors[static_cast<std::size_t>(row->seed)][static_cast<std::size_t>(place)] = metric->second;
  }
  return data;
}

RateEstimate estimate_rate(const RateData& data) {
  const std::vector<double> weights = size_weights(data);
  const bool of_squares = data.average == RateAverage::squares;
  const std::optional<Line> all = of_squares ? typical_line(data, weights, root_mean_square) : std::nullopt;
  RateEstimate estimate;
  std::vector<double> slopes;
  for (std::size_t r = 0; r < data.errors.size(); ++r) {
    const auto& errors = data.errors[r];
    const auto missing = std::count(errors.begin(), errors.end(), std::nullopt);
    estimate.missing += static_cast<int>(missing);
    estimate.slopes.emplace_back();
    std::optional<Line> line;
    if (errors.size() - static_cast<std::size_t>(missing) >= kLeastSizes) {
      line = of_squares ? pseudo_line(all, data, weights, r) : repetition_line(data, weights, r);
    }
    if (!line) {
      ++estimate.left_out;
      continue;
    }
    estimate.slopes.back() = line->slope;
    estimate.intercept += line->intercept;
    slopes.push_back(line->slope);
  }
  if (slopes.empty()) return estimate;
  estimate.intercept /= static_cast<double>(slopes.size());
  estimate.slope = mean_estimate(slopes);
  if (const auto line = typical_line(data, weights, median)) estimate.median_slope = line->slope;
  return estimate;
}

std::string to_string(RateVerdict verdict) {
  switch (verdict) {
    case RateVerdict::compatible:
      return "compatible";
    case RateVerdict::excluded:
      return "excluded";
    case RateVerdict::inconclusive:
      break;
  }
  return "inconclusive";
}

RateVerdict judge_slope(const std::optional<MeanEstimate>& slope, const Interval& range) {
  if (!slope || !slope->interval) return RateVerdict::inconclusive;
  const auto& [low, high] = *slope->interval;
  if (low >= range.low && high <= range.high) return RateVerdict::compatible;
  return high < range.low || low > range.high ? RateVerdict::excluded : RateVerdict::inconclusive;
}

RateVerdict judge_rate(const RateEstimate& estimate, const Interval& range) {
  return estimate.is_complete() ? judge_slope(estimate.slope, range) : RateVerdict::inconclusive;
}

const std::vector<RateStatement>& rate_statements() {
  static const std::vector<RateStatement> statements = {
      {"n^-1/2", {-0.5 - kRateTolerance, -0.5 + kRateTolerance}},
      {"n^-1/4", {-0.25 - kRateTolerance, -0.25 + kRateTolerance}},
      {"slower", {-0.25 + kRateTolerance, std::numeric_limits<double>::infinity()}}};
  return statements;
}

}  // namespace moelab
