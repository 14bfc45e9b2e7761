#include "sim/base/softmax.h"

#include <cmath>

namespace moelab {

Matrix log_softmax(const Eigen::Ref<const Matrix>& scores) {
  const Matrix shifted = scores.colwise() - scores.rowwise().maxCoeff();
  const Vector log_sums = shifted.array().exp().rowwise().sum().log();
  return shifted.colwise() - log_sums;
}

Matrix softmax(const Eigen::Ref<const Matrix>& scores) {
  const Matrix shifted = scores.colwise() - scores.rowwise().maxCoeff();
  // Eigen's own exponential of −∞ is not zero.
  Matrix values = shifted.unaryExpr([](double value) { return std::exp(value); });
  values.array().colwise() /= values.rowwise().sum().array();
  return values;
}

}  // namespace moelab
