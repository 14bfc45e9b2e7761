#pragma once

/// How well two partitions of the same rows agree, up to the parts' names: experts and clusters, or the
/// experts of two routings. And how much routing changes between two snapshots of the same rows: two recorded
/// steps (Nguyen et al. 2025) or two layers (Nielsen et al. 2025). Experts are the `serving` ones, or sets of
/// the experts of largest probability; −1 stands for none.

#include <cstdint>
#include <optional>
#include <span>

#include "sim/base/arrays.h"

namespace moelab {

// Agreement of partitions.

/// n_ce, rows of cluster c with expert e: (clusters, E). No cluster is empty; experts may be.
using ContingencyTable = Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// n_ab, rows that expert a serves in one routing and expert b in the other, (n) each. The table has a row
/// and a column for each expert that occurs. Rows that have no expert in either routing are skipped. Throws
/// InvalidOption when the lengths differ.
ContingencyTable routing_table(std::span<const int> one, std::span<const int> other);

/// Adjusted Rand index (Hubert and Arabie 1985): the pairs of rows that are together in both partitions,
/// above chance, (P_ce − P_c P_e / P) ÷ ((P_c + P_e)/2 − P_c P_e / P) with P_x = Σ binomial(n_x, 2). It is 1
/// for equal partitions, also for two equal trivial ones, and about 0 for independent partitions. None
/// without rows.
std::optional<double> adjusted_rand_index(const ContingencyTable& table);

/// I(C; E) in nats ∈ [0, min(H(C), H(E))], from the shares of the table. None without rows.
std::optional<double> mutual_information(const ContingencyTable& table);

/// I(C; E) ÷ H(C) ∈ [0, 1]: the share of the information on C that E contains. None without rows, and where
/// all rows have one C.
std::optional<double> resolved_share(const ContingencyTable& table);

/// Normalised mutual information, I(C; E) ÷ ((H(C) + H(E)) / 2) ∈ [0, 1]; 1 when both have one part. None
/// without rows.
std::optional<double> normalized_mutual_information(const ContingencyTable& table);

/// Σ_e n_e/n H(C | e) in nats: how mixed the clusters of an expert are, a mean over experts weighted by their
/// rows. 0 when each expert serves one cluster, H(C) when experts and clusters are independent. None without
/// rows.
std::optional<double> dispatch_entropy(const ContingencyTable& table);

/// JS(p, q) = H((p + q)/2) − (H(p) + H(q))/2 in nats, of two distributions of one length: 0 when they are
/// equal, ln 2 when they share nothing (Lin 1991).
double jensen_shannon_divergence(const Eigen::Ref<const Vector>& p, const Eigen::Ref<const Vector>& q);

// Change between two snapshots.

/// Share of rows whose set of K experts differs between two snapshots, (n · K) each. A row's K experts stand
/// one after another, in any order; −1 fills up smaller sets. With K = 1, the share of rows that change their
/// expert. Rows with an empty place in either set are skipped. None when every row is skipped. Throws
/// InvalidOption when the lengths differ, are no multiple of K, or there are no rows.
std::optional<double> routing_fluctuation(std::span<const int> previous, std::span<const int> current,
                                          int k = 1);

/// Mean over rows of the share of a row's K experts that it has in both snapshots, |A_i ∩ B_i| / K. With B
/// the routing at the end of training, it is the router saturation of Muennighoff et al. 2024. Sets have no
/// −1. Throws as above.
double routing_saturation(std::span<const int> now, std::span<const int> final, int k);

/// Mean over the n² ordered pairs of rows of |S_ij − S'_ij|, S_ij = 1 when rows i and j share an expert. It
/// is at most 1/E + 1/E' for balanced assignments. Experts are names, (n) in both snapshots. Rows without an
/// expert are skipped. None and throws as above.
std::optional<double> router_instability(std::span<const int> previous, std::span<const int> current);

/// 1 − (1/n) Σ_a max_b n_ab, n_ab rows with expert a before and b now: the share of rows that leave the
/// majority of their former expert's rows, whatever the experts' names. None and throws as above.
std::optional<double> assignment_change_share(std::span<const int> previous, std::span<const int> current);

/// The adjusted Rand index of two snapshots (n) each, except that it is 0 where one expert serves all rows of
/// either snapshot: that rows stay together then says nothing. None and throws as above.
std::optional<double> layer_ari(std::span<const int> previous, std::span<const int> current);

}  // namespace moelab
