#pragma once

/// Exact statements behind the scenarios of scenarios/questions. Each check takes the rule that it tests, so
/// that tests can pass a wrong one.

#include <functional>
#include <string>

#include "analysis/theory/check.h"

namespace moelab {

// Loss-free balancing on frozen scores s (n, E) (Wang et al. 2024; 2512.03915). Row i takes the K experts of
// largest s_ie + b_e. A_e is the load, and L = nK/E the mean load. The dual function is
// G(b) = Σ_i max_{|S|=K} Σ_{e∈S} (s_ie + b_e) − L Σ_e b_e.

/// Counts pairs of biases b, b' with G(b') ≥ G(b) + sign · (A(b) − L)·(b' − b). The statement has sign 1.
CheckFinding check_dual_slope(const CheckEffort& effort, double sign = 1);

/// Moves biases by the sign rule and counts rows that swap an expert e for an expert e' whose bias rose more.
/// Scores that are not frozen move by N(0, drift²) in every round.
CheckFinding check_swaps(const CheckEffort& effort, double drift = 0);

// Balance within groups of equal size (Qiu et al. 2025): micro = global + E Σ_e Cov_g(f_ge, P_ge).

/// The largest deviation of the auxiliary loss `term` from the right-hand side over random batches.
CheckFinding check_group_covariance(const CheckEffort& effort, const std::string& term = "aux_sequence");

// A mixture of two constant experts with difference D, gates σ(±s/τ) and squared loss, s ~ N(0, 1) the score
// difference, ρ = 1/√(2π) its density at 0 (2605.02124). L_τ − L_0 is, to first order in τ,
//   (2 ln 2 − 1) ρ D² τ   if the target is the hard mixture,
//   −ρ D² τ               if the target is continuous at the interface.

enum class Interface { jump, continuous };
/// The loss (f_τ − y)² at a score difference s. `gate` is σ(s/τ).
using LossAtScore = std::function<double(double score, double gate)>;
double loss_at_jump(double score, double gate);
double loss_at_continuous(double score, double gate);
/// Compares (L_τ − L_0)/τ at a small τ, by quadrature, with the statement.
CheckFinding check_soft_to_hard(Interface interface, const LossAtScore& loss);

// The reinforced router, mean field: ṡ_e = a p_e − λ s_e, p = softmax(β s), κ = a β / λ (2605.29121).

/// Two experts: slightly above κ = 2 the symmetric state gives way to z² = 24 (aβ/2 − λ) / (aβ³), z = s_1 −
/// s_2. Measures the ratio of z in simulation to the statement's z. `critical` is the κ that the
/// statement assumes.
CheckFinding check_pitchfork(double critical = 2);
/// The least κ with a stable winner among E experts: min_p ln(p(E−1)/(1−p)) (E−1)/(pE−1).
double least_winning_feedback(int experts);
/// Compares it with simulations that start at a winner, for E from 3 to 64: the largest relative difference.
CheckFinding check_winner(const std::function<double(int experts)>& least = least_winning_feedback);

// Noise filter, Theorem 4.2 (2601.14792): βᵀΣ(Σ + σ²I)⁻¹β ≤ βᵀΣ(pΣ + σ²I)⁻¹β for a block that is active with
// probability p ≤ 1.

/// Counts random Σ, β, σ and p, uniform on [0, most], for which it holds.
CheckFinding check_noise_filter(const CheckEffort& effort, double most = 1);

}  // namespace moelab
