#pragma once

/// The shape of a linear router's weight matrix W (E, d), row M_i the weights into expert i
/// (Dikkala et al. 2023, Fig. 3 ratio and the spurious-dimension experiment). Uses no routing.

#include <optional>
#include <span>

#include "sim/base/arrays.h"

namespace moelab {

/// E_i‖M_i‖² / (E_i‖M_i‖)²: 1 when all rows are equally long, E when one row holds everything.
/// None when W is zero or empty.
std::optional<double> router_norm_ratio(const Eigen::Ref<const Matrix>& weight);

/// ‖W B‖²_F / ‖W‖²_F for an orthonormal basis B (d, s) of the signal subspace: s/d for random rows, 1 when
/// every row lies in the subspace. None when W is zero or empty. Throws InvalidOption when B has not d rows.
std::optional<double> router_signal_fraction(const Eigen::Ref<const Matrix>& weight,
                                             const Eigen::Ref<const Matrix>& basis);

// How far the feature weights M of an adaptive clustering router are from the identity, with which it routes
// like a plain one (Nielsen et al. 2025). Uses `serving`.

/// Mean over rows of the coefficient of variation over features, √(mean_q (m_q/m̄ − 1)²), of the weights
/// m = M_k (d) of the row's cluster k, of weights (E, d) and clusters (n), −1 for rows that have none, which
/// are left out. 0 for M = I. None without rows. Throws InvalidOption for a cluster outside −1 … E − 1.
std::optional<double> weight_variation(const Eigen::Ref<const Matrix>& weights,
                                       std::span<const int> clusters);

}  // namespace moelab
