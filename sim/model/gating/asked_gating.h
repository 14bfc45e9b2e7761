#pragma once

/// How mixtures are asked beside `gating.eval`: every expert, weighted by r, or the likeliest one alone.

#include <memory>

#include "sim/model/gating/gating.h"

namespace moelab {

/// gate_e = r_e of every expert, r the probabilities of `gating`, which outlives it.
template <class Real>
std::unique_ptr<Gating<Real>> make_soft_gating(const Gating<Real>& gating);

/// Gate 1 for the largest r_e + bias_e, of equal ones for the largest score. Without capacities.
template <class Real>
std::unique_ptr<Gating<Real>> make_top1_gating(const Gating<Real>& gating);

}  // namespace moelab
