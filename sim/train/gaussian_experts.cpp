#include "sim/train/gaussian_experts.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr double kLeastShare = 1e-3;      // share of the variance of y
constexpr double kSmallGain = 1e-6;       // gain of ℓ in a round of EM, nats
constexpr double kNegligibleGain = 5e-4;  // in units of p / n
constexpr double kScoreStep = 1e-5;
constexpr double kMostNewtonDamping = 1e8;
constexpr int kGateSteps = 20;
/// The ridge of the regressions, in units of the second moments, since clusters may hold less than one
/// sample.
constexpr double kExpertRidge = 1e-10, kGateRidge = 1e-9;

/// Logarithms of the gates of rows, (n, k).
Matrix log_gates(const MixingMeasure& measure, const Matrix& x) {
  Matrix scores = x * measure.gate.transpose();
  scores.rowwise() += measure.bias.transpose();
  return log_softmax(scores);
}

/// y − h_j(x), (n, k).
Matrix expert_residuals(const MixingMeasure& measure, const RegressionSample& sample) {
  Matrix values = -(sample.x * measure.slope.transpose());
  values.rowwise() -= measure.intercept.transpose();
  values.colwise() += sample.y;
  return values;
}

/// (x, 1), (n, d + 1).
Matrix with_one(const Matrix& x) {
  Matrix all(x.rows(), x.cols() + 1);
  all << x, Vector::Ones(x.rows());
  return all;
}

/// The columns of (x, 1) that a part of the mixture uses: all columns, or the last column alone.
Matrix inputs_of(const Matrix& x, bool has_slopes) {
  return has_slopes ? with_one(x) : Matrix(Vector::Ones(x.rows()));
}

void fit_experts(const RegressionSample& sample, const Matrix& shares, const GaussianForm& form,
                 MixingMeasure& measure) {
  const Matrix inputs = inputs_of(sample.x, form.slope);
  for (Eigen::Index j = 0; j < shares.cols(); ++j) {
    const Matrix weighted = inputs.array().colwise() * shares.col(j).array();
    Matrix moments = weighted.transpose() * inputs;
    moments.diagonal().array() += kExpertRidge * moments.trace();
    const Vector solution = least_norm_solution(moments, weighted.transpose() * sample.y);
    if (form.slope) measure.slope.row(j) = solution.head(sample.x.cols()).transpose();
    measure.intercept[j] = solution[solution.size() - 1];
  }
}

/// Σ_ij share_ij ln r_j(x_i) / n, the part of EM's lower bound that depends on the gates.
double gate_value(const MixingMeasure& measure, const Matrix& x, const Matrix& shares) {
  return shares.cwiseProduct(log_gates(measure, x)).sum() / static_cast<double>(x.rows());
}

/// Maximises the concave gate_value() by Newton's method, and halves steps until it grows. The last component
/// stays fixed, since softmax does not change under a common shift.
void fit_gates(const RegressionSample& sample, const Matrix& shares, const GaussianForm& form,
               MixingMeasure& measure) {
  const Matrix inputs = inputs_of(sample.x, form.gate);
  const Eigen::Index width = inputs.cols(), free = shares.cols() - 1, dim = sample.x.cols();
  const double rows = static_cast<double>(inputs.rows());
  double value = gate_value(measure, sample.x, shares);
  for (int step = 0; step < kGateSteps && free > 0; ++step) {
    const Matrix gates = log_gates(measure, sample.x).array().exp();
    Vector gradient(free * width);
    Matrix hessian(free * width, free * width);
    for (Eigen::Index j = 0; j < free; ++j) {
      gradient.segment(j * width, width) = inputs.transpose() * (shares.col(j) - gates.col(j)) / rows;
      for (Eigen::Index l = 0; l <= j; ++l) {
        const Vector weights = gates.col(j).array() * ((j == l ? 1.0 : 0.0) - gates.col(l).array());
        const Matrix block =
            inputs.transpose() * (inputs.array().colwise() * weights.array()).matrix() / rows;
        hessian.block(j * width, l * width, width, width) = block;
        hessian.block(l * width, j * width, width, width) = block.transpose();
      }
    }
    hessian.diagonal().array() += kGateRidge;
    const Vector direction = least_norm_solution(hessian, gradient);
    const double promised = 0.5 * gradient.dot(direction);
    if (!(promised > 1e-12)) return;
    const MixingMeasure before = measure;
    double next = value;
    for (double length = 1; length > 1e-6; length /= 2) {
      for (Eigen::Index j = 0; j < free; ++j) {
        const Vector move = length * direction.segment(j * width, width);
        if (form.gate) measure.gate.row(j) = before.gate.row(j) + move.head(dim).transpose();
        measure.bias[j] = before.bias[j] + move[width - 1];
      }
      next = gate_value(measure, sample.x, shares);
      if (next > value) break;
    }
    if (!(next > value)) {
      measure = before;
      return;
    }
    value = next;
  }
}

