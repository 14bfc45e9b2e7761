#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/perturbed_cosine.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr int kDescentSteps = 60;
/// The step h of central differences. The derivatives have errors of about h² = 1e-10.
constexpr double kDifferenceStep = 1e-5;

bool sees_radius(const MixtureForm& form) {
  return form.router == MixtureForm::Router::linear || form.tau1 > 0;
}

/// θ of the component, (2d + 1).
Vector component(const MixingMeasure& measure, Eigen::Index j) {
  const Eigen::Index dim = measure.gate.cols();
  Vector theta(2 * dim + 1);
  theta << measure.gate.row(j).transpose(), measure.slope.row(j).transpose(), measure.intercept[j];
  return theta;
}

/// The part of `offset` that changes what the family can see.
Vector tangent(const SplitCell& cell, const Vector& theta, Vector offset) {
  const Eigen::Index dim = cell.truth.gate.cols();
  const auto remove = [&](Eigen::Index first, Eigen::Index count) {
    const Vector along = theta.segment(first, count);
    offset.segment(first, count) -= along * (along.dot(offset.segment(first, count)) / along.squaredNorm());
  };
  if (!sees_radius(cell.truth.form)) remove(0, dim);
  if (cell.family == ExpertFamily::fixed_length) remove(dim, dim + 1);
  return offset;
}

/// Writes θ, pulled back to the family of `like`, into a component.
void set_component(const SplitCell& cell, const Vector& like, Vector theta, Eigen::Index j,
                   MixingMeasure& measure) {
  const Eigen::Index dim = measure.gate.cols();
  const auto restore = [&](Eigen::Index first, Eigen::Index count) {
    theta.segment(first, count) *= like.segment(first, count).norm() / theta.segment(first, count).norm();
  };
  if (!sees_radius(cell.truth.form)) restore(0, dim);
  if (cell.family == ExpertFamily::fixed_length) restore(dim, dim + 1);
  measure.gate.row(j) = theta.head(dim).transpose();
  measure.slope.row(j) = theta.segment(dim, dim).transpose();
  measure.intercept[j] = theta[2 * dim];
}

/// γ (n, k) up to a constant for each row, which a softmax does not see.
Matrix softmax_scores(const MixingMeasure& measure, const Matrix& x) {
  const MixtureForm& form = measure.form;
  Matrix scores = x * measure.gate.transpose();
  if (form.router == MixtureForm::Router::cosine) {
    const Vector norms = x.rowwise().norm();
    for (Eigen::Index j = 0; j < scores.cols(); ++j)
      scores.col(j).array() /= (measure.gate.row(j).norm() + form.tau1) * (norms.array() + form.tau2);
  }
  Vector bias = measure.bias;
  if (form.router == MixtureForm::Router::squared_distance)
    bias -= 0.5 * measure.gate.rowwise().squaredNorm();
  scores.rowwise() += bias.transpose();
  if (form.temperature) scores *= std::exp(measure.log_scale);
  if (form.router != MixtureForm::Router::two_level) return scores;
  Matrix groups = x * measure.group_gate.transpose();
  groups.rowwise() += measure.group_bias.transpose();
  const int count = static_cast<int>(groups.cols()), components = measure.components();
  for (int g = 0; g < count; ++g) {
    const int first = first_of_group(g, count, components);
    auto own = scores.middleCols(first, first_of_group(g + 1, count, components) - first);
    const Vector highest = own.rowwise().maxCoeff();
    const Vector total = highest.array() + (own.colwise() - highest).array().exp().rowwise().sum().log();
    own.colwise() += groups.col(g) - total;
  }
  return scores;
}

/// The measure with a copy of its first component at a later place.
MixingMeasure with_copy(const MixingMeasure& truth, Eigen::Index place) {
  const Eigen::Index count = truth.gate.rows(), dim = truth.gate.cols(), after = count - place;
  MixingMeasure copy = truth;
  copy.gate.resize(count + 1, dim);
  copy.slope.resize(count + 1, dim);
  copy.bias.resize(count + 1);
  copy.intercept.resize(count + 1);
  copy.gate << truth.gate.topRows(place), truth.gate.row(0), truth.gate.bottomRows(after);
  copy.slope << truth.slope.topRows(place), truth.slope.row(0), truth.slope.bottomRows(after);
  copy.bias << truth.bias.head(place), truth.bias[0], truth.bias.tail(after);
  copy.intercept << truth.intercept.head(place), truth.intercept[0], truth.intercept.tail(after);
  return copy;
}

