#pragma once

/// Blocks without a router: dense networks, read-outs, the sum over tokens, embeddings and residual
/// connections.

#include "sim/model/blocks/block.h"
#include "sim/model/expert/expert.h"

namespace moelab {

/// One network for every row: a bank with one expert and gate 1.
template <class Real>
std::unique_ptr<Block<Real>> make_dense(const ExpertOptions& network, int input_dim, int output_dim);

/// A linear read-out: y = A x + b, A (o, d). Arrays "readout_weight_1" and "readout_bias_1". It starts like
/// an MLP's output layer, from the streams of layer L of a model with layers 0 … L − 1.
template <class Real>
std::unique_ptr<Block<Real>> make_readout(int input_dim, int output_dim);
template <class Real>
std::size_t readout_parameter_count(int input_dim, int output_dim);
/// A projection before the layers: h = A x + b, A (width, d). Arrays "projection_weight_1" and
/// "projection_bias_1". It starts like an MLP's output layer, from its own stream.
template <class Real>
std::unique_ptr<Block<Real>> make_projection(int input_dim, int width);

/// Adds the outputs of a sequence's tokens: (n·s, d) → (n, d). Reads rows with the stride padded(d).
template <class Real>
std::unique_ptr<Block<Real>> make_sum_over_tokens(int dim);

// The first and last blocks of a transformer: token ids to rows, and rows to scores of the next token.

struct EmbeddingSetting {
  int vocabulary = 0;  ///< V
  int masks = 0;       ///< mask ids V, V + 1, …, which are not tokens
  int dim = 0;         ///< d
  int places = 0;
  bool tied = false;  ///< make_tied_readout() uses the same rows of E
};

/// A token embedding: ids (n·s, 1) → rows E[id] + P[place in the sequence] (n·s, d); no P if `places` is 0.
///
/// E (V + masks, d) starts N(0, 1), and P (places, d) starts at 0. The backward pass writes the gradient of E
/// only at ids that occurred. Arrays "embedding_token" (V + masks, d) and "embedding_position" (places, d).
template <class Real>
std::unique_ptr<Block<Real>> make_token_embedding(const EmbeddingSetting& setting);

/// A tied read-out: scores x E^T / √d (n, V) with the E of an embedding, whose parameters it reads. Its
/// backward pass runs first and overwrites ∂L/∂E. The tied embedding then adds to ∂L/∂E.
template <class Real>
std::unique_ptr<Block<Real>> make_tied_readout(int vocabulary, int dim);

/// The dropout of a residual connection in training steps.
struct Dropout {
  double probability = 0;    ///< probability that an entry is dropped
  std::string name = {};     ///< name of the state's array that holds the step
  std::uint64_t stream = 4;  ///< stream of its key; different within a layer (sim/model/gating/selection.h)
};

/// A residual connection x + f(x) around a block f: R^d → R^d, with dropout in training steps; see
/// residual.h.
template <class Real>
std::unique_ptr<Block<Real>> make_residual(std::unique_ptr<Block<Real>> block, const Dropout& dropout = {});

}  // namespace moelab
