#include "analysis/stats/rate_laws.h"

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

constexpr std::size_t kLeastLawSizes = 4, kLeastLawRepetitions = 2;
constexpr double kStandardErrors = 4;
constexpr double kLargestSize = 1e15;

/// ln g(n) = exponent · ln n, or −τ ln ln n with τ ≥ 0 free.
struct Law {
  std::string name;
  std::optional<double> exponent;
};

const std::vector<Law> kLaws = {{"n^-1/2", -0.5}, {"n^-1/4", -0.25}, {"1/log^τ n", std::nullopt}};

struct FittedLaw {
  double log_constant = 0, tau = 0;
  std::optional<double> exponent;
  double at(double n) const {
    return log_constant + (exponent ? *exponent * std::log(n) : -tau * std::log(std::log(n)));
  }
};

/// What the errors at one size are: their logarithms' mean and variance.
struct SizeSummary {
  double n = 0, mean = 0, variance = 0;
};

FittedLaw fit(const Law& law, const std::vector<SizeSummary>& sizes, std::size_t held_out) {
  double total = 0, mean_x = 0, mean_y = 0;
  const auto x = [&](const SizeSummary& size) {
    return law.exponent ? std::log(size.n) : std::log(std::log(size.n));
  };
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    if (s == held_out) continue;
    const double weight = 1 / sizes[s].variance;
    total += weight;
    mean_x += weight * x(sizes[s]);
    mean_y += weight * sizes[s].mean;
  }
  mean_x /= total;
  mean_y /= total;
  if (law.exponent) return {mean_y - *law.exponent * mean_x, 0, law.exponent};
  double xx = 0, xy = 0;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    if (s == held_out) continue;
    const double deviation = x(sizes[s]) - mean_x;
    xx += deviation * deviation / sizes[s].variance;
    xy += deviation * (sizes[s].mean - mean_y) / sizes[s].variance;
  }
  const double tau = std::max(0.0, -xy / xx);
  return {mean_y + tau * mean_x, tau, std::nullopt};
}

/// Of each size with two errors or more; variances are drawn half-way to their mean.
std::vector<SizeSummary> summaries_of(const RateData& data) {
  std::vector<SizeSummary> sizes;
  double mean_variance = 0;
  for (std::size_t s = 0; s < data.samples.size(); ++s) {
    std::vector<double> logs;
    for (const auto& repetition : data.errors) {
      if (repetition[s]) logs.push_back(std::log(*repetition[s]));
    }
    if (logs.size() < kLeastLawRepetitions) continue;
    SizeSummary size{data.samples[s]};
    for (const double value : logs) size.mean += value / static_cast<double>(logs.size());
    for (const double value : logs)
      size.variance += (value - size.mean) * (value - size.mean) / static_cast<double>(logs.size() - 1);
    mean_variance += size.variance;
    sizes.push_back(size);
  }
  mean_variance /= static_cast<double>(std::max<std::size_t>(sizes.size(), 1));
  for (SizeSummary& size : sizes) size.variance = (size.variance + mean_variance) / 2;
  return sizes;
}

/// Log-likelihoods of the held-out sizes, [law][repetition]; only of repetitions that lack no size.
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
        score -= residual * residual / (2 * sizes[s].variance);
        ++s;
      }
      if (whole) scores[l].push_back(score);
    }
  }
  return scores;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> told_apart_at(const std::vector<FittedLaw>& left, const std::vector<SizeSummary>& sizes,
                                    std::size_t repetitions) {
  double variance = 0;
  for (const SizeSummary& size : sizes) variance += size.variance / static_cast<double>(sizes.size());
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

}  // namespace

LawComparison compare_laws(const RateData& data) {
  LawComparison comparison;
  comparison.law = "not told apart";
  const std::vector<SizeSummary> sizes = summaries_of(data);
  if (sizes.size() < kLeastLawSizes) return comparison;
  const std::vector<std::vector<double>> scores = held_out_scores(data, sizes);
  if (scores.front().size() < kLeastLawRepetitions) return comparison;
  std::size_t best = 0;
  for (std::size_t l = 1; l < kLaws.size(); ++l) {
    if (mean_of(scores[l]) > mean_of(scores[best])) best = l;
  }
  std::vector<FittedLaw> left;
  for (std::size_t l = 0; l < kLaws.size(); ++l) {
    const FittedLaw fitted = fit(kLaws[l], sizes, sizes.size());
    LawScore score{kLaws[l].name, fitted.tau, std::nullopt, false};
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

}  // namespace moelab
