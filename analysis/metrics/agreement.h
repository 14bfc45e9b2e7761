#pragma once

/// How well two partitions of the same rows agree: experts and clusters, or the experts of two routings, up
/// to their names. Experts are the `serving` ones, see sparsity.h.

#include <cstdint>
#include <optional>
#include <span>

#include "sim/base/arrays.h"

namespace moelab {

/// n_ce, rows of cluster c with expert e: (clusters, E), no cluster empty, unlike the experts.
using ContingencyTable = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Adjusted Rand index (Hubert and Arabie 1985): pairs of rows that are together in both partitions, above
/// what chance gives, (P_ce − P_c P_e / P) ÷ ((P_c + P_e)/2 − P_c P_e / P) with P_x = Σ binomial(n_x, 2).
/// 1 when they are equal, about 0 when they are independent; 1 for two partitions that are both trivial
/// alike. None without rows.
std::optional<double> adjusted_rand_index(const ContingencyTable& table);

/// I(C; E) in nats ∈ [0, min(H(C), H(E))], of the shares of the table. None without rows.
std::optional<double> mutual_information(const ContingencyTable& table);

/// I(C; E) ÷ H(C) ∈ [0, 1]: the share of what there is to know of C that E tells. None without rows, and
/// where all are of one C.
std::optional<double> resolved_share(const ContingencyTable& table);

/// Normalised mutual information, I(C; E) ÷ ((H(C) + H(E)) / 2) ∈ [0, 1]; 1 when both have one part. None
/// without rows.
std::optional<double> normalized_mutual_information(const ContingencyTable& table);

/// Σ_e n_e/n H(C | e) in nats: how mixed the clusters are that an expert serves, its mean over experts
/// weighted by their rows. 0 when each expert serves one cluster, H(C) when experts and clusters are
/// independent. None without rows.
std::optional<double> dispatch_entropy(const ContingencyTable& table);

/// n_ab, rows that expert a serves in one routing and b in the other, (n) each, −1 for none: a row for each
/// expert of the one and a column for each of the other that is there. Rows that have none in either are left
/// out. Throws InvalidOption when the lengths differ.
ContingencyTable routing_table(std::span<const int> one, std::span<const int> other);

/// JS(p, q) = H((p + q)/2) − (H(p) + H(q))/2 in nats, of distributions of one length: 0 when they are equal,
/// ln 2 when they share nothing (Lin 1991).
double jensen_shannon_divergence(const Eigen::Ref<const Vector>& p, const Eigen::Ref<const Vector>& q);

}  // namespace moelab
