#pragma once

/// Checks of Chen et al. 2022 (Towards Understanding the Mixture-of-Experts Layer in Deep Learning): no
/// single expert is right on all data, and how smooth noisy top-1 routing is.

#include <functional>
#include <vector>

#include "analysis/theory/check.h"

namespace moelab {

// Theorem 4.1. Fix β, the noise patches, and the magnitudes a on v_k and b on v_k'. Four points share them.
// Cluster k has (+a, −b) and (−a, +b). Cluster k' has (+b, −a) and (−b, +a). The first sign is y.
//
// Let F = Σ_p f(x^(p)). The sum of y F over the four points is 0. So F is not right on all four. Half of the
// samples have feature noise of the opposite sign. If α and γ have one law, four such points are equally
// likely. Then F errs with probability 1/8 or more.

/// The value of one patch x (d) in cluster k (false) or k' (true).
using PatchFunction = std::function<double(bool is_second, const Vector& patch)>;
/// Draws a function of patches that are near the columns v_k, v_k' of `signals` (d, 2).
using DrawPatchFunction = std::function<PatchFunction(Engine& engine, const Matrix& signals)>;

/// A single expert: Σ_j a_j σ(w_j·x + b_j) with a random σ and random weights. It has a part along both
/// signals that is right on most points.
PatchFunction draw_single_expert(Engine& engine, const Matrix& signals);
/// Two experts behind perfect routes: (v_k·x)³ in cluster k and (v_k'·x)³ in cluster k'.
PatchFunction draw_routed_experts(Engine& engine, const Matrix& signals);

/// Measures the share of random quadruples in which F errs on a point, ties included.
CheckFinding check_quadruples(const CheckEffort& effort, const DrawPatchFunction& draw = draw_single_expert);

// Lemma 5.1: ‖p − p̂‖∞ ≤ E² ‖h − ĥ‖∞. Here p_m = P(m = argmax_j (h_j + r_j)) with r ~ U[0, 1]. The constant 2
// is enough. Row m of the Jacobian sums to 0. Its entry ∂p_m/∂h_m is at most 1 and the others are negative.

/// p(h) by exact one-dimensional integrals: p_m = ∫ Π_{j ≠ m} min(1, max(0, h_m − h_j + r)) dr over [0, 1].
/// Gauss's rule has five points between all kinks. It is exact for at most ten experts.
std::vector<double> choice_probabilities(const std::vector<double>& scores);

/// Measures the largest ratio over random pairs of scores of 2 to 10 experts, near and far.
CheckFinding check_choice_constant(const CheckEffort& effort, double constant = 2);

}  // namespace moelab
