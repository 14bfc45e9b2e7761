#pragma once

/// Sequences of patches with one class a sequence (Chen et al. 2022; Chowdhury et al. 2023).

#include <vector>

#include "sim/data/problem.h"

namespace moelab {

namespace patches {

/// A uniform law U(low, high).
using Interval = std::vector<double>;

/// Chen et al. 2022: a sample of cluster k and class y = ±1 has the patches, in random order,
///
///     y α v_k (signal),  β c_k (centre),  ε γ v_k' (feature noise),  P − 3 times ξ ~ N(0, σ_p² I / d),
///
/// with k ≠ k' and ε = ±1 uniform, and α, β, γ uniform on their intervals. {v_k, c_k} are 2 K random
/// orthonormal directions. Labels of the tokens are the cluster k of their sample.
struct FeatureNoise {
  int clusters = 4;  ///< K
  Interval signal = {0.5, 2};
  Interval centre = {1, 2};
  Interval noise = {0.5, 3};
  double noise_std = 1;  ///< σ_p
  void bind(Fields& fields);
};

/// Chowdhury et al. 2023: one patch is o_1 (y = +1) or o_2 (y = −1), unit vectors with o_1·o_2 = overlap. The
/// other patches are one of p orthonormal patterns, orthogonal to both, plus N(0, noise_std² I / d). The
/// place of the class's own patch is uniform. The label of a token is 0 for o_1, 1 for o_2, and 2 + i for
/// pattern i.
struct OwnPatch {
  double overlap = 0;
  int patterns = 16;  ///< p
  double noise_std = 0.5;
  void bind(Fields& fields);
};

struct Laws : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "law";
};

}  // namespace patches

/// Samples of P patches in R^d, the tokens of a sequence, times `scale`. The target is the class: (1, 0) for
/// y = +1, (0, 1) for y = −1.
struct PatchesOptions {
  int dim = 0;      ///< d
  int patches = 0;  ///< P
  OneOf<patches::Laws> law = {};
  double scale = 1;

  void bind(Fields& fields);
};

}  // namespace moelab
