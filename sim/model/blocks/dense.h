#pragma once

/// Blocks without a router: one network, a linear read-out, the sum over tokens, and residual connections.

#include "sim/model/blocks/block.h"
#include "sim/model/expert/expert.h"

namespace moelab {

/// One network for every row: a bank of one expert behind a gate of 1.
template <class Real>
std::unique_ptr<Block<Real>> make_dense(const ExpertOptions& network, int input_dim, int output_dim);

/// y = A x + b, A (o, d). Arrays "readout_weight_1" and "readout_bias_1". Starts as an MLP's output layer,
/// from the streams of the layer after the last.
template <class Real>
std::unique_ptr<Block<Real>> make_readout(int input_dim, int output_dim);
template <class Real>
std::size_t readout_parameter_count(int input_dim, int output_dim);
/// h = A x + b before the layers, A (width, d). Arrays "projection_weight_1" and "projection_bias_1". Starts
/// as an MLP's output layer, from a stream of its own.
template <class Real>
std::unique_ptr<Block<Real>> make_projection(int input_dim, int width);

/// (n·s, d) → (n, d): the outputs of a sequence's tokens are added. Reads rows as blocks write them,
/// padded(d) apart.
template <class Real>
std::unique_ptr<Block<Real>> make_sum_over_tokens(int dim);

/// What a residual connection leaves out of a training step.
struct Dropout {
  double probability = 0;    ///< of each entry
  std::string name = {};     ///< of the array in the state that tells the step
  std::uint64_t stream = 4;  ///< of its key, for each of a layer its own (sim/model/gating/selection.h)
};

/// x + f(x) of a block f: R^d → R^d, with dropout in training steps as residual.h says.
template <class Real>
std::unique_ptr<Block<Real>> make_residual(std::unique_ptr<Block<Real>> block, const Dropout& dropout = {});

}  // namespace moelab
