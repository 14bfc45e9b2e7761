#pragma once

/// Checks of Guo et al. 2025 (auxiliary losses for expert specialization): its lemmas, the gradients of its
/// losses and its balance loss. A loss is named as in sim/model/loss: "aux", "variance", "orthogonality", …

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/model/model.h"

namespace moelab {

// Eq. 2, normalised: the balance loss is E Σ_j f_j P_j, with f_j the share of active pairs of expert j and
// P_j its mean probability. It is 1 if f or P is uniform, so 1 does not imply balance. It can be below 1, so
// balance is not its minimum.

/// Measures the largest |value − 1| over batches with equal loads and any probabilities, and with equal
/// probabilities, whose ties make the loads as unequal as possible.
CheckFinding check_uniform_factor(const CheckEffort& effort, const std::string& term = "aux");

/// Of 2E rows with K = 1 all but one are undecided and go to the first expert. The last row is sure of the
/// second. So f = (1 − 1/(2E), 1/(2E), 0, …) and the value is 1 − 1/(4E). Measures the value that differs
/// most over E.
CheckFinding check_below_one(const std::string& term = "aux");

// Section 3.2, within one layer: the balance and variance losses have no gradient in the experts. The
// orthogonality loss has none in the router, because the selection is held fixed. In a stack of layers the
// experts feed the router of the next layer. Then both losses have a gradient.

/// Computes the gradient of a loss in the parameters of `role` by the program's backward pass, and by central
/// differences along a random direction. Measures the larger of the two over random models of `layers` layers
/// with two active experts per row.
CheckFinding check_cross_gradient(const CheckEffort& effort, const std::string& term,
                                  ParameterGroup::Role role, int layers = 1);

// Eqs. 3 and 20: ∂L/∂θ_j = Σ_i s_ij x_i for expert j, and Eqs. 4 and 23: ∂L/∂θ_R = Σ_i Σ_j (x_i·θ_j)
// ∂s_ij/∂θ_R
// + α Σ_j f_j Σ_i ∂s_ij/∂θ_R. Both lack the gradient g_i = ∂L_h/∂y_i of the task loss in the output.

/// One layer y_i = Σ_j s_ij θ_jᵀ x_i of linear experts with one output. s (N, E) are softmax scores x_iᵀ ρ_j,
/// zero except for the K largest, whose choice is held fixed. L = ½ Σ_i (y_i − t_i)² + α Σ_j f_j Σ_i s_ij.
struct LinearLayer {
  Matrix x;                ///< (N, d)
  Vector targets;          ///< t (N)
  Matrix experts, router;  ///< θ and ρ (E, d)
  Matrix active;           ///< (N, E), 1 for a row's active experts, else 0
  Vector loads;            ///< f (E)

