#pragma once

/// Nguyen et al. 2025, appendix B.3: Renormalize(TopK⁰(softmax γ)) = softmax(TopK^∞ γ), exactly, where the
/// K-th largest score is above the next.

#include <functional>

#include "analysis/theory/check.h"
#include "sim/base/types.h"

namespace moelab {

/// Gates (E) from scores γ (E) and K.
using GateRule = std::function<Vector(const Vector& scores, int selected)>;

Vector renormalised_gates(const Vector& scores, int selected);  ///< K largest of softmax γ over their sum
Vector masked_gates(const Vector& scores, int selected);  ///< softmax of γ, all but the K largest −∞

/// The largest difference of the two over random scores, E and K.
CheckFinding check_topk(const CheckEffort& effort, const GateRule& left = renormalised_gates,
                        const GateRule& right = masked_gates);

}  // namespace moelab
