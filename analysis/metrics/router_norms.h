#pragma once

/// The shape of a linear router's weight matrix W (E, d), row M_i the weights into expert i
/// (Dikkala et al. 2023, Fig. 3 ratio and the spurious-dimension experiment). Uses no routing.

#include <optional>

#include "sim/base/types.h"

namespace moelab {

/// E_i‖M_i‖² / (E_i‖M_i‖)²: 1 when all rows are equally long, E when one row holds everything.
/// None when W is zero or empty.
std::optional<double> router_norm_ratio(const Eigen::Ref<const Matrix>& weight);

/// ‖W B‖²_F / ‖W‖²_F for an orthonormal basis B (d, s) of the signal subspace: s/d for random rows, 1 when
/// every row lies in the subspace. None when W is zero or empty. Throws InvalidOption when B has not d rows.
std::optional<double> router_signal_fraction(const Eigen::Ref<const Matrix>& weight,
                                             const Eigen::Ref<const Matrix>& basis);

}  // namespace moelab
