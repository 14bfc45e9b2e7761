#include <algorithm>
#include <cmath>

#include "analysis/theory/dikkala2023.h"
#include "sim/base/numerics.h"

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
  Matrix result(size(), size());
  Vector moved = theta;
  for (Eigen::Index i = 0; i < size(); ++i)
    result.row(i) = central_difference(moved[i], 1e-5, [&] { return gradient(moved); });
  return (result + result.transpose()) / 2;
}

DescentEnd descend(const SoftMixturePopulation& population, const Vector& start, double tolerance) {
  constexpr int kGradientSteps = 300, kMostSteps = 1000;
  // A common shift of all biases does not change the loss. Curvatures below this share of the largest count
  // as 0.
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

constexpr int kRelevant = 2, kIrrelevant = 2, kSubspaceDim = kRelevant + kIrrelevant;
constexpr int kSubspaceExperts = 3, kSubspaceOutputs = 3, kSubspaceClusters = 3;
constexpr int kSignalPoints = 24;
/// Uniforms from which one x is computed: the component of x₁, its normals, and the normals of x₂.
constexpr int kSubspaceUniforms = 1 + kRelevant + kIrrelevant;
constexpr double kSubspacePenalty = 0.01;  // λ₁ and λ₂
/// Problems that a check draws, times its seeds.
constexpr int kSubspaceRepetitions = 8;
/// The norm below which a gradient counts as 0.
constexpr double kStationary = 1e-9;

/// Components of a mixture in V, and the values of y on the cells of their centres.
struct SignalMixture {
  Matrix centres;  ///< (k, d')
  Matrix values;   ///< (k, o)
};
constexpr int kNodes = 14;  // Gauss-Hermite nodes per coordinate of x₂

/// Nodes and weights of Gauss and Hermite from the Jacobi matrix of the polynomials (Golub and Welsch 1969).
NormalRule normal_rule() {
  Matrix jacobi = Matrix::Zero(kNodes, kNodes);
  for (int i = 1; i < kNodes; ++i) jacobi(i, i - 1) = jacobi(i - 1, i) = std::sqrt(static_cast<double>(i));
  const auto [node, vectors] = symmetric_eigen(jacobi);
  const Vector weight = vectors.row(0).cwiseAbs2().transpose();
  NormalRule rule{Matrix(kNodes * kNodes, kIrrelevant), Vector(kNodes * kNodes)};
  for (int i = 0; i < kNodes; ++i) {
    for (int j = 0; j < kNodes; ++j) {
      rule.points.row(i * kNodes + j) << node[i], node[j];
      rule.weight[i * kNodes + j] = weight[i] * weight[j];
    }
  }
  return rule;
}

/// x₁ from uniforms (m, 1 + d') for the component and its standard normals.
Matrix signal_points(const SignalMixture& mixture, const Matrix& uniforms) {
  Matrix points(uniforms.rows(), kRelevant);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const int c = std::min(static_cast<int>(kSubspaceClusters * uniforms(i, 0)), kSubspaceClusters - 1);
    for (int j = 0; j < kRelevant; ++j)
      points(i, j) = mixture.centres(c, j) + normal_quantile(uniforms(i, 1 + j));
  }
  return points;
}

/// y(x₁), the value of the nearest centre. It is a function of x₁ even if components overlap.
Matrix targets_at(const SignalMixture& mixture, const Matrix& points) {
  Matrix targets(points.rows(), kSubspaceOutputs);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    Eigen::Index nearest = 0;
    (mixture.centres.rowwise() - points.row(i)).rowwise().squaredNorm().minCoeff(&nearest);
    targets.row(i) = mixture.values.row(nearest);
  }
  return targets;
}

/// Every signal point with every node of x₂.
void set_product_rule(SubspaceProblem& problem, const Matrix& points, const Matrix& targets) {
  const NormalRule& rest = irrelevant_rule();
  const Eigen::Index q = rest.points.rows(), n = points.rows() * q;
  SoftMixturePopulation& population = problem.population;
  population = {
      Matrix(n, kSubspaceDim), Matrix(n, kSubspaceOutputs), Vector(n), kSubspaceExperts, kSubspacePenalty,
      kSubspacePenalty};
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    population.x.middleRows(i * q, q) = rest.points * problem.irrelevant.transpose();
    population.x.middleRows(i * q, q).rowwise() += (problem.relevant * points.row(i).transpose()).transpose();
    population.y.middleRows(i * q, q).rowwise() = targets.row(i);
    population.weight.segment(i * q, q) = rest.weight / static_cast<double>(points.rows());
  }
}

