#include "analysis/theory/dikkala2023/subspace_problem.h"

#include <algorithm>
#include <cmath>

#include "sim/base/linear_algebra.h"
#include "sim/base/quasi_random.h"

namespace moelab {
namespace {

constexpr int kRelevant = 2, kIrrelevant = 2, kSubspaceDim = kRelevant + kIrrelevant;
constexpr int kSubspaceExperts = 3, kSubspaceOutputs = 3, kSubspaceClusters = 3;
constexpr int kSignalPoints = 24;
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

/// x₁ from uniforms (m, 1 + d'): the component, then its standard normals.
Matrix signal_points(const SignalMixture& mixture, const Matrix& uniforms) {
  Matrix points(uniforms.rows(), kRelevant);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const int c = std::min(static_cast<int>(kSubspaceClusters * uniforms(i, 0)), kSubspaceClusters - 1);
    for (int j = 0; j < kRelevant; ++j)
      points(i, j) = mixture.centres(c, j) + normal_quantile(uniforms(i, 1 + j));
  }
  return points;
}

/// y(x₁): the value of the nearest centre, a function of x₁ even where components overlap.
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

}  // namespace

const NormalRule& irrelevant_rule() {
  static const NormalRule rule = normal_rule();
  return rule;
}

SignalMixture draw_signal_mixture(Engine& engine) {
  return {draw_normals(engine, kSubspaceClusters, kRelevant, 2.0),
          draw_normals(engine, kSubspaceClusters, kSubspaceOutputs)};
}

SubspaceProblem draw_subspaces(Engine& engine, bool rotated) {
  Matrix basis = Matrix::Identity(kSubspaceDim, kSubspaceDim);
  if (rotated) basis = qr_factors(draw_normals(engine, kSubspaceDim, kSubspaceDim)).q;
  return {SoftMixturePopulation{}, basis.leftCols(kRelevant), basis.rightCols(kIrrelevant)};
}

SubspaceProblem draw_subspace_problem(Engine& engine, bool rotated) {
  SubspaceProblem problem = draw_subspaces(engine, rotated);
  const SignalMixture mixture = draw_signal_mixture(engine);
  const Matrix points = signal_points(mixture, QuasiRandom(1 + kRelevant, engine).uniforms(kSignalPoints));
  set_product_rule(problem, points, targets_at(mixture, points));
  return problem;
}

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

Vector draw_parameters(Engine& engine, const SubspaceProblem& problem) {
  Vector theta = draw_normals(engine, problem.population.size(), 1);
  const Matrix excess = irrelevant_part(problem, theta) * (2.0 / 3) * problem.irrelevant.transpose();
  problem.population.router(theta) -= excess;
  return theta;
}

Saddle draw_saddle(Engine& engine) {
  Saddle saddle{draw_subspaces(engine, true), {}};
  SoftMixturePopulation& population = saddle.problem.population;
  const Matrix points = draw_normals(engine, kSignalPoints, kRelevant, 3.0);
  set_product_rule(saddle.problem, points, Matrix::Zero(kSignalPoints, kSubspaceOutputs));
  saddle.theta = draw_parameters(engine, saddle.problem);
  // The task's gradient in W sums to 0 over the experts, and so must the penalty's.
  Eigen::Map<Matrix> router = population.router(saddle.theta);
  const Eigen::RowVectorXd mean = router.colwise().mean();
  router.rowwise() -= mean;

  // Start from y = E[f | x₁], for which the residual is small, and add the least change that is needed.
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

/// W₂ = W Q₂ (E, d − d').
Matrix irrelevant_part(const SubspaceProblem& problem, const Vector& theta) {
  return problem.population.router(theta) * problem.irrelevant;
}

double irrelevant_share(const SubspaceProblem& problem, const Vector& theta) {
  return irrelevant_part(problem, theta).norm() / problem.population.router(theta).norm();
}

}  // namespace moelab
