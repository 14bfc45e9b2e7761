#include "analysis/theory/dikkala2023/theorem2.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <cmath>
#include <limits>

#include "sim/data/gaussian_mixture.h"

namespace moelab {
namespace {

constexpr const char* kCoverageId = "dikkala2023.theorem2.coverage";
constexpr const char* kDistanceId = "dikkala2023.theorem2.distance";
constexpr int kCoverageDraws = 2000;   // of routers for coverage
constexpr int kDistancePairs = 20000;  // of inputs for distances
constexpr double kRadius = 0.04;       // C

/// |share − p| in binomial standard errors, for p in (0, 1).
double standard_errors(int hits, int draws, double p) {
  return std::abs(static_cast<double>(hits) / draws - p) / std::sqrt(p * (1 - p) / draws);
}

std::unique_ptr<Problem> draw_gaussian_mixture(int clusters, const Seeds& seeds) {
  const DataOptions data = GaussianMixtureOptions{
      .clusters = clusters, .dim = 1, .target = gaussian_mixture::ConstantTarget{.dim = 1}};
  return draw_problem(data, seeds);
}

CheckFinding in_standard_errors(double largest) {
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kStandardErrors;
  finding.error_origin = "4 standard errors";
  return finding;
}

}  // namespace

int router_rows(double c, int clusters) {
  return static_cast<int>(std::ceil(c * clusters * std::log(static_cast<double>(clusters))));
}

bool covers_all(const std::vector<int>& labels, int clusters) {
  std::vector<bool> owned(static_cast<std::size_t>(clusters), false);
  for (const int c : labels) owned[static_cast<std::size_t>(c)] = true;
  return std::find(owned.begin(), owned.end(), false) == owned.end();
}

double coverage_probability(int clusters, int rows) {
  // chain[m]: the probability of m different values so far.
  std::vector<double> chain(static_cast<std::size_t>(clusters) + 1, 0.0);
  chain[0] = 1;
  for (int row = 0; row < rows; ++row) {
    for (std::size_t m = chain.size() - 1; m > 0; --m) {
      const double known = static_cast<double>(m) / clusters;
      chain[m] = known * chain[m] + (1 - static_cast<double>(m - 1) / clusters) * chain[m - 1];
    }
    chain[0] = 0;
  }
  return chain.back();
}

CheckFinding check_coverage(const CheckEffort& effort, const CoverageFormula& formula) {
  // More seeds are more draws: the largest of many comparisons would pass any number of errors.
  const int draws = kCoverageDraws * effort.seeds;
  double largest = 0;
  std::vector<std::pair<std::string, double>> details;
  for (const int clusters : {4, 16, 64}) {
    const std::unique_ptr<Problem> problem = draw_gaussian_mixture(clusters, Seeds{effort.root, 0});
    for (const double c : {1.0, 1.5}) {
      const int rows = router_rows(c, clusters);
      Engine engine = check_stream(effort, fmt::format("{} {} {}", kCoverageId, clusters, rows), 0);
      int covered = 0;
      for (int draw = 0; draw < draws; ++draw) {
        const Dataset samples = problem->draw(engine, {Purpose::evaluation, draw * rows, rows});
        if (covers_all(samples.cluster, clusters)) ++covered;
      }
      largest = std::max(largest, standard_errors(covered, draws, formula(clusters, rows)));
      details.emplace_back(fmt::format("share covered, k = {}, E = {}", clusters, rows),
                           static_cast<double>(covered) / draws);
      details.emplace_back(fmt::format("exact probability, k = {}, E = {}", clusters, rows),
                           coverage_probability(clusters, rows));
    }
  }
  CheckFinding finding = in_standard_errors(largest);
  finding.details = std::move(details);
  return finding;
}

CheckFinding check_coverage_bound(const CoverageFormula& formula) {
  double largest = 0;
  for (const int clusters : {2, 4, 8, 16, 32, 64, 128, 256}) {
    for (const double c : {1.5, 2.0, 3.0}) {
      const double missed = 1 - formula(clusters, router_rows(c, clusters));
      largest = std::max(largest, missed * std::pow(static_cast<double>(clusters), c - 1));
    }
  }
  CheckFinding finding;
  finding.relation = Relation::at_most;
  finding.predicted = 1;
  finding.measured = largest;
  finding.error_bound = 1e-9;
  finding.error_origin = "rounding: 1 - P to 1e-15, times at most 256^2";
  return finding;
}

double near_probability(int dim, double separation, double radius) {
  const double d = dim;
  const boost::math::non_central_chi_squared law(d, separation * separation * d / 2);
  return boost::math::cdf(law, radius * radius * d / 2);
}

CheckFinding check_distance(double radius) {
  double largest = -std::numeric_limits<double>::infinity();
  int at = 0;
  for (int dim = 2; dim <= 1024; dim += std::max(1, dim / 16)) {
    const double excess = std::log10(near_probability(dim, 1.0, radius)) + 10 * std::log10(dim);
    if (excess > largest) {
      largest = excess;
      at = dim;
    }
  }
  CheckFinding finding;
  finding.relation = Relation::at_most;
  finding.measured = largest;
  finding.error_bound = 1e-6;
  finding.error_origin = "rounding of the distribution function";
  finding.details = {{"C", radius}, {"d with the largest value", at}};
  return finding;
}

CheckFinding check_distance_drawn(const CheckEffort& effort, const NearFormula& formula) {
  constexpr double kDrawnSeparation = 1, kSeen = 1.2;
  const int pairs = kDistancePairs * effort.seeds;
  double largest = 0;
  for (const int dim : {2, 4, 8, 16}) {
    Engine engine = check_stream(effort, kDistanceId, dim);
    const double reach = kSeen * std::sqrt(static_cast<double>(dim));
    int near = 0;
    Vector first(dim), second(dim);
    for (int pair = 0; pair < pairs; ++pair) {
      fill_normal(engine, 1.0, first.data(), static_cast<std::size_t>(dim));
      fill_normal(engine, 1.0, second.data(), static_cast<std::size_t>(dim));
      second.array() += kDrawnSeparation;  // in every coordinate: √d in all
      if ((first - second).norm() <= reach) ++near;
    }
    largest = std::max(largest, standard_errors(near, pairs, formula(dim, kDrawnSeparation, kSeen)));
  }
  CheckFinding finding = in_standard_errors(largest);
  finding.details = {{"C", kSeen}, {"pairs per d", pairs}};
  return finding;
}

std::vector<Check> dikkala2023_theorem2_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 2";
  const std::string coverage = kCoverageId, distance = kDistanceId;
  return {
      {coverage + ".exact", source,
       "E = c k ln k samples cover all k clusters with the coupon collector's probability k! S(E, k) / k^E "
       "(largest difference in standard errors)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_coverage(effort); }},
      {coverage + ".bound", source,
       "they do with probability >= 1 - 1/poly(k): (1 - P) k^(c - 1) <= 1 for c > 1 (largest over k and c)",
       CheckVerdict::holds, [](const CheckEffort&) { return check_coverage_bound(); }},
      {distance + ".exact", source + ", (1)",
       "Pr[|x_i - x_j| <= C sqrt(d)] <= d^-10 across 1-separated components for small C: log10(Pr d^10), "
       "largest over d",
       CheckVerdict::holds, [](const CheckEffort&) { return check_distance(kRadius); }},
      {distance + ".drawn", source + ", (1)",
       "|x_i - x_j|^2 / 2 is non-central chi-squared: Pr against draws (largest difference in standard "
       "errors)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_distance_drawn(effort); }}};
}

}  // namespace moelab
