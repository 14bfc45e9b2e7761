#pragma once

/// Lemma 3 of Nielsen et al. 2025: Σ_q 1/(s_q + α) = d/λ (Eq. 7) has exactly d real solutions. It needs
/// distinct dispersions: there is one solution to the right of each different −s_q and before the next.

#include <functional>

#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

/// All real solutions α of Eq. 7, ascending, as eigenvalues: det(D − αI) = 0 for D = −diag(s) + (λ/d) 1 1ᵀ is
/// Eq. 7 times Π_q(−s_q − α) (the secular equation of a change of rank one, Golub 1973). Of m equal
/// dispersions m − 1 eigenvalues are −s itself, which is no solution; they are left out.
Vector weight_equation_roots(const Vector& dispersion, double lambda);

using RootFinder = std::function<Vector(const Vector& dispersion, double lambda)>;

/// The share of instances with exactly d solutions (`as_printed`), or with one in each interval between the
/// different −s_q and none elsewhere. Half of the instances have ties.
CheckFinding check_root_count(const CheckEffort& effort, bool as_printed,
                              const RootFinder& roots = weight_equation_roots);

}  // namespace moelab
