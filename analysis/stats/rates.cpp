#include "analysis/stats/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "analysis/stats/result_table.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// s²(n), ddof 1, or none for fewer than two values.
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

/// Columns count as dependent if the smallest eigenvalue of XᵀX is at most this share of the largest.
/// Logarithms of a few distinct values are far above it, rounding is far below.
constexpr double kDependent = 1e-10;

void check_positive(const Matrix& x, const Vector& y) {
  if ((x.array() <= 0).any() || (y.array() <= 0).any())
    throw InvalidOption("values", "a power law needs positive ones");
}

constexpr std::size_t kLeastLawSizes = 4, kLeastLawRepetitions = 2;
constexpr double kStandardErrors = 4;
constexpr double kLargestSize = 1e15;

/// ln g(n) = exponent · ln n, or −τ ln ln n with τ ≥ 0 free.
struct Law {
  std::string name;
  std::optional<double> exponent;
};

const std::vector<Law> kLaws = {{"n^-1/2", -0.5}, {"n^-1/4", -0.25}, {"1/log^τ n", std::nullopt}};

/// ln e = constant + slope · ln n, or slope · ln ln n of the logarithmic law.
struct FittedLaw {
  bool is_power = true;
  double slope = 0, constant = 0;
  double at(double n) const { return constant + slope * abscissa(n); }
  double abscissa(double n) const { return is_power ? std::log(n) : std::log(std::log(n)); }
};

/// The errors at one size: the mean of their logarithms, and 1 / v(n).
struct SizeSummary {
  double n = 0, mean = 0, weight = 0;
};

/// The fit to all sizes except `held_out`.
FittedLaw fit(const Law& law, const std::vector<SizeSummary>& sizes, std::size_t held_out) {
  FittedLaw fitted{law.exponent.has_value(), law.exponent.value_or(0), 0};
  std::vector<double> x, y, weights;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    if (s == held_out) continue;
    x.push_back(fitted.abscissa(sizes[s].n));
    y.push_back(sizes[s].mean);
    weights.push_back(sizes[s].weight);
  }
  if (!law.exponent) fitted.slope = std::min(0.0, regress(x, y, weights).slope);
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    fitted.constant += weights[i] * (y[i] - fitted.slope * x[i]);
    total += weights[i];
  }
  fitted.constant /= total;
  return fitted;
}

/// The sizes with at least two errors, above 1, where the logarithmic law is undefined.
std::vector<SizeSummary> summaries_of(const RateData& data) {
  const std::vector<double> weights = size_weights(data);
  std::vector<SizeSummary> sizes;
  for (std::size_t s = 0; s < data.samples.size(); ++s) {
    if (data.samples[s] <= 1) continue;
    std::vector<double> logs;
    for (const auto& repetition : data.errors) {
      if (repetition[s]) logs.push_back(std::log(*repetition[s]));
    }
    if (logs.size() < kLeastLawRepetitions) continue;
    sizes.push_back({data.samples[s], mean_estimate(logs).mean, weights[s]});
  }
  return sizes;
}

/// Log-likelihoods of the held-out sizes, [law][repetition], for repetitions with all sizes.
std::vector<std::vector<double>> held_out_scores(const RateData& data,
                                                 const std::vector<SizeSummary>& sizes) {
  std::vector<std::vector<double>> scores(kLaws.size());
  for (std::size_t l = 0; l < kLaws.size(); ++l) {
    std::vector<double> predicted;
    for (std::size_t s = 0; s < sizes.size(); ++s)
      predicted.push_back(fit(kLaws[l], sizes, s).at(sizes[s].n));
    for (const auto& repetition : data.errors) {
      double score = 0;
      bool whole = true;
      std::size_t s = 0;
      for (std::size_t place = 0; place < data.samples.size(); ++place) {
        if (s >= sizes.size() || data.samples[place] != sizes[s].n) continue;
        whole &= repetition[place].has_value();
        if (!whole) break;
        const double residual = std::log(*repetition[place]) - predicted[s];
        score -= 0.5 * sizes[s].weight * residual * residual;
        ++s;
      }
      if (whole) scores[l].push_back(score);
    }
  }
  return scores;
}

