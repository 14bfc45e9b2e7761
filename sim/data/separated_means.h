#pragma once

/// Centres of Gaussians that lie apart: what mixtures and dictionaries have in common.

#include <optional>

#include "sim/base/random.h"
#include "sim/base/types.h"

namespace moelab {

/// The options of a generator that centres depend on, under the names that they have there.
struct SeparatedMeans {
  int dim = 0;
  double mean_std = 1.5;
  double noise_std = 1;
  std::optional<double> separation = std::nullopt;
  bool scale_to_separation = false;
};

/// `count` rows μ_i ~ N(0, mean_std² I_dim); with `separation` each is drawn until
/// ‖μ_i − μ_j‖ ≥ separation · noise_std · √dim for all before it (c-separation, Dikkala et al. 2023, 2).
/// With `scale_to_separation`, instead, all are drawn once and scaled so that the two nearest are that far
/// apart. Throws InvalidOption at "data.separation" when a place is not found.
Matrix draw_separated_means(const SeparatedMeans& options, int count, Engine& engine);

/// min_{i ≠ j} ‖μ_i − μ_j‖ over rows; ∞ for a single one.
double least_distance(const Matrix& means);

}  // namespace moelab
