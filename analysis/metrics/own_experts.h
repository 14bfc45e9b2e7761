#pragma once

/// Which clusters have an expert of their own, and which share one: what Theorem 2 of Dikkala et al. 2023
/// asks of k log k experts.

#include <map>
#include <span>

#include "sim/base/arrays.h"

namespace moelab {

/// With n_ce the rows of cluster c that expert e serves: whether c is the cluster argmax_c n_ce of its expert
/// argmax_e n_ce, the lowest number among equals. A cluster for which it is not is merged into another one;
/// two experts that share a cluster take nothing from it. `clusters`, `serving` (n), −1 for none; clusters
/// without a served row are left out. Throws InvalidOption when the lengths differ.
std::map<int, bool> own_experts(std::span<const int> clusters, std::span<const int> serving);

/// Coupon collector: Σ_c (1 − p_c)^E, the expected number of clusters without a row among E rows drawn
/// independently, from shares p (k), sum 1.
double expected_unsampled_clusters(const Eigen::Ref<const Vector>& shares, double experts);

}  // namespace moelab
