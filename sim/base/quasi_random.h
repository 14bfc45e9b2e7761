#pragma once

/// Randomised quasi-Monte Carlo: Sobol points with a random digital shift (Owen 1995; L'Ecuyer and Lemieux
/// 2002).

#include <memory>

#include "sim/base/random.h"
#include "sim/base/types.h"

namespace moelab {

/// The largest dimension for which there are direction numbers.
constexpr int kMaximumQuasiDimension = 3667;

/// Φ⁻¹(u), the standard normal quantile, for u in (0, 1).
double normal_quantile(double u);

/// The points u_i = s_i ⊕ Δ, i = 0, 1, …, of [0, 1)^dim: s_i the Sobol sequence from its first point 0 on, Δ
/// a uniformly random binary fraction per coordinate, ⊕ the addition of binary digits without carry.
///
/// Each u_i is uniform, so that Q_n = (1/n) Σ_{i<n} f(u_i) has no bias; its error falls about as 1/n for
/// smooth f, against 1/√n for independent points. Estimate the error from the spread of Q_n over several
/// shifts, not over the points, which depend on each other. Numbers of points that are powers of two are
/// best: every coordinate then has exactly one point in each interval [j/n, (j+1)/n).
class QuasiRandom {
 public:
  /// Draws Δ from `engine`, one word per coordinate. Throws UserError unless 1 ≤ dim ≤
  /// kMaximumQuasiDimension.
  QuasiRandom(int dim, Engine& engine);
  ~QuasiRandom();
  QuasiRandom(QuasiRandom&&) noexcept;
  QuasiRandom& operator=(QuasiRandom&&) noexcept;

  /// Starts again at i = 0 with a new Δ: a fresh rule for the next step of a population gradient.
  void restart(Engine& engine);

  /// The next `count` points (count, dim), each coordinate strictly between 0 and 1.
  Matrix uniforms(int count);

  /// The next `count` points as standard normals Φ⁻¹(u) (count, dim).
  Matrix normals(int count);

 private:
  struct Sequence;
  std::unique_ptr<Sequence> sequence_;
};

}  // namespace moelab
