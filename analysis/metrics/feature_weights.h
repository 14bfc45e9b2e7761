#pragma once

/// How far the feature weights M of an adaptive clustering router are from the identity, with which it routes
/// like a plain one (Nielsen et al. 2025). Uses `serving`.

#include <optional>
#include <span>

#include "sim/base/types.h"

namespace moelab {

/// Mean over rows of the coefficient of variation over features, √(mean_q (m_q/m̄ − 1)²), of the weights
/// m = M_k (d) of the row's cluster k, of weights (E, d) and clusters (n), −1 for rows that have none, which
/// are left out. 0 for M = I. None without rows. Throws InvalidOption for a cluster outside −1 … E − 1.
std::optional<double> weight_variation(const Eigen::Ref<const Matrix>& weights,
                                       std::span<const int> clusters);

}  // namespace moelab
