#pragma once

/// A gradient beside slopes.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace moelab {

struct GradientComparison {
  double worst = 0, wrong = 0;
  void add(double exact, double slope) {
    worst = std::max(worst, std::isfinite(exact) ? std::abs(exact - slope) : INFINITY);
    wrong = std::max(wrong, std::abs(exact * 1.001 - slope));
  }
  /// And that a wrong one would not pass.
  void check(double tolerance) const {
    CHECK(worst < tolerance);
    CHECK(wrong > tolerance);
  }
};

}  // namespace moelab
