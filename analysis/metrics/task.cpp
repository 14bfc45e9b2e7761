#include "analysis/metrics/task.h"

#include <fmt/core.h>

#include "sim/base/error.h"

namespace moelab {

double mean_squared_error(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  if (outputs.rows() != targets.rows() || outputs.cols() != targets.cols())
    throw UserError("outputs", fmt::format("shape ({}, {}) differs from the targets' ({}, {})",
                                           outputs.rows(), outputs.cols(), targets.rows(), targets.cols()));
  if (targets.size() == 0) throw UserError("targets", "empty; a loss needs at least one row and one output");
  return (outputs - targets).squaredNorm() / static_cast<double>(targets.size());
}

double label_variance(const Eigen::Ref<const Matrix>& targets) {
  if (targets.size() == 0)
    throw UserError("targets", "empty; a variance needs at least one row and one output");
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

}  // namespace moelab
