#pragma once

/// Tokens that are hidden and to be told from those around them.

#include "sim/base/random.h"
#include "sim/data/problem.h"

namespace moelab {

/// The target of a token that is not asked for.
constexpr int kNoTarget = -1;

/// Of every sequence of s tokens m = max(1, round(share · s)) places, all sets of m alike. There x is `mask`
/// and y the id that stood there; elsewhere x stays and y is kNoTarget (the masked language model of Devlin
/// et al. 2019, whose share is .15; there a fifth of the chosen places are not masked but kept or swapped,
/// here none).
struct TokenMasks {
  double share = 0;  ///< 0 for no masks
  int mask = 0;      ///< the id after the last of the vocabulary

  explicit operator bool() const { return share > 0; }
};

/// x, y (n, s) ← those of the masks, anew from `engine`.
template <class Real>
void mask_tokens(const TokenMasks& masks, Engine& engine, int samples, int tokens, Real* x, Real* y);

/// The same for a set that is measured: the same masks each time, of `set` (train_data or test_data) its own.
/// Seeds that share the set's stream share its masks.
void mask_tokens(const TokenMasks& masks, const Seeds& seeds, Purpose set, int tokens, Dataset& data);

}  // namespace moelab
