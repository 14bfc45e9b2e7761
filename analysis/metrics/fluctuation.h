#pragma once

/// How much routing changes between two snapshots of the same rows: two epochs (Nguyen et al. 2025) or two
/// layers (Nielsen et al. 2025). Uses `serving` (or sets of the likeliest experts): experts of rows, −1 where
/// there is none. Rows that have none in either snapshot are left out unless told.

#include <cstdint>
#include <optional>
#include <span>

#include "sim/base/arrays.h"

namespace moelab {

/// Share of rows whose set of K experts differs between two snapshots, (n·K) each: the K experts of a row
/// one after another, in any order, −1 filling up sets of fewer. With K = 1 the share of rows that change
/// their expert. None when every row is left out. Throws InvalidOption when the lengths differ, are no
/// multiple of K, or there are no rows.
std::optional<double> routing_fluctuation(std::span<const int> previous, std::span<const int> current,
                                          int k = 1);

/// Mean over rows of the share of the K experts of a row that it has in both snapshots, |A_i ∩ B_i| / K: with
/// B the routing at the end of training, how settled it is (router saturation of Muennighoff et al. 2024).
/// Arguments and throws as above, sets without −1.
double routing_saturation(std::span<const int> now, std::span<const int> final, int k);

/// Mean over the n² ordered pairs of rows of |S_ij − S'_ij|, S_ij = 1 when rows i and j share an expert:
/// at most 1/E + 1/E' for balanced assignments. Experts are names, (n) in both snapshots. None and throws as
/// above.
std::optional<double> router_instability(std::span<const int> previous, std::span<const int> current);

/// 1 − (1/n) Σ_a max_b n_ab, n_ab rows with expert a before and b now: the share of rows that do not go where
/// most of their former company goes, whatever the experts are called. None and throws as
/// above.
std::optional<double> assignment_change_share(std::span<const int> previous, std::span<const int> current);

/// The adjusted Rand index (agreement.h) of two snapshots (n) each; but 0 where one expert serves all rows of
/// either, also of both: that rows stay together then says nothing of them. None and throws as above.
std::optional<double> layer_ari(std::span<const int> previous, std::span<const int> current);

}  // namespace moelab
