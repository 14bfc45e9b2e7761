#pragma once

/// Tokens of test sequences that are swapped for others.

#include "sim/base/options.h"

namespace moelab {

/// Each of the s + 1 ids of a sequence is swapped, with probability `share`, for another of the vocabulary,
/// all others alike: as an input and where it is a target. A larger share swaps the tokens of a smaller one,
/// for the same, and more. (Word swaps of TextAttack, Morris et al. 2020, as in Nielsen et al. 2025 and
/// Nguyen et al. 2025, put one generic word in their place.)
struct SwappedOptions {
  double share = 0.025;

  void bind(Fields& fields);
};

}  // namespace moelab
