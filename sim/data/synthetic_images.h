#pragma once

/// Images of classes without a data set: smooth random templates, deformed and noisy.

#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/base/types.h"
#include "sim/data/layout.h"

namespace moelab {

struct SyntheticImageOptions {
  int size = 16;  ///< height and width in pixels
  int channels = 3;
  int frequencies = 2;  ///< highest frequency of a template, in periods
  int max_shift = 2;    ///< in each direction, in pixels
  double contrast = 0.5;
  double noise_std = 1;

  void bind(Fields& fields);
};

/// A template is a random trigonometric polynomial in each channel, independent over classes and channels,
///   T_c(i, j) = Σ_{|k|, |l| ≤ F} a_kl cos φ + b_kl sin φ,  φ = 2π (k i + l j) / size,  a, b ~ N(0, 1),
/// scaled to mean square one over pixels and channels; F is `frequencies`, and the constant (0, 0) is left
/// out. An image of class c is
///   (s T_c(i + u, j + v) + σ g_ij) / √(E s² + σ²),  s ~ U[1 − contrast, 1 + contrast],  g ~ N(0, 1),
/// with shifts u, v ~ U{−max_shift, …, max_shift} around the edges and σ `noise_std`: pixels have mean zero
/// and mean square one.
class SyntheticImages {
 public:
  /// The first k templates do not depend on the number of classes.
  SyntheticImages(const SyntheticImageOptions& options, int classes, Engine& engine);

  const ImageShape& shape() const { return shape_; }
  /// An image of class `label`, (channels, height, width).
  void draw(Engine& engine, int label, double* pixels) const;

 private:
  ImageShape shape_;
  int max_shift_;
  double contrast_;
  double noise_std_;
  Matrix templates_;  ///< (classes, pixels)
};

}  // namespace moelab
