#pragma once

/// The rule for numbers that are not finite.
///
/// A comparison with NaN is false: the entropy of NaN would be 0, and a loss of NaN would have reached every
/// target. So whatever a model gives to be measured is checked where it is made (parameters, inputs in the
/// precision of training, outputs, probabilities, losses), once, and the first that is not finite leaves a
/// test set without any metric at that step: Measurement catches. On the cell's own data at its last step
/// that is divergence. Scores of −∞ are probabilities of 0, which are finite.

#include <span>
#include <stdexcept>
#include <string>

#include "sim/base/finite.h"

namespace moelab {

/// what() names the array, "outputs on the test data".
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws NotFinite with that name unless all values are finite.
template <class Real>
void check_finite(std::span<const Real> values, const char* name) {
  if (!all_finite(values)) throw NotFinite(name);
}

}  // namespace moelab
