#pragma once

/// Theorem 1 (formally Theorem 3) of Dikkala et al. 2023: at a local minimum the rows of W lie in V. Write
/// W = (W₁, W₂) for the parts on x₁ and x₂. By Stein's identity
///   ∂L/∂W₂ = (H + 2 λ₁) W₂,  H = ∂²E ℓ/∂b²,
/// and b is not penalised, so that H ⪰ 0 at a local minimum: hence ‖W₂‖ ≤ ‖∂L/∂W₂‖ / (2 λ₁) there, which is
/// the theorem, with a bound for descents that end at a gradient that is small and not zero.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023/subspace_problem.h"

namespace moelab {

/// Alters each problem after it is drawn. Tests pass one that breaks the theorem.
using ProblemChange = std::function<void(SubspaceProblem&)>;

/// The largest ‖W₂‖ / ‖W‖ at the ends of descents, each on a problem with other points x₁ and from another
/// start. `rotated` turns V at random; else it is spanned by axes.
CheckFinding check_local_minima(const CheckEffort& effort, bool rotated, const ProblemChange& change = {});

/// The same with one quasi-random rule for the whole of x, held fixed within a descent: ‖mean of W₂‖ / ‖mean
/// of W‖ over random shifts of the rule, all from one start.
CheckFinding check_local_minima_quasi_random(const CheckEffort& effort, const ProblemChange& change = {});

/// Descents from beside saddles with W₂ ≠ 0: the largest of ‖W₂‖ at the end over ‖W₂‖ at the saddle. θ is
/// moved from the saddle by `push` times random parameters.
CheckFinding check_saddle_is_left(const CheckEffort& effort, double push = 1e-3);

}  // namespace moelab
