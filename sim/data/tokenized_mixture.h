#pragma once

/// Sequences of tokens from a mixture of spherical Gaussians, with one target a sequence (Dikkala et al.
/// 2023, C.2).

#include <vector>

#include "sim/data/problem.h"

namespace moelab {

namespace tokenized_mixture {

/// The divisor of the sum over tokens: none, or s.
enum class Normalize { none, tokens };

/// y = Σ_t W_{c_t} x_t.
struct LinearTarget {
  int dim = 1;
  Normalize normalize = Normalize::none;
  void bind(Fields& fields);
};
/// y = Σ_t (W_{c_t} x_t)², entry by entry.
struct QuadraticTarget {
  int dim = 1;
  Normalize normalize = Normalize::none;
  void bind(Fields& fields);
};
struct Targets : TargetAxis {
  static const std::vector<TargetKind>& table();
};

}  // namespace tokenized_mixture

/// A sample is s independent tokens x_t = μ_{c_t} + σ g,  c_t ~ U{0, …, k − 1}, g ~ N(0, I_d). The target is
/// a sum over tokens, divided by s if `normalize` is `tokens`. Means are μ_c ~ N(0, mean_std² I). Rows of W_c
/// are N(0, I / (d (mean_std² + noise_std²))), so an entry of W_c x_t is of order one and the label variance
/// of order s. The paper prints neither scale. Labels are the tokens' components, (n, s).
///
/// Means and W depend neither on s nor on the target. The tokens of a set are one stream that is cut into
/// samples: a sample at 2s is two consecutive samples at s, and its target is their sum (before any
/// division). Label noise N(0, label_noise²) is added to each entry of y. It is drawn after the sample's
/// tokens, so it changes later samples.
struct TokenizedMixtureOptions {
  int clusters = 0;  ///< k
  int dim = 0;       ///< d
  int tokens = 0;    ///< s
  double mean_std = 1.5;
  double noise_std = 1;  ///< σ
  OneOf<tokenized_mixture::Targets> target = {};
  double label_noise = 0;

  void bind(Fields& fields);
};

}  // namespace moelab
