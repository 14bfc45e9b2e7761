#include "analysis/stats/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moelab {
namespace {

constexpr std::size_t kLeastSizes = 3;

struct Line {
  double slope = 0, intercept = 0;
};

/// The weighted regression of y on x.
Line regress(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights) {
  double total = 0, mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    total += weights[i];
    mean_x += weights[i] * x[i];
    mean_y += weights[i] * y[i];
  }
  mean_x /= total;
  mean_y /= total;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += weights[i] * (x[i] - mean_x) * (x[i] - mean_x);
    xy += weights[i] * (x[i] - mean_x) * (y[i] - mean_y);
  }
  return {xy / xx, mean_y - xy / xx * mean_x};
}

/// s²(n), ddof 1; none with fewer than two values.
std::optional<double> log_variance(const RateData& data, std::size_t size) {
  std::vector<double> logs;
  for (const auto& repetition : data.errors) {
    if (repetition[size]) logs.push_back(std::log(*repetition[size]));
  }
  if (logs.size() < 2) return std::nullopt;
  double mean = 0, square = 0;
  for (const double value : logs) mean += value / static_cast<double>(logs.size());
  for (const double value : logs) square += (value - mean) * (value - mean);
  return square / static_cast<double>(logs.size() - 1);
}

/// 1 / v(n); all equal where no variance is known, or all are zero.
std::vector<double> size_weights(const RateData& data) {
  std::vector<std::optional<double>> variances;
  double mean = 0, known = 0;
  for (std::size_t s = 0; s < data.samples.size(); ++s) {
    variances.push_back(log_variance(data, s));
    if (!variances.back()) continue;
    mean += *variances.back();
    ++known;
  }
  mean = known > 0 ? mean / known : 0;
  std::vector<double> weights;
  for (const std::optional<double>& variance : variances) {
    weights.push_back(mean > 0 ? 2 / (variance.value_or(mean) + mean) : 1);
  }
  return weights;
}

}  // namespace

RateData rate_data(const ResultTable& table, const RateQuery& query) {
  RateData data;
  std::vector<std::pair<double, const ResultRow*>> chosen;
  std::size_t repetitions = 0;
  for (const ResultRow& row : table.rows) {
    if (row.arm != query.arm) continue;
    const SweepValue* const along = row.coordinate(query.along);
    if (!row.is_at(query.where) || !along || !along->number()) continue;
    const double n = *along->number();
    if (query.window && (n < query.window->low || n > query.window->high)) continue;
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
  RateEstimate estimate;
  std::vector<double> slopes;
  for (const auto& repetition : data.errors) {
    std::vector<double> log_n, log_error, weight;
    for (std::size_t s = 0; s < data.samples.size(); ++s) {
      if (!repetition[s]) {
        ++estimate.missing;
        continue;
      }
      log_n.push_back(std::log(data.samples[s]));
      log_error.push_back(std::log(*repetition[s]));
      weight.push_back(weights[s]);
    }
    estimate.slopes.emplace_back();
    if (log_n.size() < kLeastSizes) {
      ++estimate.left_out;
      continue;
    }
    const Line power = regress(log_n, log_error, weight);
    estimate.slopes.back() = power.slope;
    estimate.intercept += power.intercept;
    slopes.push_back(power.slope);
  }
  if (slopes.empty()) return estimate;
  estimate.intercept /= static_cast<double>(slopes.size());
  estimate.slope = mean_estimate(slopes);
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

const std::vector<RateStatement>& rate_statements() {
  static const std::vector<RateStatement> statements = {
      {"n^-1/2", {-0.5 - kRateTolerance, -0.5 + kRateTolerance}},
      {"n^-1/4", {-0.25 - kRateTolerance, -0.25 + kRateTolerance}},
      {"slower", {-0.25 + kRateTolerance, std::numeric_limits<double>::infinity()}}};
  return statements;
}

}  // namespace moelab
