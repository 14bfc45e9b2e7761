#include "sim/data/mixing_measure.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/numerics.h"

namespace moelab {
namespace {

double reciprocal(double value) {
  return value > 0 ? 1 / value : 0;
}

double log_sum(const Eigen::Ref<const Vector>& scores) {
  const double highest = scores.maxCoeff();
  return highest + std::log((scores.array() - highest).exp().sum());
}

Vector two_level_scores(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  Vector scores = measure.gate * x.transpose() + measure.bias;
  const Vector groups = measure.group_gate * x.transpose() + measure.group_bias;
  const double total = log_sum(groups);
  const int count = static_cast<int>(groups.size());
  for (int g = 0; g < count; ++g) {
    const int first = first_of_group(g, count, measure.components());
    auto own = scores.segment(first, first_of_group(g + 1, count, measure.components()) - first);
    own.array() += groups[g] - total - log_sum(own);
  }
  return scores;
}

/// exp(γ − max γ) for a softmax, with zeros for components that are not selected, or σ(γ) for sigmoids.
Vector masses(const MixtureForm& form, const Vector& scores) {
  if (form.gate != MixtureForm::Gate::softmax) return 1 / (1 + (-scores.array()).exp());
  Vector mass = (scores.array() - scores.maxCoeff()).exp();
  if (form.selected == 0 || form.selected >= scores.size()) return mass;
  const std::vector<Eigen::Index> order = descending_order(scores);
  for (std::size_t place = size(form.selected); place < order.size(); ++place) mass[order[place]] = 0;
  return mass;
}

double divisor(const MixtureForm& form, const Vector& mass) {
  return form.gate == MixtureForm::Gate::sigmoid ? 1 : mass.sum();
}

void put_on_sphere(Matrix& slope, Vector& intercept) {
  for (Eigen::Index j = 0; j < intercept.size(); ++j) {
    const double scale = reciprocal(std::hypot(slope.row(j).norm(), intercept[j]));
    slope.row(j) *= scale;
    intercept[j] *= scale;
  }
}

}  // namespace

bool is_same_family(const MixtureForm& one, const MixtureForm& other) {
  MixtureForm same = one;
  if ((one.selected > 0) == (other.selected > 0)) same.selected = other.selected;
  same.unit = other.unit;
  return same == other;
}

void put_on_sphere(MixingMeasure& measure) {
  if (!measure.form.unit) return;
  put_on_sphere(measure.slope, measure.intercept);
  put_on_sphere(measure.shared_slope, measure.shared_intercept);
}

bool has_signs(const MixtureForm& form) {
  return form.expert != MixtureForm::Expert::power || form.power % 2 == 1;
}

int first_of_group(int group, int groups, int components) {
  return (group * components + groups - 1) / groups;
}

Matrix effective_directions(const MixingMeasure& measure) {
  const Eigen::Index dim = measure.gate.cols();
  Matrix directions = measure.gate;
  switch (measure.form.router) {
    case MixtureForm::Router::linear:
      return measure.form.temperature ? Matrix(std::exp(measure.log_scale) * directions) : directions;
    case MixtureForm::Router::squared_distance:
      return directions;
    case MixtureForm::Router::cosine:
      for (Eigen::Index j = 0; j < directions.rows(); ++j)
        directions.row(j) *= reciprocal(directions.row(j).norm() + measure.form.tau1);
      return directions;
    case MixtureForm::Router::two_level:
      break;
  }
  Matrix both(measure.components(), 2 * dim);
  const Vector weights = gates_at_zero(measure);
  const int groups = static_cast<int>(measure.group_gate.rows());
  for (int g = 0; g < groups; ++g) {
    const int first = first_of_group(g, groups, measure.components());
    const int count = first_of_group(g + 1, groups, measure.components()) - first;
    const Eigen::RowVectorXd mean = weights.segment(first, count).transpose() *
                                    directions.middleRows(first, count) / weights.segment(first, count).sum();
    both.block(first, 0, count, dim).rowwise() = measure.group_gate.row(g);
    both.block(first, dim, count, dim) = directions.middleRows(first, count).rowwise() - mean;
  }
  return both;
}

Vector gate_scores(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  switch (measure.form.router) {
    case MixtureForm::Router::two_level:
      return two_level_scores(measure, x);
    case MixtureForm::Router::squared_distance:
      return measure.bias - 0.5 * (measure.gate.rowwise() - x).rowwise().squaredNorm();
    case MixtureForm::Router::linear: {
      const Vector scores = measure.gate * x.transpose() + measure.bias;
      return measure.form.temperature ? Vector(std::exp(measure.log_scale) * scores) : scores;
    }
    case MixtureForm::Router::cosine:
      break;
  }
  const Vector products = effective_directions(measure) * x.transpose();
  return products * reciprocal(x.norm() + measure.form.tau2) + measure.bias;
}

Vector gate_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  const Vector mass = masses(measure.form, gate_scores(measure, x));
  return mass / divisor(measure.form, mass);
}

Vector gates_at_zero(const MixingMeasure& measure) {
  const Vector scores = gate_scores(measure, Eigen::RowVectorXd::Zero(measure.gate.cols()));
  MixtureForm form = measure.form;
  form.selected = 0;
  const Vector mass = masses(form, scores);
  return mass / divisor(form, mass);
}

int shifted_columns(const MixtureForm& form, int dim) {
  return form.gate == MixtureForm::Gate::softmax ? dim : 0;
}

Vector expert_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  return through_expert<Vector>(measure.form, measure.slope * x.transpose() + measure.intercept);
}

double regression_value(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  const Vector mass = masses(measure.form, gate_scores(measure, x));
  const double routed = mass.dot(expert_values(measure, x)) / divisor(measure.form, mass);
  if (measure.form.shared == 0) return routed;
  return routed +
         through_expert<Vector>(measure.form, measure.shared_slope * x.transpose() + measure.shared_intercept)
             .sum();
}

double expert_distance(const MixingMeasure& one, const MixingMeasure& other) {
  const bool signs_differ = has_signs(one.form);
  const auto distance = [&](Eigen::Index i, Eigen::Index j) {
    const auto of_sign = [&](double sign) {
      return std::hypot((one.slope.row(i) - sign * other.slope.row(j)).norm(),
                        one.intercept[i] - sign * other.intercept[j]);
    };
    return signs_differ ? of_sign(1) : std::min(of_sign(1), of_sign(-1));
  };
  Matrix distances(one.components(), other.components());
  for (Eigen::Index i = 0; i < distances.rows(); ++i) {
    for (Eigen::Index j = 0; j < distances.cols(); ++j) distances(i, j) = distance(i, j);
  }
  return std::max(distances.rowwise().minCoeff().maxCoeff(), distances.colwise().minCoeff().maxCoeff());
}

}  // namespace moelab
