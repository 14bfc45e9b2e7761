#include <fmt/format.h>

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023.h"
#include "sim/base/arrays.h"
#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab {
namespace {

/// Beyond this many σ a Gaussian holds less than 1e-16 of its mass.
constexpr double kTail = 8.5;

/// P(χ²_freedom ≤ value); with no degrees of freedom χ² is 0.
double chi_squared_cdf(int freedom, double value) {
  if (freedom == 0 || std::isinf(value)) return 1;
  return boost::math::cdf(boost::math::chi_squared(freedom), std::max(value, 0.0));
}

void require(bool holds, const char* path, double given, const char* allowed) {
  if (!holds) throw InvalidOption(path, fmt::format("got {}: {}", given, allowed));
}

}  // namespace

TwoComponentPopulation::TwoComponentPopulation(TwoComponentProblem problem) : problem_(std::move(problem)) {
  const double sigma = problem_.noise_std, radius = problem_.radius;
  require(problem_.mean.size() > 0, "mean", 0, "at least one dimension");
  require(problem_.value.size() > 0, "value", 0, "at least one output");
  require(std::isfinite(sigma) && sigma > 0, "noise_std", sigma, "a positive number");
  require(radius > 0, "radius", radius, "a positive number or infinity");
  const int across = static_cast<int>(problem_.mean.size()) - 1;
  const double reach = std::min(radius, kTail * sigma);
  using Rule = boost::math::quadrature::gauss<double, kNodes>;
  for (int i = 0; i < kNodes; ++i) {
    const std::size_t place = static_cast<std::size_t>(i / 2);
    const double side = i % 2 == 0 ? 1 : -1;
    const double theta = side * boost::math::constants::half_pi<double>() * Rule::abscissa()[place];
    t_[i] = reach * std::sin(theta);
    const double across_limit = (radius - t_[i]) * (radius + t_[i]) / (sigma * sigma);
    weight_[i] = Rule::weights()[place] * std::cos(theta) * std::exp(-t_[i] * t_[i] / (2 * sigma * sigma)) *
                 chi_squared_cdf(across, across_limit);
  }
  const double mass = weight_.sum();
  require(std::isnormal(mass), "radius", radius, "the ball must hold more of the Gaussian");
  weight_ /= mass;
}

RouterMoments TwoComponentPopulation::moments(double signal, double norm) const {
  const NodeArray score = signal + norm * t_;
  // With e = exp(−|s|): |q| = (1 − e)/(1 + e) and q' = 2 e/(1 + e)², which keep their digits for large |s|.
  const NodeArray e = (-score.abs()).exp();
  const NodeArray q = score.sign() * (1 - e) / (1 + e);
  const NodeArray weighted_dq = weight_ * 2 * e / (1 + e).square();
  RouterMoments moments;
  moments.q = (weight_ * q).sum();
  moments.q_q = (weight_ * q.square()).sum();
  moments.dq = weighted_dq.sum();
  moments.q_dq = (weighted_dq * q).sum();
  moments.t_dq = (weighted_dq * t_).sum();
  moments.t_q_dq = (weighted_dq * q * t_).sum();
  return moments;
}

double TwoComponentPopulation::loss(const Vector& w, const Vector& u) const {
  const RouterMoments m = moments(w);
  return 2 * (m.q_q * u.squaredNorm() - 2 * m.q * problem_.value.dot(u) + problem_.value.squaredNorm());
}

TwoComponentGradient TwoComponentPopulation::gradient(const Vector& w, const Vector& u) const {
  const RouterMoments m = moments(w);
  const double norm = w.norm(), squared = u.squaredNorm(), agreement = problem_.value.dot(u);
  const double along_mean = squared * m.q_dq - agreement * m.dq;
  const double along_router = squared * m.t_q_dq - agreement * m.t_dq;
  TwoComponentGradient gradient;
  gradient.expert = 4 * (m.q_q * u - m.q * problem_.value);
  gradient.router = 4 * along_mean * problem_.mean;
  // At w = 0 both moments with t vanish.
  if (norm > 0) gradient.router += 4 * along_router / norm * w;
  return gradient;
}

Vector TwoComponentPopulation::best_expert(const Vector& w) const {
  const RouterMoments m = moments(w);
  return problem_.value * (m.q / m.q_q);
}

namespace {

constexpr int kReferenceDim = 10;
/// Runge-Kutta steps of the flow; twice as many change α by less than 1e-10.
constexpr int kFlowSteps = 400;

/// −dL*/dα at w = α z, u = u*(w): −4 (‖u‖² E[x₁ q q'] − vᵀu E[x₁ q']), x₁ = 1 + t.
double flow_speed(const TwoComponentPopulation& population, double alpha) {
  const RouterMoments m = population.moments(alpha, alpha);
  const double share = m.q / m.q_q;
  const double squared = population.problem().value.squaredNorm();
  return -4 * squared * share * (share * (m.q_dq + m.t_q_dq) - (m.dq + m.t_dq));
}

}  // namespace

TwoComponentGradient exact_gradient(const TwoComponentPopulation& population,
                                    const TwoComponentState& state) {
  return population.gradient(state.w, state.u);
}