/// Calls each(values, count) for the parts of θ in order.
template <class Mixture, class Each>
void for_each_part(Mixture& mixture, const GaussianForm& form, const Each& each) {
  if (form.gate) each(mixture.measure.gate.data(), mixture.measure.gate.size());
  each(mixture.measure.bias.data(), mixture.measure.bias.size());
  if (form.slope) each(mixture.measure.slope.data(), mixture.measure.slope.size());
  each(mixture.measure.intercept.data(), mixture.measure.intercept.size());
}

struct Curvature {
  Vector gradient;
  Vector values;  // eigenvalues of −H
  Matrix vectors;
};

Curvature curvature_at(const GaussianExperts& mixture, const RegressionSample& sample,
                       const GaussianForm& form) {
  const Vector theta = free_parameters(mixture, form);
  Curvature found{likelihood_gradient(mixture, sample, form), {}, {}};
  Matrix hessian(theta.size(), theta.size());
  GaussianExperts moved = mixture;
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    Vector at = theta;
    at[i] += kScoreStep;
    set_free_parameters(at, form, moved);
    const Vector above = likelihood_gradient(moved, sample, form);
    at[i] -= 2 * kScoreStep;
    set_free_parameters(at, form, moved);
    hessian.col(i) = (above - likelihood_gradient(moved, sample, form)) / (2 * kScoreStep);
  }
  SymmetricEigen eigen = symmetric_eigen(-0.5 * (hessian + hessian.transpose()));
  found.values = std::move(eigen.values);
  found.vectors = std::move(eigen.vectors);
  return found;
}

/// The inverse of |−H|, damped. Directions without curvature, such as a common shift of gates, have no step.
Vector newton_step(const Curvature& curvature, double damping) {
  const double largest = curvature.values.cwiseAbs().maxCoeff();
  const Vector along = curvature.vectors.transpose() * curvature.gradient;
  const Vector divisor = curvature.values.cwiseAbs().array() + (damping + 1e-10) * largest;
  return curvature.vectors * along.cwiseQuotient(divisor);
}

}  // namespace

double least_variance(const RegressionSample& sample) {
  return kLeastShare * (sample.y.array() - sample.y.mean()).square().mean();
}

double mean_log_likelihood(const GaussianExperts& mixture, const RegressionSample& sample,
                           Matrix* responsibilities) {
  Matrix terms = log_gates(mixture.measure, sample.x);
  const Matrix errors = expert_residuals(mixture.measure, sample);
  for (Eigen::Index j = 0; j < terms.cols(); ++j) {
    const double variance = mixture.variance[j];
    terms.col(j).array() -=
        errors.col(j).array().square() / (2 * variance) + 0.5 * std::log(2 * std::numbers::pi * variance);
  }
  const Vector highest = terms.rowwise().maxCoeff();
  Matrix mass = (terms.colwise() - highest).array().exp();
  const Vector total = mass.rowwise().sum();
  if (responsibilities) *responsibilities = mass.array().colwise() / total.array();
  return (highest.array() + total.array().log()).mean();
}

Vector free_parameters(const GaussianExperts& mixture, const GaussianForm& form) {
  std::vector<double> values;
  for_each_part(mixture, form, [&](const double* part, Eigen::Index count) {
    values.insert(values.end(), part, part + count);
  });
  if (!form.variance) {
    for (const double variance : mixture.variance) values.push_back(std::log(variance));
  }
  return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
}

void set_free_parameters(const Vector& values, const GaussianForm& form, GaussianExperts& mixture) {
  const double* next = values.data();
  for_each_part(mixture, form, [&](double* part, Eigen::Index count) {
    std::copy_n(next, count, part);
    next += count;
  });
  if (!form.variance) mixture.variance = values.tail(mixture.variance.size()).array().exp();
}

