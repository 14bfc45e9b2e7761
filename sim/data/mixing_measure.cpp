#include "sim/data/mixing_measure.h"

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

double reciprocal(double value) {
  return value > 0 ? 1 / value : 0;
}

}  // namespace

Matrix effective_directions(const MixingMeasure& measure) {
  if (measure.form.router == MixtureForm::Router::linear) return measure.gate;
  Matrix directions = measure.gate;
  for (Eigen::Index j = 0; j < directions.rows(); ++j) {
    directions.row(j) *= reciprocal(directions.row(j).norm() + measure.form.tau1);
  }
  return directions;
}

Vector gate_scores(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  const Vector products = effective_directions(measure) * x.transpose();
  if (measure.form.router == MixtureForm::Router::linear) return products + measure.bias;
  return products * reciprocal(x.norm() + measure.form.tau2) + measure.bias;
}

Vector expert_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  const Vector affine = measure.slope * x.transpose() + measure.intercept;
  if (measure.form.expert == MixtureForm::Expert::relu) return affine.cwiseMax(0);
  return affine.array().pow(measure.form.power);
}

double regression_value(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  const Vector scores = gate_scores(measure, x);
  const Vector mass = (scores.array() - scores.maxCoeff()).exp();
  return mass.dot(expert_values(measure, x)) / mass.sum();
}

double expert_distance(const MixingMeasure& one, const MixingMeasure& other) {
  const bool has_signs = one.form.expert == MixtureForm::Expert::relu || one.form.power % 2 == 1;
  const auto distance = [&](Eigen::Index i, Eigen::Index j) {
    const auto of_sign = [&](double sign) {
      return std::hypot((one.slope.row(i) - sign * other.slope.row(j)).norm(),
                        one.intercept[i] - sign * other.intercept[j]);
    };
    return has_signs ? of_sign(1) : std::min(of_sign(1), of_sign(-1));
  };
  Matrix distances(one.components(), other.components());
  for (Eigen::Index i = 0; i < distances.rows(); ++i) {
    for (Eigen::Index j = 0; j < distances.cols(); ++j) distances(i, j) = distance(i, j);
  }
  return std::max(distances.rowwise().minCoeff().maxCoeff(), distances.colwise().minCoeff().maxCoeff());
}

}  // namespace moelab
