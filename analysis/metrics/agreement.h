#pragma once

/// How well two partitions of the same rows agree: experts and clusters, up to the experts' names. Experts
/// are the `serving` ones, see sparsity.h.

#include <cstdint>
#include <optional>

#include "sim/base/types.h"

namespace moelab {

/// n_ce, rows of cluster c with expert e: (clusters, E), no cluster empty, unlike the experts.
using ContingencyTable = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Adjusted Rand index (Hubert and Arabie 1985): pairs of rows that are together in both partitions, above
/// what chance gives, (P_ce − P_c P_e / P) ÷ ((P_c + P_e)/2 − P_c P_e / P) with P_x = Σ binomial(n_x, 2).
/// 1 when they are equal, about 0 when they are independent; 1 for two partitions that are both trivial
/// alike. None without rows.
std::optional<double> adjusted_rand_index(const ContingencyTable& table);

/// Normalised mutual information, I(C; E) ÷ ((H(C) + H(E)) / 2) ∈ [0, 1]; 1 when both have one part. None
/// without rows.
std::optional<double> normalized_mutual_information(const ContingencyTable& table);

}  // namespace moelab
