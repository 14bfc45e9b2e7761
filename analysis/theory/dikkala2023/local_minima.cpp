#include "analysis/theory/dikkala2023/local_minima.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/linear_algebra.h"
#include "sim/base/quasi_random.h"

namespace moelab {
namespace {

constexpr const char* kMinimaId = "dikkala2023.theorem1.local_minima";
constexpr const char* kSaddleLeftId = "dikkala2023.theorem1.saddle.left";
constexpr int kQuasiPoints = 2048, kShifts = 16;
/// The error of differences of gradients; a common shift of all biases changes nothing, so that one curvature
/// is 0 up to this.
constexpr double kFlat = 1e-7;
/// Shares ‖W₂‖ / ‖W‖ that would still count as small.
constexpr double kSmallShare = 0.1;

double least_curvature(const SoftMixturePopulation& population, const Vector& theta) {
  return symmetric_eigenvalues(population.hessian(theta))[0];
}

/// What the ends of descents have in common.
struct Ends {
  double largest_share = 0, smallest_share = std::numeric_limits<double>::infinity();
  double gradient_norm = 0;
  double router_norm = std::numeric_limits<double>::infinity();
  double curvature = std::numeric_limits<double>::infinity();
  int steps = 0, count = 0;

  void add(const SubspaceProblem& problem, const DescentEnd& end) {
    const double share = irrelevant_share(problem, end.theta);
    largest_share = std::max(largest_share, share);
    smallest_share = std::min(smallest_share, share);
    gradient_norm = std::max(gradient_norm, end.gradient_norm);
    router_norm = std::min(router_norm, problem.population.router(end.theta).norm());
    curvature = std::min(curvature, least_curvature(problem.population, end.theta));
    steps = std::max(steps, end.steps);
    ++count;
  }

  /// With hypotheses and details; what is measured is left to fill in.
  CheckFinding finding() const {
    CheckFinding result;
    result.hypotheses = {
        {"lambda1, lambda2 > 0", kSubspacePenalty, kSubspacePenalty > 0},
        {"the gradient vanishes (largest norm <= 1e-9)", gradient_norm, gradient_norm <= kStationary}};
    result.resolution = kSmallShare;
    result.details = {{"descents", count}, {"most steps", steps}};
    return result;
  }

  /// For minima that use the input: else ‖W₂‖ / ‖W‖ says nothing.
  CheckFinding share_finding() const {
    CheckFinding result = finding();
    result.hypotheses.push_back(
        {"a local minimum (least curvature >= -1e-7)", curvature, curvature >= -kFlat});
    result.hypotheses.push_back({"W is not 0 (smallest |W| > 0.1)", router_norm, router_norm > 0.1});
    result.details.emplace_back("smallest |W2|/|W|", smallest_share);
    result.details.emplace_back("largest |W2|/|W|", largest_share);
    return result;
  }
};

constexpr const char* kGradientLeft = "the gradient left over: |W2| <= |dL/dW2| / (2 lambda1)";

}  // namespace

CheckFinding check_local_minima(const CheckEffort& effort, bool rotated, const ProblemChange& change) {
  Ends ends;
  for (int repetition = 0; repetition < kSubspaceRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kMinimaId, repetition);
    SubspaceProblem problem = draw_subspace_problem(engine, rotated);
    if (change) change(problem);
    ends.add(problem, descend(problem.population, draw_parameters(engine, problem), kStationary));
  }
  CheckFinding finding = ends.share_finding();
  finding.measured = ends.largest_share;
  finding.error_bound = kStationary / (2 * kSubspacePenalty * ends.router_norm);
  finding.error_origin = kGradientLeft;
  return finding;
}

