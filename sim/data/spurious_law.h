#pragma once

#include <cmath>

namespace moelab {

/// Laws of mean 0 and variance 1 of coordinates that say nothing: N(0, 1); Laplace's, which is
/// self-decomposable as the normal law is; ±1 with equal probability, which is not (see Dikkala et al. 2023,
/// Theorem 1).
enum class SpuriousLaw { normal, laplace, two_point };

/// A draw of the law from one of N(0, 1), of which it is an increasing function.
inline double spurious_value(SpuriousLaw law, double normal) {
  if (law == SpuriousLaw::normal) return normal;
  if (law == SpuriousLaw::two_point) return normal < 0 ? -1 : 1;
  const double beyond = std::erfc(std::abs(normal) / std::sqrt(2.0));  // P(|h| > |·|) of both laws
  return std::copysign(-std::log(beyond) / std::sqrt(2.0), normal);
}

}  // namespace moelab