std::optional<double> told_apart_at(const std::vector<FittedLaw>& left, const std::vector<SizeSummary>& sizes,
                                    std::size_t repetitions) {
  double variance = 0;
  for (const SizeSummary& size : sizes) variance += 1 / (size.weight * static_cast<double>(sizes.size()));
  const double enough = kStandardErrors * std::sqrt(variance / static_cast<double>(repetitions));
  for (double n = 2 * sizes.back().n; n <= kLargestSize; n *= 2) {
    bool all = true;
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) all &= std::abs(left[i].at(n) - left[j].at(n)) >= enough;
    }
    if (all) return n;
  }
  return std::nullopt;
}

constexpr std::size_t kLeastSizes = 3;

/// The least-squares line of ln typical(errors at n) on ln n. None for fewer than three sizes.
template <class TypicalError>
std::optional<Line> typical_line(const RateData& data, const TypicalError& typical) {
  std::vector<double> log_n, log_error;
  for (std::size_t s = 0; s < data.samples.size(); ++s) {
    std::vector<double> errors;
    for (const auto& repetition : data.errors) {
      if (repetition[s]) errors.push_back(*repetition[s]);
    }
    if (errors.empty()) continue;
    log_n.push_back(std::log(data.samples[s]));
    log_error.push_back(std::log(typical(errors)));
  }
  if (log_n.size() < kLeastSizes) return std::nullopt;
  return regress(log_n, log_error, std::vector<double>(log_n.size(), 1.0));
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
std::optional<Line> repetition_line(const RateData& data, std::size_t repetition) {
  return typical_line({data.samples, {data.errors[repetition]}},
                      [](const std::vector<double>& errors) { return errors.front(); });
}

/// The jackknife pseudo-value of a repetition, where `all` is the line of the root mean squares.
std::optional<Line> pseudo_line(const std::optional<Line>& all, const RateData& data,
                                std::size_t repetition) {
  RateData others = data;
  others.errors.erase(others.errors.begin() + static_cast<std::ptrdiff_t>(repetition));
  const std::optional<Line> without = typical_line(others, root_mean_square);
  if (!all || !without) return std::nullopt;
  const auto count = static_cast<double>(data.errors.size());
  const auto value = [count](double with_it, double without_it) {
    return count * with_it - (count - 1) * without_it;
  };
  return Line{value(all->slope, without->slope), value(all->intercept, without->intercept)};
}

}  // namespace

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

std::optional<Proportion> fit_proportion(const Vector& x, const Vector& y) {
  check_positive(x, y);
  if (y.size() < 2) return std::nullopt;
  const Vector logs = (y.array() / x.array()).log().matrix();
  const double mean = logs.mean(), freedom = static_cast<double>(y.size() - 1);
  return Proportion{std::exp(mean), std::sqrt((logs.array() - mean).square().sum() / freedom)};
}

std::optional<PowerLaw> fit_power_law(const Matrix& x, const Vector& y) {
  check_positive(x, y);
  const Eigen::Index n = x.rows(), m = x.cols();
  const int freedom = static_cast<int>(n - m - 1);
  if (freedom < 1) return std::nullopt;
  Matrix design(n, m + 1);
  design.col(0).setOnes();
  design.rightCols(m) = x.array().log().matrix();
  const Vector logs = y.array().log().matrix();
  const Matrix squares = design.transpose() * design;
  const Vector spectrum = symmetric_eigenvalues(squares);
  if (spectrum(0) <= kDependent * spectrum(m)) return std::nullopt;
  const Matrix covariance = inverse(squares);
  const Vector fitted = covariance * (design.transpose() * logs);
  const double variance = (logs - design * fitted).squaredNorm() / freedom;
  PowerLaw law;
  law.constant = std::exp(fitted(0));
  law.deviation = std::sqrt(variance);
  for (Eigen::Index j = 1; j <= m; ++j) {
    law.exponents.push_back(fitted(j));
    // The interval of a mean of freedom + 1 values has as many degrees of freedom.
    law.intervals.push_back(
        student_interval(fitted(j), variance * covariance(j, j) * (freedom + 1), freedom + 1));
  }
  return law;
}

