#pragma once

/// What the regression function f_G = Σ_j softmax(γ)_j h(·, η_j) of a mixture can tell about its measure,
/// before any fit: directions that it cannot see at all, and how flat it is along the others. For the routers
/// and experts of Nguyen et al. (Statistical Advantages of Perturbing Cosine Router in Mixture of Experts),
/// who give a rate for each pair; see flatness.h for how flatness becomes a rate.

#include "analysis/theory/check.h"
#include "analysis/theory/perturbed_cosine/flatness.h"
#include "analysis/theory/perturbed_cosine/gate_forms.h"

namespace moelab {

/// In place of the first component two with its gate, experts c_1 η and c_2 η and half of its weight each,
/// (c_1^q + c_2^q) / 2 = 1 for an expert with h(x, c η) = c^q h(x, η); under sigmoids, whose weights do not
/// divide, its whole weight each and c_1^q + c_2^q = 1. Of K selected components one more is selected. The
/// largest |f_G − f*| over draws of x is 0 where no fit by least squares tells c_1.
CheckFinding check_scaled_experts(const CheckEffort& effort, const MixtureForm& form, double first_scale);

/// f_G is the same where every β1 is twice as long: the largest |f_G − f*| over draws of x is 0.
CheckFinding check_radius(const CheckEffort& effort, const MixtureForm& form);

/// The measures of invariances() have the truth's regression function: the largest |f_G − f*| of all.
CheckFinding check_invariances(const CheckEffort& effort, const MixtureForm& form);

/// With as many components as the truth, the directions in which f does not change to first order:
/// eigenvalues of the Gram matrix (1/n) Σ ∂f/∂θ ∂f/∂θ' over draws of x, θ all parameters, of at most 1e-13 of
/// the largest. Predicted: the dimensions of invariances(). More would make rates of single fits slower than
/// n^(−1/2).
CheckFinding check_gram(const CheckEffort& effort, const MixtureForm& form);

/// ∂²F/∂β1∂b = ∂F/∂a for F = exp(γ(x)) h(x, a, b): the largest difference over draws of x, by central
/// differences, over the largest ∂F/∂a.
CheckFinding check_mixed_derivative(const CheckEffort& effort, const MixtureForm& form);

/// The order r of ‖f_G − f*‖ ~ ε^r along the flattest measures whose first cell holds two components ε apart,
/// as the slope of logarithms between the two smallest of three spreads; predicted: 2.
CheckFinding check_flatness(const CheckEffort& effort, const MixtureForm& form,
                            ExpertFamily family = ExpertFamily::fixed_length);

}  // namespace moelab
