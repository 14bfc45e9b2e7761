#pragma once

/// Rows (tokens) of test inputs that are lost.

#include "sim/base/options.h"

namespace moelab {

/// A share of the rows (tokens) is replaced by one fixed row, drawn N(0, scale² I).
struct ReplacedOptions {
  double share = 0.025;  ///< probability of a row to be replaced
  double scale = 1;

  void bind(Fields& fields);
};

}  // namespace moelab