Vector likelihood_gradient(const GaussianExperts& mixture, const RegressionSample& sample,
                           const GaussianForm& form) {
  Matrix shares;
  mean_log_likelihood(mixture, sample, &shares);
  const Matrix gates = log_gates(mixture.measure, sample.x).array().exp();
  const Matrix errors = expert_residuals(mixture.measure, sample);
  const double rows = static_cast<double>(sample.x.rows());
  GaussianExperts slopes = mixture;
  const Matrix of_scores = (shares - gates) / rows;
  const Matrix pull =
      (shares.cwiseProduct(errors).array().rowwise() / mixture.variance.transpose().array()).matrix() / rows;
  slopes.measure.gate = of_scores.transpose() * sample.x;
  slopes.measure.bias = of_scores.colwise().sum().transpose();
  slopes.measure.slope = pull.transpose() * sample.x;
  slopes.measure.intercept = pull.colwise().sum().transpose();
  // The gradient in ln ν: ½ share (e² / ν − 1).
  const Vector squares = shares.cwiseProduct(errors.cwiseAbs2()).colwise().sum().transpose() / rows;
  const Vector weights = shares.colwise().sum().transpose() / rows;
  slopes.variance = (0.5 * (squares.cwiseQuotient(mixture.variance) - weights)).array().exp();
  return free_parameters(slopes, form);
}

double em_round(const RegressionSample& sample, const GaussianForm& form, double least_variance,
                GaussianExperts& mixture) {
  Matrix shares;
  const double before = mean_log_likelihood(mixture, sample, &shares);
  fit_experts(sample, shares, form, mixture.measure);
  if (!form.variance) {
    const Matrix squares = expert_residuals(mixture.measure, sample).cwiseAbs2();
    for (Eigen::Index j = 0; j < shares.cols(); ++j) {
      const double weight = shares.col(j).sum();
      if (weight > 0)
        mixture.variance[j] = std::max(shares.col(j).dot(squares.col(j)) / weight, least_variance);
    }
  }
  fit_gates(sample, shares, form, mixture.measure);
  return before;
}

GaussianFit fit_by_em(GaussianExperts start, const RegressionSample& sample, const GaussianForm& form,
                      int rounds, const std::function<bool()>& interrupted) {
  GaussianFit fit{std::move(start)};
  const double least = least_variance(sample);
  double before = -std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds && !interrupted(); ++round) {
    const double value = em_round(sample, form, least, fit.mixture);
    ++fit.evaluations;
    if (!std::isfinite(value) || value - before < kSmallGain) break;
    before = value;
  }
  fit.likelihood = mean_log_likelihood(fit.mixture, sample);
  ++fit.evaluations;
  return fit;
}

GaussianFit polish_likelihood(GaussianExperts start, const RegressionSample& sample, const GaussianForm& form,
                              int steps, const std::function<bool()>& interrupted) {
  GaussianFit fit{std::move(start)};
  fit.likelihood = mean_log_likelihood(fit.mixture, sample);
  const double rows = static_cast<double>(sample.x.rows());
  const double least = std::log(least_variance(sample));
  double damping = 1e-3;
  for (int step = 0; step <= steps && !interrupted(); ++step) {
    const Curvature curvature = curvature_at(fit.mixture, sample, form);
    const Vector theta = free_parameters(fit.mixture, form);
    fit.evaluations += 1 + 2 * static_cast<int>(theta.size());
    const double promised = 0.5 * curvature.gradient.dot(newton_step(curvature, 0));
    fit.converged = promised <= kNegligibleGain * static_cast<double>(theta.size()) / rows;
    if (promised <= 1e-12 || step == steps) break;
    bool improved = false;
    for (; !improved && damping < kMostNewtonDamping; damping *= improved ? 1.0 / 32 : 4) {
      GaussianExperts next = fit.mixture;
      Vector moved = theta + newton_step(curvature, damping);
      if (!form.variance) {
        auto logs = moved.tail(fit.mixture.variance.size());
        logs = logs.cwiseMax(least);
      }
      set_free_parameters(moved, form, next);
      const double value = mean_log_likelihood(next, sample);
      ++fit.evaluations;
      improved = value > fit.likelihood;
      if (!improved) continue;
      fit.mixture = std::move(next);
      fit.likelihood = value;
    }
    if (!improved) break;
  }
  return fit;
}

}  // namespace moelab
