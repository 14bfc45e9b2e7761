#pragma once

/// The ends of a transformer: ids of tokens to rows, and rows to scores of the next token.

#include "sim/model/blocks/block.h"

namespace moelab {

struct EmbeddingSetting {
  int vocabulary = 0;  ///< V
  int masks = 0;       ///< ids V, V + 1, … of no token
  int dim = 0;         ///< d
  int places = 0;
  bool tied = false;  ///< the rows of tokens are those of make_tied_readout()
};

/// Ids (n·s, 1) → rows E[id] + P[place in the sequence] (n·s, d), without P where `places` is 0. E
/// (V + masks, d) starts N(0, 1), P (places, d) at 0. The gradient of E is written where ids occurred alone.
/// Arrays "embedding_token" (V + masks, d) and "embedding_position" (places, d).
template <class Real>
std::unique_ptr<Block<Real>> make_token_embedding(const EmbeddingSetting& setting);

/// Scores x E^T / √d (n, V) with the E of an embedding, whose parameters are this block's. Its backward pass
/// comes first and overwrites ∂L/∂E, to which that of a tied embedding adds.
template <class Real>
std::unique_ptr<Block<Real>> make_tied_readout(int vocabulary, int dim);

}  // namespace moelab