  Matrix scores() const;
  Vector outputs() const;
  double loss() const;
};

/// A gradient (E, d), and g (N) as the rule puts it into the printed formula: ones as printed.
using OutputGradient = std::function<Vector(const LinearLayer& layer)>;
Vector ones_as_printed(const LinearLayer& layer);
Vector task_gradient(const LinearLayer& layer);  ///< y − t

/// Compares the formula, with g from the rule, to central differences of the loss in the experts or the
/// router. Measures the largest difference over random layers, relative to the largest entry.
CheckFinding check_task_gradient(const CheckEffort& effort, bool in_router, const OutputGradient& rule);

// Eqs. 6-9 and 28: derivatives of the orthogonality and variance losses, as printed and as corrected.
//   L_v(S) = −(1/E) Σ_ij (s_ij − s̄_j)² for scores S (N, E), Eq. 7;
//   L_o(X) = Σ_{j≠k} (x_j·x_k)² / ‖x_k‖² for the outputs X (K, o) of a row's active experts, Eq. 6 as a sum
//   of squared lengths.

/// The gradient of a loss at a matrix, of the same shape.
using MatrixSlope = std::function<Matrix(const Matrix&)>;

double variance_loss(const Matrix& scores);
/// −(2/E)(s_ij − s̄_j). The part through s̄_j vanishes because Σ_i (s_ij − s̄_j) = 0.
Matrix variance_slope(const Matrix& scores);
/// −(2(N − 1)/(E N))(s_ij − s̄_j), Eq. 9.
Matrix variance_slope_as_printed(const Matrix& scores);

double orthogonality_loss(const Matrix& outputs);
/// 2 Σ_{k≠j} (x_j·x_k)(1/‖x_k‖² + 1/‖x_j‖²) x_k − 2 Σ_{k≠j} (x_j·x_k)²/‖x_j‖⁴ x_j.
Matrix orthogonality_slope(const Matrix& outputs);
/// Σ_{k≠j} x_k x_kᵀ x_j / ‖x_k‖², Eq. 8 and 28: without the factor 2, and as if x_j were in no denominator.
Matrix orthogonality_slope_as_printed(const Matrix& outputs);

/// Measure the largest difference from central differences of the loss, relative to their largest entry, over
/// random matrices.
CheckFinding check_variance_slope(const CheckEffort& effort, const MatrixSlope& slope);
CheckFinding check_orthogonality_slope(const CheckEffort& effort, const MatrixSlope& slope);

/// Compares a loss after multiplying all outputs by 0.1 with the loss before. Predicted ratio: 0.1^`power`.
/// Measures the one that differs most over random outputs.
CheckFinding check_shrinking(const CheckEffort& effort, const std::string& term, int power);

// Lemma 1 (proof C.1): a matrix S (N, E) with row sums 1 and K nonzeros a row has a state in which column
// sums are N/E and the variance of nonzeros in rows is larger. The proof starts from a support with K ones a
// row and column sums ⌊NK/E⌋ or ⌈NK/E⌉, entries 1/K, and adds ±δ in turn along a cycle of the support's
// bipartite graph. The variance rises only in the rows of the cycle, by 2 δ² / K. The proof assumes the
// cycle. A support has N + E vertices and N K edges, so N (K − 1) ≥ E guarantees one. The printed K ≥ 2 does
// not: N = 1 with K = E = 2 has none, and the state is then unique. And the printed bound allows δ = 1/K,
// which removes a nonzero.
//
// Lemma 2 (proof C.2): for two sets of equal size, A ∪ B has a partition into two sets of equal size. An odd
// union has none. The proof assumes A ∩ B = ∅. Then A and B are that partition, and the lemma says nothing
// more.

/// Columns of the nonzeros of each row: K in each of N.
using Support = std::vector<std::vector<int>>;

/// Row i has the K columns from i K on, modulo E: column sums are as equal as possible.
Support balanced_support(int rows, int columns, int nonzeros);

/// A cycle as its (row, column) entries in order, where neighbours share a column or a row by turns. Empty if
/// the support has none.
std::vector<std::pair<int, int>> find_cycle(const Support& support, int columns);
using CycleFinder = std::function<std::vector<std::pair<int, int>>(const Support&, int columns)>;

/// S (N, E) of the support: 1/K at its nonzeros, plus and minus `step` by turns along `cycle`.
Matrix cycle_state(const Support& support, int columns, const std::vector<std::pair<int, int>>& cycle,
                   double step);

/// Measures the largest deviation from the state of Lemma 1, with δ = `relative_step` / K. Row sums are 1,
/// column sums are N/E, and each row has K nonzeros. The variance of the nonzeros is 2 δ² / K in the rows of
/// the cycle, and 0 in other rows.
CheckFinding check_cycle(double relative_step, const CycleFinder& find = find_cycle);

/// Counts the cases (N, K, E) that meet `condition` and have a support without a cycle. Without
/// `every_support`, counts those without a balanced support that has a cycle. Tries all supports of all cases
/// with 2 ≤ K ≤ E, N ≤ 4 and E ≤ 5.
CheckFinding check_existence(const std::function<bool(int rows, int nonzeros, int columns)>& condition,
                             bool every_support);

/// Measures the share of random pairs of sets of equal size, disjoint on request, whose union has a partition
/// into sets of equal size.
CheckFinding check_lemma2_partition(const CheckEffort& effort, bool disjoint);

}  // namespace moelab
