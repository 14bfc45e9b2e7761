#include "analysis/theory/dikkala2023/soft_mixture_population.h"

#include "sim/base/linear_algebra.h"

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

}  // namespace moelab