LawComparison compare_laws(const RateData& data) {
  LawComparison comparison;
  comparison.law = "not told apart";
  const std::vector<SizeSummary> sizes = summaries_of(data);
  if (sizes.size() < kLeastLawSizes) return comparison;
  const std::vector<std::vector<double>> scores = held_out_scores(data, sizes);
  if (scores.front().size() < kLeastLawRepetitions) return comparison;
  std::size_t best = 0;
  for (std::size_t l = 1; l < kLaws.size(); ++l) {
    if (mean_estimate(scores[l]).mean > mean_estimate(scores[best]).mean) best = l;
  }
  std::vector<FittedLaw> left;
  for (std::size_t l = 0; l < kLaws.size(); ++l) {
    const FittedLaw fitted = fit(kLaws[l], sizes, sizes.size());
    LawScore score{kLaws[l].name, fitted.is_power ? 0 : -fitted.slope, std::nullopt, false};
    if (l != best) {
      std::vector<double> differences;
      for (std::size_t r = 0; r < scores[l].size(); ++r)
        differences.push_back(scores[l][r] - scores[best][r]);
      score.against_best = mean_estimate(differences);
      score.excluded = score.against_best->interval && score.against_best->interval->high < 0;
    }
    if (!score.excluded) left.push_back(fitted);
    comparison.laws.push_back(std::move(score));
  }
  if (left.size() == 1)
    comparison.law = kLaws[best].name;
  else
    comparison.told_apart_at = told_apart_at(left, sizes, scores[best].size());
  return comparison;
}

void bind_average(Fields& fields, RateAverage& average) {
  fields.add("average", average, {"logarithms", "squares"},
             "averaged over repetitions: logarithms of errors, with a slope for each; or squares, with one "
             "slope, where some repetitions have another order");
}

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
    // Zero and NaN have no logarithm.
    if (!(metric->second > 0) || !std::isfinite(metric->second)) continue;
    const auto place = std::lower_bound(data.samples.begin(), data.samples.end(), n) - data.samples.begin();
    data.errors[static_cast<std::size_t>(row->seed)][static_cast<std::size_t>(place)] = metric->second;
  }
  return data;
}

RateEstimate estimate_rate(const RateData& data) {
  const bool of_squares = data.average == RateAverage::squares;
  std::optional<Line> all;
  if (of_squares) all = typical_line(data, root_mean_square);
  RateEstimate estimate;
  std::vector<double> slopes;
  for (std::size_t r = 0; r < data.errors.size(); ++r) {
    const auto& errors = data.errors[r];
    const auto missing = std::count(errors.begin(), errors.end(), std::nullopt);
    estimate.missing += static_cast<int>(missing);
    estimate.slopes.emplace_back();
    std::optional<Line> line;
    if (errors.size() - static_cast<std::size_t>(missing) >= kLeastSizes) {
      line = of_squares ? pseudo_line(all, data, r) : repetition_line(data, r);
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
  if (of_squares) {
    const Line whole = all.value_or(Line{});
    // Pseudo-values correct a bias, but their mean varies more than the slope of all repetitions.
    const double shift = whole.slope - estimate.slope->mean;
    for (double& slope : slopes) slope += shift;
    for (std::optional<double>& slope : estimate.slopes)
      if (slope) *slope += shift;
    estimate.slope = mean_estimate(slopes);
    estimate.intercept = whole.intercept;
  }
  if (const auto line = typical_line(data, median)) estimate.median_slope = line->slope;
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
