#pragma once

/// Rotary places (Su et al. 2021).

#include <cmath>
#include <vector>

namespace moelab {

/// Turns the pairs (j, j + k/2) of a row at place t by the angle t 10000^(−2j/k).
template <class Real>
class Turns {
 public:
  Turns(int tokens, int key_dim) : half_(key_dim / 2) {
    for (int t = 0; t < tokens; ++t) {
      for (int j = 0; j < half_; ++j) {
        const double angle = t * std::pow(kBase, -static_cast<double>(j) / half_);
        cosines_.push_back(static_cast<Real>(std::cos(angle)));
        sines_.push_back(static_cast<Real>(std::sin(angle)));
      }
    }
  }

  /// `direction` 1, or −1 for back.
  void turn(int place, Real direction, Real* values) const {
    const std::size_t first = static_cast<std::size_t>(place) * static_cast<std::size_t>(half_);
    for (int j = 0; j < half_; ++j) {
      const std::size_t at = first + static_cast<std::size_t>(j);
      const Real cosine = cosines_[at], sine = direction * sines_[at];
      const Real left = values[j], right = values[j + half_];
      values[j] = cosine * left - sine * right;
      values[j + half_] = sine * left + cosine * right;
    }
  }

 private:
  static constexpr double kBase = 10000;
  int half_;
  std::vector<Real> cosines_, sines_;  // (s, k / 2)
};

}  // namespace moelab