SignalMixture draw_signal_mixture(Engine& engine) {
  return {draw_normals(engine, kSubspaceClusters, kRelevant, 2.0),
          draw_normals(engine, kSubspaceClusters, kSubspaceOutputs)};
}

/// Axes as bases of V, or a random rotation of them. The population is empty.
SubspaceProblem draw_subspaces(Engine& engine, bool rotated) {
  Matrix basis = Matrix::Identity(kSubspaceDim, kSubspaceDim);
  if (rotated) basis = qr_factors(draw_normals(engine, kSubspaceDim, kSubspaceDim)).q;
  return {SoftMixturePopulation{}, basis.leftCols(kRelevant), basis.rightCols(kIrrelevant)};
}

/// W₂ = W Q₂ (E, d − d').
Matrix irrelevant_part(const SubspaceProblem& problem, const Vector& theta) {
  return problem.population.router(theta) * problem.irrelevant;
}

/// ‖W₂‖ / ‖W‖.
double irrelevant_share(const SubspaceProblem& problem, const Vector& theta) {
  return irrelevant_part(problem, theta).norm() / problem.population.router(theta).norm();
}

/// The population as points of equal weight, from uniforms (n, kSubspaceUniforms).
void set_points(SubspaceProblem& problem, const SignalMixture& mixture, const Matrix& uniforms) {
  const Matrix points = signal_points(mixture, uniforms.leftCols(1 + kRelevant));
  const Matrix rest = uniforms.rightCols(kIrrelevant).unaryExpr(&normal_quantile);
  const Eigen::Index n = uniforms.rows();
  problem.population = {points * problem.relevant.transpose() + rest * problem.irrelevant.transpose(),
                        targets_at(mixture, points),
                        Vector::Constant(n, 1.0 / static_cast<double>(n)),
                        kSubspaceExperts,
                        kSubspacePenalty,
                        kSubspacePenalty};
}

/// A stationary point with W₂ ≠ 0. θ is drawn, and the targets y(x₁), in which ∂L/∂θ is linear, are solved
/// for.
struct Saddle {
  SubspaceProblem problem;
  Vector theta;
};

Saddle draw_saddle(Engine& engine) {
  Saddle saddle{draw_subspaces(engine, true), {}};
  SoftMixturePopulation& population = saddle.problem.population;
  const Matrix points = draw_normals(engine, kSignalPoints, kRelevant, 3.0);
  set_product_rule(saddle.problem, points, Matrix::Zero(kSignalPoints, kSubspaceOutputs));
  saddle.theta = draw_parameters(engine, saddle.problem);
  // The gradient of the task in W sums to 0 over the experts. The gradient of the penalty must, too.
  Eigen::Map<Matrix> router = population.router(saddle.theta);
  const Eigen::RowVectorXd mean = router.colwise().mean();
  router.rowwise() -= mean;

  // Start from y = E[f | x₁], which has a small residual, and add the least necessary change.
  const Eigen::Index q = population.x.rows() / kSignalPoints;
  const auto rows_of = [&](Eigen::Index i) { return population.y.middleRows(i * q, q); };
  const Matrix outputs = population.probabilities(saddle.theta) * population.values(saddle.theta);
  for (Eigen::Index i = 0; i < kSignalPoints; ++i) {
    const Vector weight = population.weight.segment(i * q, q) * kSignalPoints;
    rows_of(i).rowwise() = weight.transpose() * outputs.middleRows(i * q, q);
  }
  const Vector residual = population.gradient(saddle.theta);
  Matrix response(population.size(), kSignalPoints * kSubspaceOutputs);
  for (Eigen::Index i = 0; i < kSignalPoints; ++i) {
    for (Eigen::Index j = 0; j < kSubspaceOutputs; ++j) {
      rows_of(i).col(j).array() += 1;
      response.col(i * kSubspaceOutputs + j) = population.gradient(saddle.theta) - residual;
      rows_of(i).col(j).array() -= 1;
    }
  }
  const Vector changes = least_norm_solution(response, -residual);
  for (Eigen::Index i = 0; i < kSignalPoints; ++i) {
    for (Eigen::Index j = 0; j < kSubspaceOutputs; ++j)
      rows_of(i).col(j).array() += changes[i * kSubspaceOutputs + j];
  }
  return saddle;
}

constexpr const char* kStepId = "dikkala2023.theorem1.descent_step";
constexpr const char* kSaddleId = "dikkala2023.theorem1.saddle";
/// The relative error of the Gauss-Hermite rules for x₂ and ζ.
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

/// Visits a random point of a random problem for each repetition, and on request a saddle.
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