/// Minimises ½‖r(z)‖², r by `residuals`, by the method of Levenberg and Marquardt.
template <class Residuals>
FlattestSplit descend(const Residuals& residuals, Vector z) {
  Vector residual = residuals(z);
  double damping = 1e-2;
  for (int step = 0; step < kDescentSteps && damping < 1e12; ++step) {
    Matrix jacobian(residual.size(), z.size());
    for (Eigen::Index i = 0; i < z.size(); ++i) {
      jacobian.col(i) = central_difference(z[i], kDifferenceStep, [&] { return residuals(z); });
    }
    const Vector gradient = jacobian.transpose() * residual;
    Matrix normal = jacobian.transpose() * jacobian;
    const double scale = std::max(normal.diagonal().maxCoeff(), std::numeric_limits<double>::min());
    for (bool improved = false; !improved && damping < 1e12;) {
      Matrix damped = normal;
      damped.diagonal().array() += damping * scale;
      const Vector next = z - least_norm_solution(damped, gradient);
      const Vector moved = residuals(next);
      improved = moved.squaredNorm() < residual.squaredNorm();
      damping *= improved ? 0.2 : 5;
      if (!improved) continue;
      z = next;
      residual = moved;
    }
  }
  return {residual.norm(), std::move(z)};
}

}  // namespace

Vector regression_values(const MixingMeasure& measure, const Matrix& x) {
  const MixtureForm& form = measure.form;
  if (form.gate != MixtureForm::Gate::softmax || form.selected > 0 || form.shared > 0) {
    Vector values(x.rows());
    for (Eigen::Index row = 0; row < x.rows(); ++row) values[row] = regression_value(measure, x.row(row));
    return values;
  }
  const Matrix scores = softmax_scores(measure, x);
  Matrix experts = x * measure.slope.transpose();
  experts.rowwise() += measure.intercept.transpose();
  experts = through_expert<Matrix>(form, experts);
  const Vector highest = scores.rowwise().maxCoeff();
  const Matrix weights = (scores.colwise() - highest).array().exp().matrix();
  return weights.cwiseProduct(experts).rowwise().sum().cwiseQuotient(weights.rowwise().sum());
}

MixingMeasure SplitCell::at(const Vector& coordinates, double spread) const {
  const Vector theta = component(truth, 0);
  const Eigen::Index size = theta.size(), second = second_place();
  const double share = 0.5 + 0.4 * std::tanh(coordinates[2 * size]);
  const Vector apart = tangent(*this, theta, coordinates.head(size)).normalized();
  const Vector shift = tangent(*this, theta, coordinates.segment(size, size));
  MixingMeasure split = with_copy(truth, second);
  set_component(*this, theta, theta + spread * (shift + (1 - share) * apart), 0, split);
  set_component(*this, theta, theta + spread * (shift - share * apart), second, split);
  // A temperature divides the logarithms of weights, too.
  const double per_log = std::exp(-truth.log_scale);
  const double level = truth.bias[0] + spread * coordinates[2 * size + 1];
  split.bias[0] = level + per_log * std::log(share);
  split.bias[second] = level + per_log * std::log1p(-share);
  return split;
}

std::vector<Vector> draw_starts(const SplitCell& cell, int count, Engine& engine) {
  std::vector<Vector> starts;
  for (int i = 0; i < count; ++i) {
    Vector start = draw_normals(engine, cell.coordinates(), 1);
    const Eigen::Index size = (start.size() - 2) / 2;
    start.segment(size, size).setZero();
    starts.push_back(std::move(start));
  }
  return starts;
}

