#include "analysis/theory/dikkala2023/descent_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moelab {
namespace {

constexpr const char* kStepId = "dikkala2023.theorem1.descent_step";
constexpr const char* kSaddleId = "dikkala2023.theorem1.saddle";
/// The Gauss-Hermite rules for x₂ and ζ, relative to the size of what is compared.
constexpr double kQuadrature = 1e-2;

/// H (E, E).
Matrix bias_hessian(const SoftMixturePopulation& population, const Vector& theta) {
  const Eigen::Index first = population.router_size();
  return population.hessian(theta).block(first, first, population.experts, population.experts);
}

/// θ with W₂' = (1 − ε) W₂ and b' = b + shift.
Vector moved(const SubspaceProblem& problem, Vector theta, double epsilon, const Vector& shift) {
  const Matrix change = epsilon * irrelevant_part(problem, theta) * problem.irrelevant.transpose();
  problem.population.router(theta) -= change;
  problem.population.bias(theta) += shift;
  return theta;
}

/// A random point of a random problem for each repetition, and then, if wanted, a saddle.
template <class Visit>
void for_each_point(const CheckEffort& effort, bool with_saddles, const Visit& visit) {
  for (int repetition = 0; repetition < kSubspaceRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kStepId, repetition);
    const SubspaceProblem problem = draw_subspace_problem(engine, true);
    visit(problem, draw_parameters(engine, problem));
    if (!with_saddles) continue;
    const Saddle saddle = draw_saddle(engine);
    visit(saddle.problem, saddle.theta);
  }
}

}  // namespace

CheckFinding check_descent_step(const CheckEffort& effort, bool shift) {
  const NormalRule& rule = irrelevant_rule();
  double smallest = std::numeric_limits<double>::infinity(), mismatch = 0;
  int points = 0;
  for_each_point(effort, true, [&](const SubspaceProblem& problem, const Vector& theta) {
    const SoftMixturePopulation& population = problem.population;
    const Matrix w2 = irrelevant_part(problem, theta);
    ++points;
    for (const double epsilon : {0.01, 0.1, 0.5}) {
      const double factor = 1 - (1 - epsilon) * (1 - epsilon);
      double best = std::numeric_limits<double>::infinity(), mean = 0;
      for (Eigen::Index i = 0; i < rule.points.rows(); ++i) {
        const Vector z = std::sqrt(factor) * w2 * rule.points.row(i).transpose();
        const double task = population.task_loss(moved(problem, theta, epsilon, z));
        best = std::min(best, task);
        mean += rule.weight[i] * task;
      }
      const Vector none = Vector::Zero(w2.rows());
      if (!shift) best = population.task_loss(moved(problem, theta, epsilon, none));
      const double penalty = population.router_penalty * factor * w2.squaredNorm();
      const double task = population.task_loss(theta);
      smallest = std::min(smallest, (task - best + penalty) / penalty);
      mismatch = std::max(mismatch, std::abs(task - mean) / penalty);
    }
  });
  CheckFinding finding;
  finding.relation = Relation::at_least;
  finding.predicted = 1;
  finding.measured = smallest;
  finding.error_bound = kQuadrature;
  finding.error_origin = "the rules for x2 and z";
  finding.details = {
      {"points", points},
      {"largest |E l(W, b) - mean over z of E l(W', b + z)|, in units of the bound", mismatch}};
  return finding;
}

double shrinking_slope(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty) {
  return -irrelevant.cwiseProduct(bias_hessian * irrelevant).sum() - 2 * penalty * irrelevant.squaredNorm();
}

CheckFinding check_shrinking_slope(const CheckEffort& effort, const ShrinkingSlope& slope) {
  constexpr double kStep = 1e-4;
  double largest = 0;
  for_each_point(effort, false, [&](const SubspaceProblem& problem, const Vector& theta) {
    const Matrix w2 = irrelevant_part(problem, theta);
    const Matrix hessian = bias_hessian(problem.population, theta);
    const Vector none = Vector::Zero(w2.rows());
    const double measured = (problem.population.loss(moved(problem, theta, kStep, none)) -
                             problem.population.loss(moved(problem, theta, -kStep, none))) /
                            (2 * kStep);
    const double size = hessian.norm() * w2.squaredNorm();
    largest =
        std::max(largest, std::abs(measured - slope(hessian, w2, problem.population.router_penalty)) / size);
  });
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kQuadrature;
  finding.error_origin = "the rule for x2";
  return finding;
}

double saddle_curvature(double penalty) {
  return -2 * penalty;
}

CheckFinding check_saddle_curvature(const CheckEffort& effort, const SaddleCurvature& curvature) {
  double gradient = 0, share = std::numeric_limits<double>::infinity();
  const double predicted = curvature(kSubspacePenalty);
  double worst = predicted;
  for (int repetition = 0; repetition < kSubspaceRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kSaddleId, repetition);
    const Saddle saddle = draw_saddle(engine);
    gradient = std::max(gradient, saddle.problem.population.gradient(saddle.theta).norm());
    share = std::min(share, irrelevant_share(saddle.problem, saddle.theta));
    const Matrix hessian = bias_hessian(saddle.problem.population, saddle.theta);
    const Matrix w2 = irrelevant_part(saddle.problem, saddle.theta);
    for (Eigen::Index j = 0; j < w2.cols(); ++j) {
      const double found = w2.col(j).dot(hessian * w2.col(j)) / w2.col(j).squaredNorm();
      if (std::abs(found - predicted) > std::abs(worst - predicted)) worst = found;
    }
  }
  CheckFinding finding;
  finding.hypotheses = {
      {"a stationary point (largest gradient norm <= 1e-9)", gradient, gradient <= kStationary},
      {"W2 is not 0 (smallest |W2|/|W| > 0.01)", share, share > 0.01}};
  finding.predicted = predicted;
  finding.measured = worst;
  finding.error_bound = kQuadrature * std::abs(predicted);
  finding.error_origin = "the rule for x2";
  return finding;
}

std::vector<Check> dikkala2023_descent_step_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 1 (3)";
  return {{std::string(kStepId) + ".loss", source,
           "W2 -> (1 - e) W2 with the best shift of b lowers L by at least lambda1 (1 - (1 - e)^2) |W2|^2 "
           "(smallest ratio over points, saddles and e)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_descent_step(effort); }},
          {std::string(kStepId) + ".first_order", source,
           "shrinking alone changes L by -e (<W2, H W2> + 2 lambda1 |W2|^2), H the Hessian in b (largest "
           "relative difference)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_shrinking_slope(effort); }},
          {std::string(kSaddleId) + ".curvature", source,
           "a stationary point with (H + 2 lambda1) W2 = 0, W2 != 0 is a saddle: the curvature in b along W2 "
           "is -2 lambda1 (the value that differs most)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_saddle_curvature(effort); }}};
}

}  // namespace moelab
