#pragma once

/// How undecided a router is about single rows (Nguyen et al. 2025, section 4). Uses `probabilities`.

#include <optional>

#include "sim/base/types.h"

namespace moelab {

/// H(r(x_i)) in nats for each row of routing probabilities (n, E); (n).
Vector routing_entropies(const Eigen::Ref<const Matrix>& probabilities);

/// Mean over rows of H(r(x)): 0 for one-hot routing, ln E for uniform routing. The entropy of a cluster's
/// mean routing (sparsity.h) is never below the mean of these over its rows. Throws InvalidOption without
/// rows.
double routing_entropy(const Eigen::Ref<const Matrix>& probabilities);

/// The largest probability less the second largest, for each row of (n, E); (n). Throws InvalidOption for
/// less than two experts.
Vector router_margins(const Eigen::Ref<const Matrix>& probabilities);

/// Mean over rows of the margin: 1 for one-hot routing, 0 for ties. None for one expert. Throws InvalidOption
/// without rows.
std::optional<double> router_margin(const Eigen::Ref<const Matrix>& probabilities);

}  // namespace moelab