constexpr const char* kMinimaId = "dikkala2023.theorem1.local_minima";
constexpr const char* kSaddleLeftId = "dikkala2023.theorem1.saddle.left";
constexpr int kQuasiPoints = 2048, kShifts = 16;
/// The error of differences of gradients. A common shift of all biases changes nothing, so one curvature is 0
/// up to this.
constexpr double kFlat = 1e-7;
/// The largest share ‖W₂‖ / ‖W‖ that counts as small.
constexpr double kSmallShare = 0.1;

double least_curvature(const SoftMixturePopulation& population, const Vector& theta) {
  return symmetric_eigenvalues(population.hessian(theta))[0];
}

/// A summary of the ends of descents.
struct Ends {
  double largest_share = 0, smallest_share = kInfinity;
  double gradient_norm = 0;
  double router_norm = kInfinity;
  double curvature = kInfinity;
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

  /// A finding with hypotheses and details. The caller adds the measurement.
  CheckFinding finding() const {
    CheckFinding result;
    result.hypotheses = {
        {"lambda1, lambda2 > 0", kSubspacePenalty, kSubspacePenalty > 0},
        {"the gradient vanishes (largest norm <= 1e-9)", gradient_norm, gradient_norm <= kStationary}};
    result.resolution = kSmallShare;
    result.details = {{"descents", count}, {"most steps", steps}};
    return result;
  }

  /// The same for minima that use the input, for which ‖W₂‖ / ‖W‖ is meaningful.
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

constexpr const char* kShrinkageId = "dikkala2023.theorem1.shrinkage";
constexpr int kIrrelevantFeatures = 6, kShrinkageExperts = 4, kDirections = 3, kShrinkageDraws = 20000;

/// The variances of the columns.
Vector variances(const Matrix& samples) {
  const Matrix centred = samples.rowwise() - samples.colwise().mean();
  return centred.colwise().squaredNorm().transpose() / static_cast<double>(samples.rows() - 1);
}

}  // namespace

const NormalRule& irrelevant_rule() {
  static const NormalRule rule = normal_rule();
  return rule;
}

SubspaceProblem draw_subspace_problem(Engine& engine, bool rotated) {
  SubspaceProblem problem = draw_subspaces(engine, rotated);
  const SignalMixture mixture = draw_signal_mixture(engine);
  const Matrix points = signal_points(mixture, QuasiRandom(1 + kRelevant, engine).uniforms(kSignalPoints));
  set_product_rule(problem, points, targets_at(mixture, points));
  return problem;
}

Vector draw_parameters(Engine& engine, const SubspaceProblem& problem) {
  Vector theta = draw_normals(engine, problem.population.size(), 1);
  const Matrix excess = irrelevant_part(problem, theta) * (2.0 / 3) * problem.irrelevant.transpose();
  problem.population.router(theta) -= excess;
  return theta;
}

