#include "analysis/stats/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/stats/rate_regression.h"

namespace moelab {
namespace {

constexpr std::size_t kLeastSizes = 3;

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
