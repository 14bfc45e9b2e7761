#include "analysis/theory/soft_mixture_population.h"

#include <Eigen/QR>

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

DescentEnd descend(const SoftMixturePopulation& population, Vector theta, double rate) {
  constexpr double kMomentum = 0.9, kNear = 1e-4;
  constexpr int kMostSteps = 50000, kNewtonSteps = 6;
  // The loss does not change when all biases move together: this direction is left alone.
  constexpr double kFlat = 1e-8;
  DescentEnd end{std::move(theta), 0, 0};
  Vector velocity = Vector::Zero(end.theta.size());
  for (; end.steps < kMostSteps; ++end.steps) {
    const Vector gradient = population.gradient(end.theta);
    if (gradient.norm() <= kNear) break;
    velocity = kMomentum * velocity - rate * gradient;
    end.theta += velocity;
  }
  Eigen::CompleteOrthogonalDecomposition<Matrix> solver;
  solver.setThreshold(kFlat);
  for (int i = 0; i < kNewtonSteps; ++i) {
    solver.compute(population.hessian(end.theta));
    end.theta -= solver.solve(population.gradient(end.theta));
  }
  end.gradient_norm = population.gradient(end.theta).norm();
  return end;
}

}  // namespace moelab
