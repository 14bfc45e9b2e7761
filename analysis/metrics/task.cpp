#include "analysis/metrics/task.h"

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/softmax.h"

namespace moelab {

namespace {

void require_equal_shapes(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  if (outputs.rows() != targets.rows() || outputs.cols() != targets.cols())
    throw InvalidOption("outputs",
                        fmt::format("shape ({}, {}) differs from the targets' ({}, {})", outputs.rows(),
                                    outputs.cols(), targets.rows(), targets.cols()));
  if (targets.size() == 0)
    throw InvalidOption("targets", "empty; a loss needs at least one row and one output");
}

}  // namespace

double mean_squared_error(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  return (outputs - targets).squaredNorm() / static_cast<double>(targets.size());
}

double label_variance(const Eigen::Ref<const Matrix>& targets) {
  if (targets.size() == 0)
    throw InvalidOption("targets", "empty; a variance needs at least one row and one output");
  // Measured from the first row, a constant output gives exactly zero whatever its value.
  const Eigen::RowVectorXd origin = targets.row(0);
  const Eigen::RowVectorXd mean = (targets.rowwise() - origin).colwise().mean();
  return ((targets.rowwise() - origin).rowwise() - mean).squaredNorm() / static_cast<double>(targets.size());
}

std::optional<double> normalised_mean_squared_error(const Eigen::Ref<const Matrix>& outputs,
                                                    const Eigen::Ref<const Matrix>& targets) {
  const double loss = mean_squared_error(outputs, targets);
  const double variance = label_variance(targets);
  if (variance == 0) return std::nullopt;
  return loss / variance;
}

double mean_cross_entropy(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  return -log_softmax(outputs).cwiseProduct(targets).sum() / static_cast<double>(targets.rows());
}

Matrix cross_entropy_gradients(const Eigen::Ref<const Matrix>& outputs,
                               const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  const Vector masses = targets.rowwise().sum();
  return masses.asDiagonal() * softmax(outputs) - Matrix(targets);
}

double accuracy(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  Eigen::Index right = 0;
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    Eigen::Index given = 0, wanted = 0;
    outputs.row(i).maxCoeff(&given);
    targets.row(i).maxCoeff(&wanted);
    if (given == wanted) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(outputs.rows());
}

}  // namespace moelab
