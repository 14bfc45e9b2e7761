#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace moelab {

/// Whether no value is NaN or infinite.
template <class Real>
bool all_finite(std::span<const Real> values) {
  // Without a branch, so that it is done at the speed of memory.
  unsigned others = 0;
  for (const Real value : values)
    others |= static_cast<unsigned>(!(std::abs(value) <= std::numeric_limits<Real>::max()));
  return others == 0;
}

}  // namespace moelab
