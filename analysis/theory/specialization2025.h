#pragma once

/// Single auxiliary losses by name ("aux", "variance", "orthogonality", …), see sim/model/loss/.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/base/arrays.h"
#include "sim/model/loss/auxiliary_loss.h"
#include "sim/model/model.h"

namespace moelab {

/// The term of that name on a batch, unweighted. Throws std::invalid_argument where there is none.
double term_value(const std::string& term, const RoutedBatch<double>& batch);

/// The term alone, with coefficient 1.
AuxiliaryLosses losses_with(const std::string& term);

// Lemmas 1 and 2 of Guo et al. 2025 (proofs C.1 and C.2).
//
// Lemma 1: a matrix S (N, E) with row sums 1 and K nonzeros a row has a state in which column sums are N/E
// and the variance of nonzeros in rows is larger. The proof starts from a support with K ones a row and
// column sums ⌊NK/E⌋ or ⌈NK/E⌉, entries 1/K, and adds ±δ in turn along a cycle of the support's bipartite
// graph; the variance rises in the rows of the cycle alone, by 2 δ² / K. It assumes the cycle. A support has
// N + E vertices and N K edges, so that N (K − 1) ≥ E guarantees one; K ≥ 2, as printed, does not: N = 1
// with K = E = 2 has none, and the state is then unique. And δ = 1/K, which is allowed in print, takes a
// nonzero.
//
// Lemma 2: for two sets of equal size, A ∪ B has a partition into two sets of equal size. An odd union has
// none; the proof assumes A ∩ B = ∅, with which A and B are that partition: no content beyond it.

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

// Which parameters the losses of Guo et al. 2025 (3.2) move: within one layer the balance and variance
// losses have no gradient in the experts, and the orthogonality loss none in the router, because selections
// are held fixed. In a stack of layers, where experts feed the router of the layer above, both do.

/// The gradient of a term in the parameters of `role`, by the program's backward pass and by central
/// differences of the term along a random direction: the larger, over random models of `layers` layers with
/// two active experts a row.
CheckFinding check_cross_gradient(const CheckEffort& effort, const std::string& term,
                                  ParameterGroup::Role role, int layers = 1);

// The normalised balance loss E Σ_j f_j P_j of the losses in Guo et al. 2025: f_j the share of active pairs
// that are expert j's, P_j its mean probability. It is 1 wherever f or P is uniform, so that 1 does not tell
// balance, and it can be below 1, so that balance is not its least value.

/// The largest |value − 1| over batches with equal loads and any probabilities, and with equal probabilities,
/// whose ties make the loads as unequal as they can be.
CheckFinding check_uniform_factor(const CheckEffort& effort, const std::string& term = "aux");

/// Of 2E rows with K = 1 all but one are undecided and go to the first expert, the last is sure of the
/// second: f = (1 − 1/(2E), 1/(2E), 0, …), and the value is 1 − 1/(4E). The one that differs most over E.
CheckFinding check_below_one(const std::string& term = "aux");

// Derivatives of the orthogonality and variance losses of Guo et al. 2025, as printed and as they are.
//   L_v(S) = −(1/E) Σ_ij (s_ij − s̄_j)² for scores S (N, E), Eq. 7;
//   L_o(X) = Σ_{j≠k} (x_j·x_k)² / ‖x_k‖² for the outputs X (K, o) of a row's active experts, Eq. 6 as a sum
//   of squared lengths.

/// The gradient of a loss at a matrix, of its shape.
using MatrixSlope = std::function<Matrix(const Matrix&)>;

double variance_loss(const Matrix& scores);
/// −(2/E)(s_ij − s̄_j): what comes through s̄_j vanishes, because Σ_i (s_ij − s̄_j) = 0.
Matrix variance_slope(const Matrix& scores);
/// −(2(N − 1)/(E N))(s_ij − s̄_j), Eq. 9.
Matrix variance_slope_as_printed(const Matrix& scores);

double orthogonality_loss(const Matrix& outputs);
/// 2 Σ_{k≠j} (x_j·x_k)(1/‖x_k‖² + 1/‖x_j‖²) x_k − 2 Σ_{k≠j} (x_j·x_k)²/‖x_j‖⁴ x_j.
Matrix orthogonality_slope(const Matrix& outputs);
/// Σ_{k≠j} x_k x_kᵀ x_j / ‖x_k‖², Eq. 8 and 28: without the factor 2, and as if x_j were no denominator.
Matrix orthogonality_slope_as_printed(const Matrix& outputs);

/// The largest difference from central differences of the loss, relative to their largest entry, over random
/// matrices.
CheckFinding check_variance_slope(const CheckEffort& effort, const MatrixSlope& slope);
CheckFinding check_orthogonality_slope(const CheckEffort& effort, const MatrixSlope& slope);

/// A term of a batch whose outputs are all multiplied by 0.1, over the term before: 0.1^`power`. The one that
/// differs most over random outputs.
CheckFinding check_shrinking(const CheckEffort& effort, const std::string& term, int power);

}  // namespace moelab