CheckFinding check_local_minima_quasi_random(const CheckEffort& effort, const ProblemChange& change) {
  Engine engine = check_stream(effort, std::string(kMinimaId) + ".quasi_random", 0);
  SubspaceProblem problem = draw_subspaces(engine, true);
  const SignalMixture mixture = draw_signal_mixture(engine);
  const int shifts = kShifts * effort.seeds;
  QuasiRandom rule(kSubspaceUniforms, engine);
  Ends ends;
  Vector start;
  Matrix parts, routers;  // of one shift each row
  for (int shift = 0; shift < shifts; ++shift) {
    if (shift > 0) rule.restart(engine);
    set_points(problem, mixture, rule.uniforms(kQuasiPoints));
    if (change) change(problem);
    if (shift == 0) start = draw_parameters(engine, problem);
    const DescentEnd end = descend(problem.population, start, kStationary);
    ends.add(problem, end);
    const Matrix part = irrelevant_part(problem, end.theta), router = problem.population.router(end.theta);
    parts.conservativeResize(shifts, part.size());
    routers.conservativeResize(shifts, router.size());
    parts.row(shift) = Eigen::Map<const Eigen::RowVectorXd>(part.data(), part.size());
    routers.row(shift) = Eigen::Map<const Eigen::RowVectorXd>(router.data(), router.size());
  }
  const Eigen::RowVectorXd mean = parts.colwise().mean();
  const double size = routers.colwise().mean().norm();
  const double error = (parts.rowwise() - mean).norm() / std::sqrt((shifts - 1.0) * shifts);
  CheckFinding finding = ends.share_finding();
  finding.measured = mean.norm() / size;
  finding.error_bound = kStandardErrors * error / size;
  finding.error_origin = "4 standard errors over random shifts of the rule";
  return finding;
}

CheckFinding check_saddle_is_left(const CheckEffort& effort, double push) {
  Ends ends;
  const double infinity = std::numeric_limits<double>::infinity();
  double largest = 0, least_start = infinity, least_decrease = infinity;
  for (int repetition = 0; repetition < kSubspaceRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kSaddleLeftId, repetition);
    const Saddle saddle = draw_saddle(engine);
    const SoftMixturePopulation& population = saddle.problem.population;
    const Vector start = saddle.theta + push * draw_parameters(engine, saddle.problem);
    const DescentEnd end = descend(population, start, kStationary);
    ends.add(saddle.problem, end);
    const double before = irrelevant_part(saddle.problem, saddle.theta).norm();
    least_start = std::min(least_start, before);
    largest = std::max(largest, irrelevant_part(saddle.problem, end.theta).norm() / before);
    least_decrease = std::min(least_decrease, population.loss(saddle.theta) - population.loss(end.theta));
  }
  CheckFinding finding = ends.finding();
  finding.hypotheses.push_back(
      {"W2 is not 0 at the saddle (smallest |W2| > 0.1)", least_start, least_start > 0.1});
  finding.measured = largest;
  finding.error_bound = kStationary / (2 * kSubspacePenalty * least_start);
  finding.error_origin = kGradientLeft;
  finding.details.emplace_back("least decrease of the loss", least_decrease);
  finding.details.emplace_back("least curvature at the end", ends.curvature);
  return finding;
}

std::vector<Check> dikkala2023_local_minima_checks() {
  const std::string source = "Dikkala et al. 2023, Theorem 1 (3)";
  const std::string id = kMinimaId;
  return {
      {id + ".aligned", source,
       "at a local minimum the rows of W lie in V = span of the first axes: |W2|/|W| = 0 (largest over "
       "randomisations)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_local_minima(effort, false); }},
      {id + ".rotated", source, "the same for V turned at random", CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_local_minima(effort, true); }},
      {id + ".quasi_random", source,
       "the same with a quasi-random rule for all of x: |mean W2|/|mean W| = 0 over its shifts",
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_local_minima_quasi_random(effort); }},
      {kSaddleLeftId, source,
       "descent from beside a stationary point with W2 != 0 ends with the rows of W in V: |W2| at the end "
       "over |W2| at the start = 0 (largest over randomisations)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_saddle_is_left(effort); }}};
}

}  // namespace moelab