std::vector<TwoComponentState> descend(const TwoComponentPopulation& population,
                                       const TwoComponentState& start, const DescentRates& rates,
                                       const std::vector<int>& record, const TwoComponentRule& rule) {
  std::vector<TwoComponentState> states;
  TwoComponentState state = start;
  int step = 0;
  for (const int next : record) {
    for (; step < next; ++step) {
      const TwoComponentGradient gradient = rule(population, state);
      state.w -= rates.router * gradient.router;
      state.u -= rates.expert * gradient.expert;
    }
    states.push_back(state);
  }
  return states;
}

TwoComponentProblem reference_problem(Engine& engine) {
  TwoComponentProblem problem;
  problem.mean.resize(kReferenceDim);
  fill_normal(engine, 1.0, problem.mean.data(), kReferenceDim);
  problem.mean.normalize();
  problem.value = Vector{{1.0, -2.0}};
  problem.noise_std = 0.15;
  problem.radius = 0.7;
  return problem;
}

TwoComponentState draw_start(Engine& engine, const TwoComponentProblem& problem, double scale, int side) {
  TwoComponentState state{Vector(problem.mean.size()), Vector(problem.value.size())};
  fill_normal(engine, scale, state.w.data(), static_cast<std::size_t>(state.w.size()));
  fill_normal(engine, scale, state.u.data(), static_cast<std::size_t>(state.u.size()));
  if (side * state.w.dot(problem.mean) < 0) state.w = -state.w;
  return state;
}

double alignment(const TwoComponentProblem& problem, const TwoComponentState& state) {
  return state.w.dot(problem.mean) / (state.w.norm() * problem.mean.norm());
}

double expert_distance(const TwoComponentProblem& problem, const TwoComponentState& state) {
  const double sign = state.w.dot(problem.mean) < 0 ? -1 : 1;
  return (state.u - sign * problem.value).norm() / problem.value.norm();
}

double reduced_flow(const TwoComponentPopulation& population, double router_rate, double norm, double first,
                    double steps) {
  const double width = std::log(steps / first) / kFlowSteps;
  double alpha = norm;
  for (int i = 0; i < kFlowSteps; ++i) {
    const double time = first * std::exp(width * i);
    // dα/d log s = s dα/ds.
    const auto slope = [&](double share, double at) {
      return router_rate * time * std::exp(share * width) * flow_speed(population, at);
    };
    const double k1 = slope(0, alpha);
    const double k2 = slope(0.5, alpha + width / 2 * k1);
    const double k3 = slope(0.5, alpha + width / 2 * k2);
    const double k4 = slope(1, alpha + width * k3);
    alpha += width / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return alpha;
}

namespace {

constexpr const char* kShrinkageId = "dikkala2023.theorem1.shrinkage";
constexpr int kIrrelevantFeatures = 6, kShrinkageExperts = 4, kDirections = 3, kShrinkageDraws = 20000;

/// The variances of the columns.
Vector variances(const Matrix& samples) {
  const Matrix centred = samples.rowwise() - samples.colwise().mean();
  return centred.colwise().squaredNorm().transpose() / static_cast<double>(samples.rows() - 1);
}

}  // namespace

double shrinkage_factor_as_printed(double epsilon) {
  return std::sqrt(1 - (1 - epsilon) * (1 - epsilon));
}

double shrinkage_factor(double epsilon) {
  return 1 - (1 - epsilon) * (1 - epsilon);
}

CheckFinding check_shrinkage(const CheckEffort& effort, const ShrinkageFactor& factor) {
  // More seeds are more draws, not more comparisons: the largest of many would pass any number of errors.
  const int draws = kShrinkageDraws * effort.seeds;
  Engine engine = check_stream(effort, kShrinkageId, 0);
  const Matrix weights = draw_normals(engine, kShrinkageExperts, kIrrelevantFeatures);
  const Matrix directions = draw_normals(engine, kDirections, kShrinkageExperts);
  const Matrix scores = directions * weights;  // of W₂ x₂ along the directions, for x₂ ~ N(0, I)
  double largest = 0;
  for (const double epsilon : {0.05, 0.3, 0.7}) {
    const Matrix before = draw_normals(engine, draws, kIrrelevantFeatures) * scores.transpose();
    const Matrix after =
        (1 - epsilon) * draw_normals(engine, draws, kIrrelevantFeatures) * scores.transpose() +
        std::sqrt(factor(epsilon)) * draw_normals(engine, draws, kIrrelevantFeatures) * scores.transpose();
    // The logarithm of a Gaussian sample's variance has standard error √(2/n).
    const Vector difference = (variances(after).array() / variances(before).array()).log();
    largest = larger(largest, difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>() / std::sqrt(4.0 / draws));
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kStandardErrors;
  finding.error_origin = "4 standard errors";
  finding.details = {{"draws of each side", draws}, {"comparisons", 3 * kDirections}};
  return finding;
}

std::vector<Check> dikkala2023_theorem1_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 1 (3)";
  const std::string measured = " (largest difference of variances in standard errors)";
  return {{std::string(kShrinkageId) + ".as_printed", source,
           "(1 - e) W2 x2 + z is distributed as W2 x2 for Cov(z) = sqrt(1 - (1 - e)^2) Cov(W2 x2)" + measured,
           CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_shrinkage(effort, shrinkage_factor_as_printed); }},
          {std::string(kShrinkageId) + ".corrected", source,
           "(1 - e) W2 x2 + z is distributed as W2 x2 for Cov(z) = (1 - (1 - e)^2) Cov(W2 x2)" + measured,
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_shrinkage(effort, shrinkage_factor); }}};
}

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
