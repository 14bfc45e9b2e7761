#pragma once

/// Normalization of rows, before other blocks.

#include <string>

#include "sim/model/blocks/block.h"

namespace moelab {

enum class Normalization { layer, rms };

/// y = g ∘ x̂ + b with x̂ = (x − mean x) / √(var x + 1e-5) (`layer`, Ba et al. 2016), or y = g ∘ x / √(mean x²
/// + 1e-5) (`rms`, Zhang, Sennrich 2019), of each row x (d). g starts at 1, b at 0. Arrays: <prefix>norm_gain
/// and, of `layer`, <prefix>norm_bias (d).
template <class Real>
std::unique_ptr<Block<Real>> make_normalization(Normalization kind, int dim, const std::string& prefix);

/// f(norm(x)) of a block f. Parameters [those of f | those of norm], so that values of the chain are values
/// of f; state and signals are those of f, and <prefix> leads the names of its arrays, too.
template <class Real>
std::unique_ptr<Block<Real>> make_normalized(Normalization kind, int dim, const std::string& prefix,
                                             std::unique_ptr<Block<Real>> block);

}  // namespace moelab
