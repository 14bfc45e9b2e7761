#include "analysis/stats/rate_laws.h"

#include <algorithm>
#include <cmath>

#include "analysis/stats/rate_regression.h"

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

/// ln e = constant + slope · ln n, or slope · ln ln n of the logarithmic law.
struct FittedLaw {
  bool is_power = true;
  double slope = 0, constant = 0;
  double at(double n) const { return constant + slope * abscissa(n); }
  double abscissa(double n) const { return is_power ? std::log(n) : std::log(std::log(n)); }
};

/// What the errors at one size are: the mean of their logarithms, and 1 / v(n).
struct SizeSummary {
  double n = 0, mean = 0, weight = 0;
};

/// To all sizes but `held_out`.
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

/// Of each size above 1, at which the logarithmic law has no value, with two errors or more.
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

}  // namespace moelab
