#pragma once

/// Checks of Chen et al. 2022 (Towards Understanding the Mixture-of-Experts Layer in Deep Learning): no
/// single expert is right on all data, and how smooth noisy top-1 routing is.

#include <functional>
#include <vector>

#include "analysis/theory/check.h"

namespace moelab {

// Theorem 4.1. Fix the magnitudes a on v_k and b on v_k', β and the noise patches. Four points share them: of
// cluster k (+a, −b) and (−a, +b), of cluster k' (+b, −a) and (−b, +a), the first sign being y. For F = Σ_p
// f(x^(p)), the sum of y F over the four points is 0, so F is not right on all four. Half of the samples have
// feature noise of the opposite sign. If α and γ have one law, four such points are equally likely, and F
// errs with probability 1/8 or more.

/// The value of one patch x (d) in cluster k (false) or k' (true).
using PatchFunction = std::function<double(bool is_second, const Vector& patch)>;
/// Draws a function of patches that are near the columns v_k, v_k' of `signals` (d, 2).
using DrawPatchFunction = std::function<PatchFunction(Engine& engine, const Matrix& signals)>;

/// A single expert: Σ_j a_j σ(w_j·x + b_j) with a random σ, random weights, and a part along both signals
/// that is right on most points.
PatchFunction draw_single_expert(Engine& engine, const Matrix& signals);
/// Two experts behind perfect routes: (v_k·x)³ in cluster k, and (v_k'·x)³ in cluster k'.
PatchFunction draw_routed_experts(Engine& engine, const Matrix& signals);

/// Measures the share of random quadruples in which F errs on a point, ties included.
CheckFinding check_quadruples(const CheckEffort& effort, const DrawPatchFunction& draw = draw_single_expert);

// Lemma 5.1: ‖p − p̂‖∞ ≤ E² ‖h − ĥ‖∞ for p_m = P(m = argmax_j (h_j + r_j)), r ~ U[0, 1]. The constant 2 is
// enough: ∂p_m/∂h_m ≤ 1, the other entries of row m are negative, and the row sums to 0.

/// p(h) by exact one-dimensional integrals, p_m = ∫ Π_{j ≠ m} min(1, max(0, h_m − h_j + r)) dr over [0, 1]:
/// Gauss's rule with five points between all kinks, exact for at most ten experts.
std::vector<double> choice_probabilities(const std::vector<double>& scores);

/// Measures the largest ratio over random pairs of scores of 2 to 10 experts, near and far.
CheckFinding check_choice_constant(const CheckEffort& effort, double constant = 2);

}  // namespace moelab
