#pragma once

/// Running extremes that do not overlook a value that is not a number, as std::max and std::min do.

#include <cmath>

namespace moelab {

inline double larger(double left, double right) {
  return left >= right || std::isnan(left) ? left : right;
}

inline double smaller(double left, double right) {
  return left <= right || std::isnan(left) ? left : right;
}

}  // namespace moelab