namespace {

/// The step of second differences. Their relative errors are about 1e-6, by rounding and by truncation.
constexpr double kSecondStep = 1e-3;
constexpr int kMatrixStarts = 4;

/// Orthonormal offsets of θ that the family can see, as columns.
Matrix tangent_basis(const SplitCell& cell, const Vector& theta) {
  Matrix projection(theta.size(), theta.size());
  for (Eigen::Index i = 0; i < theta.size(); ++i)
    projection.col(i) = tangent(cell, theta, Vector::Unit(theta.size(), i));
  const SymmetricEigen eigen = symmetric_eigen(projection);
  Matrix basis(theta.size(), (eigen.values.array() > 0.5).count());
  Eigen::Index next = 0;
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    if (eigen.values[i] > 0.5) basis.col(next++) = eigen.vectors.col(i);
  }
  return basis;
}

/// tᵀ H t at every row, from the measure whose first component is split into halves at θ + t and θ − t.
Vector second_derivative(const SplitCell& cell, const Matrix& x, const Vector& truth, const Vector& offset) {
  const Vector theta = component(cell.truth, 0);
  const Eigen::Index second = cell.second_place();
  MixingMeasure split = with_copy(cell.truth, second);
  set_component(cell, theta, theta + kSecondStep * offset, 0, split);
  set_component(cell, theta, theta - kSecondStep * offset, second, split);
  const double half = std::exp(-cell.truth.log_scale) * std::log(2.0);
  split.bias[0] -= half;
  split.bias[second] -= half;
  return 2 / (kSecondStep * kSecondStep) * (regression_values(split, x) - truth);
}

}  // namespace

SecondOrder second_order(const SplitCell& cell, const Matrix& x) {
  const Vector truth = regression_values(cell.truth, x);
  const Matrix basis = tangent_basis(cell, component(cell.truth, 0));
  const Eigen::Index count = basis.cols();
  // The columns of entries (i, j), i ≤ j, of M : H.
  Matrix second(x.rows(), count * (count + 1) / 2);
  Eigen::Index column = 0;
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = i; j < count; ++j) {
      const auto along = [&](double sign) {
        return second_derivative(cell, x, truth, basis.col(i) + sign * basis.col(j));
      };
      second.col(column++) = i == j ? Vector(along(1) / 4) : Vector((along(1) - along(-1)) / 2);
    }
  }
  MixingMeasure moved = cell.truth;
  const std::vector<double*> parameters = measure_parameters(moved);
  Matrix first(x.rows(), static_cast<Eigen::Index>(parameters.size()));
  for (Eigen::Index i = 0; i < first.cols(); ++i) {
    first.col(i) = central_difference(*parameters[size(i)], kDifferenceStep,
                                      [&] { return regression_values(on_sphere(moved), x); });
  }
  for (Eigen::Index i = 0; i < second.cols(); ++i)
    second.col(i) -= first * least_norm_solution(first, second.col(i));
  second /= truth.norm();
  const Vector spectrum = symmetric_eigenvalues(second.transpose() * second);
  SecondOrder found{static_cast<int>(count), 0, kInfinity};
  found.unseen = static_cast<int>((spectrum.array() < kUnseenChange * kUnseenChange).count());
  // M = L Lᵀ over its trace.
  const auto residuals = [&](const Vector& z) -> Vector {
    const Matrix lower = Eigen::Map<const Matrix>(z.data(), count, count);
    const Matrix all = lower * lower.transpose() / lower.squaredNorm();
    Vector entries_of(second.cols());
    Eigen::Index next = 0;
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index j = i; j < count; ++j) entries_of[next++] = all(i, j);
    }
    return second * entries_of;
  };
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation, 0);
  for (int i = 0; i < kMatrixStarts; ++i) {
    const Vector start = draw_normals(engine, count * count, 1);
    found.least = std::min(found.least, descend(residuals, start).distance);
  }
  return found;
}

FlattestSplit flattest_split(const SplitCell& cell, const Matrix& x, double spread,
                             const std::vector<Vector>& starts) {
  const Vector truth = regression_values(cell.truth, x);
  const auto residuals = [&](const Vector& z) -> Vector {
    return (regression_values(cell.at(z, spread), x) - truth) / truth.norm();
  };
  FlattestSplit flattest{kInfinity, {}};
  for (const Vector& start : starts) {
    FlattestSplit found = descend(residuals, start);
    if (found.distance < flattest.distance) flattest = std::move(found);
  }
  return flattest;
}

}  // namespace moelab
