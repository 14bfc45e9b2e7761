#include "sim/train/gauss_newton.h"

#include <algorithm>
#include <cmath>

#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

/// A promise below this share of L is rounding, and one below this of all is for data without noise.
constexpr double kSmallestPromise = 1e-12, kNothing = 1e-28;
/// Of the sampling error L p / n: an optimizer's error that does not count beside it.
constexpr double kNegligible = 1e-3;
/// Keeps directions without curvature, as a common shift of the gates' biases, out of a step.
constexpr double kStepRidge = 1e-13;
constexpr double kMostDamping = 1e12;

/// H = (2/n) JᵀJ and ∇L at `values`.
struct NormalEquations {
  Matrix curvature;
  Vector gradient;
};

NormalEquations normal_equations(SampleLoss& loss, const std::vector<double>& values) {
  const auto count = static_cast<Eigen::Index>(values.size());
  NormalEquations equations{Matrix::Zero(count, count), Vector::Zero(count)};
  Vector row(count);
  loss.set_parameters(values.data());
  for (int i = 0; i < loss.rows(); ++i) {
    const double residual = loss.residual(i, row.data());
    equations.curvature.selfadjointView<Eigen::Lower>().rankUpdate(row);
    equations.gradient += residual * row;
  }
  loss.count_evaluation();
  const double factor = 2.0 / loss.rows();
  equations.gradient *= factor;
  equations.curvature = (factor * equations.curvature).selfadjointView<Eigen::Lower>();
  return equations;
}

/// −∇L is no way for a parameter that it pushes beyond its bound: its row and column become those of 1.
void hold(const std::vector<double>& values, double bound, NormalEquations& equations) {
  for (Eigen::Index i = 0; i < equations.gradient.size(); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    if (std::abs(value) < bound || value * equations.gradient[i] >= 0) continue;
    equations.curvature.row(i).setZero();
    equations.curvature.col(i).setZero();
    equations.curvature(i, i) = 1;
    equations.gradient[i] = 0;
  }
}

Vector step_of(const NormalEquations& equations, double damping) {
  Matrix damped = equations.curvature;
  const double ridge = kStepRidge * damped.trace();
  damped.diagonal() *= 1 + damping;
  damped.diagonal().array() += ridge;
  return -least_norm_solution(damped, equations.gradient);
}

}  // namespace

PolishedFit polish(SampleLoss& loss, std::vector<double> start, int steps) {
  PolishedFit fit{std::move(start)};
  fit.loss = loss.evaluate(fit.parameters.data(), nullptr);
  double damping = 1e-3;
  std::vector<double> next(fit.parameters.size());
  const auto lower = [&](const NormalEquations& equations) {
    for (; damping < kMostDamping && !loss.interrupted(); damping *= 4) {
      const Vector step = step_of(equations, damping);
      for (std::size_t i = 0; i < next.size(); ++i) {
        next[i] =
            std::clamp(fit.parameters[i] + step[static_cast<Eigen::Index>(i)], -loss.bound(), loss.bound());
      }
      const double value = loss.evaluate(next.data(), nullptr);
      if (!(value < fit.loss)) continue;
      fit.parameters = next;
      fit.loss = value;
      damping = std::max(damping / 16, 1e-12);
      return true;
    }
    return false;
  };
  for (int i = 0; i <= steps && !loss.interrupted(); ++i) {
    NormalEquations equations = normal_equations(loss, fit.parameters);
    hold(fit.parameters, loss.bound(), equations);
    fit.promised = -0.5 * equations.gradient.dot(step_of(equations, 0));
    if (fit.promised <= std::max(kSmallestPromise * fit.loss, kNothing)) break;
    if (i == steps || !lower(equations)) break;
  }
  const auto count = static_cast<double>(fit.parameters.size());
  fit.converged = fit.promised <= std::max(kNegligible * fit.loss * count / loss.rows(), kNothing);
  return fit;
}

}  // namespace moelab
