#pragma once

/// Lemmas 1 and 2 of Guo et al. 2025 (proofs C.1 and C.2).
///
/// Lemma 1: a matrix S (N, E) with row sums 1 and K nonzeros a row has a state in which column sums are N/E
/// and the variance of nonzeros in rows is larger. The proof starts from a support with K ones a row and
/// column sums ⌊NK/E⌋ or ⌈NK/E⌉, entries 1/K, and adds ±δ in turn along a cycle of the support's bipartite
/// graph; the variance rises in the rows of the cycle alone, by 2 δ² / K. It assumes the cycle. A support has
/// N + E vertices and N K edges, so that N (K − 1) ≥ E guarantees one; K ≥ 2, as printed, does not: N = 1
/// with K = E = 2 has none, and the state is then unique. And δ = 1/K, which is allowed in print, takes a
/// nonzero.
///
/// Lemma 2: for two sets of equal size, A ∪ B has a partition into two sets of equal size. An odd union has
/// none; the proof assumes A ∩ B = ∅, with which A and B are that partition: no content beyond it.

#include <functional>
#include <utility>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/base/types.h"

namespace moelab {

/// Columns of the nonzeros of each row: K in each of N.
using Support = std::vector<std::vector<int>>;

/// Row i has the K columns from i K on, modulo E: column sums as equal as they can be.
Support balanced_support(int rows, int columns, int nonzeros);

/// A cycle as its (row, column) entries in order, each two neighbours in one column or one row by turns;
/// empty where the support has none.
std::vector<std::pair<int, int>> find_cycle(const Support& support, int columns);

/// S (N, E) of the balanced support: 1/K at its nonzeros, plus and minus `step` by turns along `cycle`.
Matrix cycle_state(const Support& support, int columns, const std::vector<std::pair<int, int>>& cycle,
                   double step);

/// Finds the cycle along which the state is changed.
using CycleFinder = std::function<std::vector<std::pair<int, int>>(const Support&, int columns)>;

/// With δ = `relative_step` / K: the largest deviation of row sums from 1, column sums from N/E, counts of
/// nonzeros from K, and of the variances of nonzeros from 2 δ² / K in the rows of the cycle and 0 in others.
CheckFinding check_cycle(double relative_step, const CycleFinder& find = find_cycle);

/// How many of all (N, K, E) with 2 ≤ K ≤ E, small enough to try every support, fulfil `condition` and yet
/// have a support without a cycle (with `every_support`), or no support with the column sums of the proof and
/// a cycle (without).
CheckFinding check_existence(const std::function<bool(int rows, int nonzeros, int columns)>& condition,
                             bool every_support);

/// The share of random pairs of sets of equal size, disjoint if wanted, whose union has a partition into
/// sets of equal size.
CheckFinding check_lemma2_partition(const CheckEffort& effort, bool disjoint);

}  // namespace moelab