CheckFinding check_descent_step(const CheckEffort& effort, bool shift) {
  const NormalRule& rule = irrelevant_rule();
  double smallest = kInfinity, mismatch = 0;
  int points = 0;
  for_each_point(effort, true, [&](const SubspaceProblem& problem, const Vector& theta) {
    const SoftMixturePopulation& population = problem.population;
    const Matrix w2 = irrelevant_part(problem, theta);
    ++points;
    for (const double epsilon : {0.01, 0.1, 0.5}) {
      const double factor = 1 - (1 - epsilon) * (1 - epsilon);
      double best = kInfinity, mean = 0;
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
  return {
      .relation = Relation::at_least,
      .predicted = 1,
      .measured = smallest,
      .error_bound = kQuadrature,
      .error_origin = "the rules for x2 and z",
      .details = {{"points", points},
                  {"largest |E l(W, b) - mean over z of E l(W', b + z)|, in units of the bound", mismatch}}};
}

double shrinking_slope(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty) {
  return -irrelevant.cwiseProduct(bias_hessian * irrelevant).sum() - 2 * penalty * irrelevant.squaredNorm();
}

CheckFinding check_shrinking_slope(const CheckEffort& effort, const ShrinkingSlope& slope) {
  double largest = 0;
  for_each_point(effort, false, [&](const SubspaceProblem& problem, const Vector& theta) {
    const Matrix w2 = irrelevant_part(problem, theta);
    const Matrix hessian = bias_hessian(problem.population, theta);
    const Vector none = Vector::Zero(w2.rows());
    double epsilon = 0;
    const double measured = central_difference(
        epsilon, 1e-4, [&] { return problem.population.loss(moved(problem, theta, epsilon, none)); });
    const double size = hessian.norm() * w2.squaredNorm();
    largest =
        std::max(largest, std::abs(measured - slope(hessian, w2, problem.population.router_penalty)) / size);
  });
  return expected_zero(largest, kQuadrature, "the rule for x2");
}

double saddle_curvature(double penalty) {
  return -2 * penalty;
}

CheckFinding check_saddle_curvature(const CheckEffort& effort, const SaddleCurvature& curvature) {
  double gradient = 0, share = kInfinity;
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
  return {.hypotheses = {{"a stationary point (largest gradient norm <= 1e-9)", gradient,
                          gradient <= kStationary},
                         {"W2 is not 0 (smallest |W2|/|W| > 0.01)", share, share > 0.01}},
          .predicted = predicted,
          .measured = worst,
          .error_bound = kQuadrature * std::abs(predicted),
          .error_origin = "the rule for x2"};
}

std::vector<Check> dikkala2023_descent_step_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 1 (3)";
  return {{std::string(kStepId) + ".loss", source,
           "W2 -> (1 - e) W2 with the best shift of b lowers L by at least lambda1 (1 - (1 - e)^2) |W2|^2 "
           "(smallest ratio over points, saddles and e)",
           CheckVerdict::holds, [](Effort effort) { return check_descent_step(effort); }},
          {std::string(kStepId) + ".first_order", source,
           "shrinking alone changes L by -e (<W2, H W2> + 2 lambda1 |W2|^2), H the Hessian in b (largest "
           "relative difference)",
           CheckVerdict::holds, [](Effort effort) { return check_shrinking_slope(effort); }},
          {std::string(kSaddleId) + ".curvature", source,
           "a stationary point with (H + 2 lambda1) W2 = 0, W2 != 0 is a saddle: the curvature in b along W2 "
           "is -2 lambda1 (the value that differs most)",
           CheckVerdict::holds, [](Effort effort) { return check_saddle_curvature(effort); }}};
}

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
  Matrix parts, routers;  // a row per shift
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
  const double infinity = kInfinity;
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
  return {{id + ".aligned", source,
           "at a local minimum the rows of W lie in V = span of the first axes: |W2|/|W| = 0 (largest over "
           "randomisations)",
           CheckVerdict::holds, [](Effort effort) { return check_local_minima(effort, false); }},
          {id + ".rotated", source,
           "at a local minimum the rows of W lie in V, which is turned at random: |W2|/|W| = 0 (largest over "
           "randomisations)",
           CheckVerdict::holds, [](Effort effort) { return check_local_minima(effort, true); }},
          {id + ".quasi_random", source,
           "at a local minimum the rows of W lie in V, with a quasi-random rule for all of x: |mean "
           "W2|/|mean W| = 0 over its shifts",
           CheckVerdict::holds, [](Effort effort) { return check_local_minima_quasi_random(effort); }},
          {kSaddleLeftId, source,
           "descent from near a stationary point with W2 != 0 ends with the rows of W in V: |W2| at the end "
           "over |W2| at the start = 0 (largest over randomisations)",
           CheckVerdict::holds, [](Effort effort) { return check_saddle_is_left(effort); }}};
}

double shrinkage_factor_as_printed(double epsilon) {
  return std::sqrt(1 - (1 - epsilon) * (1 - epsilon));
}

double shrinkage_factor(double epsilon) {
  return 1 - (1 - epsilon) * (1 - epsilon);
}

CheckFinding check_shrinkage(const CheckEffort& effort, const ShrinkageFactor& factor) {
  // More seeds give more draws and the same number of comparisons: the largest of many would exceed any
  // bound.
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
  return expected_zero(largest, kStandardErrors, "4 standard errors",
                       {{"draws of each side", draws}, {"comparisons", 3 * kDirections}});
}

std::vector<Check> dikkala2023_theorem1_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 1 (3)";
  const std::string measured = " (largest difference of variances in standard errors)";
  return {{std::string(kShrinkageId) + ".as_printed", source,
           "(1 - e) W2 x2 + z is distributed as W2 x2 for Cov(z) = sqrt(1 - (1 - e)^2) Cov(W2 x2)" + measured,
           CheckVerdict::fails,
           [](Effort effort) { return check_shrinkage(effort, shrinkage_factor_as_printed); }},
          {std::string(kShrinkageId) + ".corrected", source,
           "(1 - e) W2 x2 + z is distributed as W2 x2 for Cov(z) = (1 - (1 - e)^2) Cov(W2 x2)" + measured,
           CheckVerdict::holds, [](Effort effort) { return check_shrinkage(effort, shrinkage_factor); }}};
}

}  // namespace moelab
