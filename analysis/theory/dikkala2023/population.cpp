#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/dikkala2023.h"
#include "sim/base/numerics.h"
#include "sim/base/random.h"

namespace moelab {

Matrix SoftMixturePopulation::probabilities(const Vector& theta) const {
  Matrix scores = x * router(theta).transpose();
  scores.rowwise() += bias(theta).transpose();
  const Vector largest = scores.rowwise().maxCoeff();
  scores = (scores.colwise() - largest).array().exp();
  const Vector total = scores.rowwise().sum();
  return scores.array().colwise() / total.array();
}

double SoftMixturePopulation::task_loss(const Vector& theta) const {
  const Matrix residual = probabilities(theta) * values(theta) - y;
  return weight.dot(residual.rowwise().squaredNorm());
}

double SoftMixturePopulation::loss(const Vector& theta) const {
  return task_loss(theta) + router_penalty * router(theta).squaredNorm() +
         expert_penalty * values(theta).squaredNorm();
}

Vector SoftMixturePopulation::gradient(const Vector& theta) const {
  const Matrix r = probabilities(theta);
  const Matrix outputs = ((r * values(theta) - y).array().colwise() * (2 * weight).array()).matrix();
  const Matrix gates = outputs * values(theta).transpose();
  const Vector mean = r.cwiseProduct(gates).rowwise().sum();
  const Matrix scores = r.cwiseProduct(gates.colwise() - mean);
  Vector result(size());
  router(result) = scores.transpose() * x + 2 * router_penalty * router(theta);
  bias(result) = scores.colwise().sum().transpose();
  Eigen::Map<Matrix>(result.data() + router_size() + experts, experts, y.cols()) =
      r.transpose() * outputs + 2 * expert_penalty * values(theta);
  return result;
}

Matrix SoftMixturePopulation::hessian(const Vector& theta) const {
  constexpr double kStep = 1e-5;
  Matrix result(size(), size());
  Vector moved = theta;
  for (Eigen::Index i = 0; i < size(); ++i) {
    moved[i] = theta[i] + kStep;
    const Vector above = gradient(moved);
    moved[i] = theta[i] - kStep;
    result.row(i) = (above - gradient(moved)).transpose() / (2 * kStep);
    moved[i] = theta[i];
  }
  return (result + result.transpose()) / 2;
}

DescentEnd descend(const SoftMixturePopulation& population, const Vector& start, double tolerance) {
  constexpr int kGradientSteps = 300, kMostSteps = 1000;
  // The loss does not change when all biases move together: curvatures below this share of the largest are
  // not told from 0.
  constexpr double kFlatShare = 1e-9;
  constexpr double kRounding = 1e-13;  // of the loss
  DescentEnd end{start, 0, 0};
  double loss = population.loss(start), rate = 1;
  for (;; ++end.steps) {
    const Vector gradient = population.gradient(end.theta);
    end.gradient_norm = gradient.norm();
    if (end.gradient_norm <= tolerance || end.steps == kMostSteps) return end;
    Vector step = -gradient;
    const bool newton = end.steps >= kGradientSteps;
    if (newton) {
      const auto [values, vectors] = symmetric_eigen(population.hessian(end.theta));
      const Vector size = values.cwiseAbs();
      const Vector part = vectors.transpose() * step;
      step = vectors * part.cwiseQuotient(size.cwiseMax(kFlatShare * size.maxCoeff()));
    }
    double share = newton ? 1 : 2 * rate;
    Vector next = end.theta + share * step;
    while (population.loss(next) > loss * (1 + kRounding) && share * step.norm() > kRounding) {
      share /= 2;
      next = end.theta + share * step;
    }
    if (!newton) rate = share;
    end.theta = next;
    loss = population.loss(next);
  }
}

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
