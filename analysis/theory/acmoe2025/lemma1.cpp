#include "analysis/theory/acmoe2025/lemma1.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr int kSeparationDim = 8;
constexpr int kSeparationInstances = 2000, kSeparationMeasured = 200000;
constexpr double kSeparationSpreads[] = {0.25, 0.5, 1, 2};
/// Sums of 8 products, relative to their size.
constexpr double kSeparationRounding = 32 * std::numeric_limits<double>::epsilon();

/// The diagonal of M and the squared differences δμ_q².
struct SeparationInstance {
  Vector metric;
  Vector squares;

  double weighted() const { return metric.dot(squares); }
  /// d Cov_q(m, δμ²).
  double scaled_covariance() const {
    return (metric.array() - metric.mean()).matrix().dot((squares.array() - squares.mean()).matrix());
  }
};

/// With `separated_where_tight` the differences are exchanged between features until the tightest feature has
/// the largest, and so on.
SeparationInstance draw_instance(Engine& engine, double spread, const MetricRule& rule,
                                 bool separated_where_tight) {
  Vector dispersion = draw_log_normal(engine, kSeparationDim, spread);
  Vector squares = draw_normals(engine, kSeparationDim, 1).cwiseAbs2();
  if (separated_where_tight) {
    std::sort(dispersion.begin(), dispersion.end());
    std::sort(squares.begin(), squares.end(), std::greater<>());
  }
  return {rule(dispersion), squares};
}

}  // namespace

CheckFinding check_separation_criterion(const CheckEffort& effort, const MetricRule& rule) {
  const std::string id = "acmoe2025.lemma1.criterion";
  double largest = 0, mean_error = 0;
  int closer = 0, all = 0;
  for (const double spread : kSeparationSpreads) {
    Engine engine = check_stream(effort, id + fmt::format("{}", spread), 0);
    for (int i = 0; i < kSeparationInstances * effort.seeds; ++i) {
      const SeparationInstance instance = draw_instance(engine, spread, rule, false);
      const double plain = instance.squares.sum(), gain = instance.weighted() - plain;
      largest =
          larger(largest, std::abs(gain - instance.scaled_covariance()) / (instance.weighted() + plain));
      mean_error = larger(mean_error, std::abs(instance.metric.mean() - 1));
      if (gain < 0) ++closer;
      ++all;
    }
  }
  CheckFinding finding;
  finding.hypotheses = {
      {"mean_q m_q = 1 (largest deviation)", mean_error, mean_error <= kSeparationRounding}};
  finding.measured = largest;
  finding.error_bound = kSeparationRounding;
  finding.error_origin = "rounding: 32 epsilon";
  finding.details = {{"instances", all}, {"of which closer in M than without", closer}};
  return finding;
}

CheckFinding check_separated_where_tight(const CheckEffort& effort, const MetricRule& rule) {
  const std::string id = "acmoe2025.lemma1.separated_where_tight";
  double smallest = std::numeric_limits<double>::infinity();
  int farther = 0, all = 0;
  for (const double spread : kSeparationSpreads) {
    Engine engine = check_stream(effort, id + fmt::format("{}", spread), 0);
    for (int i = 0; i < kSeparationInstances * effort.seeds; ++i) {
      const SeparationInstance instance = draw_instance(engine, spread, rule, true);
      smallest = smaller(smallest, instance.scaled_covariance() / kSeparationDim);
      if (instance.weighted() >= instance.squares.sum()) ++farther;
      ++all;
    }
  }
  CheckFinding finding = every_instance(farther, all, "none: each instance is judged by itself");
  finding.details.emplace_back("smallest Cov_q(m, dmu^2)", smallest);
  return finding;
}

CheckFinding check_separation_failures(const CheckEffort& effort, double spread, double predicted,
                                       const MetricRule& rule) {
  const int instances = kSeparationMeasured * effort.seeds;
  Engine engine = check_stream(effort, fmt::format("acmoe2025.lemma1.unrelated{}", spread), 0);
  int closer = 0;
  for (int i = 0; i < instances; ++i) {
    const SeparationInstance instance = draw_instance(engine, spread, rule, false);
    if (instance.weighted() < instance.squares.sum()) ++closer;
  }
  return measured_frequency(closer, instances, predicted, 0.01);
}

std::vector<Check> acmoe2025_lemma1_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 1";
  const std::string id = "acmoe2025.lemma1.";
  std::vector<Check> list = {
      {id + "criterion", source,
       "|dmu|_M^2 - |dmu|^2 = d Cov_q(m_q, dmu_q^2) for M = diag(m) of mean 1, so that |dmu|_M >= |dmu| if "
       "and only if Cov >= 0 (largest relative difference)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_separation_criterion(effort); }},
      {id + "separated_where_tight", source,
       "|dmu|_M >= |dmu| for M = diag(1/s) of mean 1 where the tighter of two features has the larger "
       "|dmu_q|: share of random instances",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_separated_where_tight(effort); }}};
  struct Law {
    const char* name;
    double spread, frequency;
  };
  for (const Law& law :
       {Law{"025", 0.25, 0.52}, Law{"050", 0.5, 0.54}, Law{"100", 1, 0.57}, Law{"200", 2, 0.60}})
    list.push_back(
        {id + "unrelated.spread_" + law.name, source,
         fmt::format("|dmu|_M < |dmu|, against the lemma, for dispersions and means that are "
                     "unrelated, log s ~ N(0, {}^2), dmu ~ N(0, I), d = 8: frequency, a regression against "
                     "{:.2f} of an earlier simulation",
                     law.spread, law.frequency),
         CheckVerdict::holds, [law](const CheckEffort& effort) {
           return check_separation_failures(effort, law.spread, law.frequency);
         }});
  return list;
}

}  // namespace moelab
