#include "analysis/metrics/router_norms.h"

#include <fmt/core.h>

#include "sim/base/error.h"

namespace moelab {

std::optional<double> router_norm_ratio(const Eigen::Ref<const Matrix>& weight) {
  if (weight.size() == 0) return std::nullopt;
  const Vector norms = weight.rowwise().norm();
  const double mean = norms.mean();
  if (mean == 0) return std::nullopt;
  return norms.array().square().mean() / (mean * mean);
}

std::optional<double> router_signal_fraction(const Eigen::Ref<const Matrix>& weight,
                                             const Eigen::Ref<const Matrix>& basis) {
  if (basis.rows() != weight.cols())
    throw InvalidOption("basis",
                        fmt::format("{} rows for router weights of width {}", basis.rows(), weight.cols()));
  const double total = weight.squaredNorm();
  if (total == 0) return std::nullopt;
  const Matrix projected = weight * basis;
  return projected.squaredNorm() / total;
}

}  // namespace moelab
