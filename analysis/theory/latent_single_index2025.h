#pragma once

/// Kawata, Matsutani, Kinoshita, Nishikawa, Suzuki 2025, Mixture of experts provably detect and learn the
/// latent cluster structure in gradient-based learning: why one network does not see the global task. The
/// formulas are derived. Each check takes the law that it tests, so that tests can pass a wrong one.
///
/// α_i(b) = E[σ(z + b) he_i(z)], z ~ N(0, 1), he_i the normalised Hermite polynomials, σ the ReLU.

#include <functional>

#include "analysis/theory/check.h"
#include "sim/data/single_index.h"

namespace moelab {

/// α_i(b), by quadrature.
double hermite_coefficient(int degree, double bias);

/// A law of E[y σ(w·x + b)] for ‖w‖ = 1.
using CorrelationLaw = std::function<double(const SingleIndexOptions&, const SingleIndexDirections&,
                                            const Vector& w, double bias)>;

/// (1/C) Σ_c Σ_i local_i α_i(b + ρ w·v_c) (w·w_c)^i + (1/C) Σ_i global_i (w·w_g)^i Σ_c s_c α_i(b + ρ w·v_c).
double correlation_law(const SingleIndexOptions& options, const SingleIndexDirections& directions,
                       const Vector& w, double bias);

/// The largest deviation over random neurons from the law, in standard errors.
CheckFinding check_cancellation(const CheckEffort& effort, const CorrelationLaw& law = correlation_law);

/// Σ_c s_c α_i(b + ρ w·v_c) to first order in w·v_c, for Σ_c s_c = 0: `slope`(i) α_{i+1}(b) ρ Σ_c s_c w·v_c.
/// The largest relative difference of the quotient, for degrees 2 to 5. The statement has slope √(i + 1).
CheckFinding check_first_order(const std::function<double(int degree)>& slope = {});

}  // namespace moelab
