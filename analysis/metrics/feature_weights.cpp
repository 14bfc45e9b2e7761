#include "analysis/metrics/feature_weights.h"

#include <cmath>

#include "analysis/metrics/load.h"

namespace moelab {

std::optional<double> weight_variation(const Eigen::Ref<const Matrix>& weights,
                                       std::span<const int> clusters) {
  const std::vector<std::int64_t> rows = expert_loads(clusters, static_cast<int>(weights.rows()));
  double sum = 0, counted = 0;
  for (Eigen::Index k = 0; k < weights.rows(); ++k) {
    const double share = static_cast<double>(rows[static_cast<std::size_t>(k)]);
    if (share == 0) continue;
    const Vector relative = weights.row(k).transpose() / weights.row(k).mean();
    sum += share * std::sqrt((relative.array() - 1).square().mean());
    counted += share;
  }
  if (counted == 0) return std::nullopt;
  return sum / counted;
}

}  // namespace moelab
