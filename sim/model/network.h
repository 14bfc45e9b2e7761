#pragma once

/// The immutable structure of a model: a list of blocks, and the places of their parameters and state.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/data/layout.h"
#include "sim/model/blocks/block.h"
#include "sim/model/blocks/mixture.h"
#include "sim/model/model_options.h"

namespace moelab {

/// A block of a network, with its layer (−1 before the first layer) and its ranges in the buffers.
template <class Real>
struct PlacedBlock {
  std::unique_ptr<Block<Real>> block;
  int layer = -1;
  int streams = 0;                   ///< the layer whose streams draw its start
  Mixture<Real>* mixture = nullptr;  ///< the block or its inner block, if this is a mixture
  std::optional<std::size_t> parameters_of =
      {};                      ///< the earlier block whose parameters it reads, if it has none
  std::size_t parameters = 0;  ///< begin of its range in the flat buffer
  std::size_t state = 0;       ///< begin of its range in State::values
};

/// The arrays that passes over one network write. Several workspaces may exist, on as many threads.
template <class Real>
struct Workspace {
  std::vector<std::unique_ptr<Scratch>> scratch;  ///< of each block
  std::vector<LayerSignals<Real>> signals;        ///< signals at the start of each block's last forward pass
  std::vector<AlignedVector<Real>> outputs;       ///< of each block
  std::vector<View<const Real>> inputs;           ///< of each block, in the last forward pass
  AlignedVector<Real> output_gradient;            ///< ∂L/∂(rows after the last block)
  AlignedVector<Real> gradients[2];               ///< ∂L/∂(rows between two blocks), alternating
  AlignedVector<Real> gradient;                   ///< ∂L/∂parameters of the last backward pass
  AlignedVector<Real> permuted, permuted_previous;  ///< rows with shuffled columns

  /// The rows after the last block.
  View<const Real> result;
};

/// The network of a model. The table of model kinds makes its list of blocks.
///
/// - One layer: f(x) = MoE(x), or f(x) = MoE(P x + b) with a projection.
/// - Several layers: h_0 = x (or P x + b), h_{ℓ+1} = h_ℓ + MoE_ℓ(h_ℓ), f(x) = A h_L + b (a linear read-out).
///   A layer can route with the assignment of the layer before.
/// - With attention: a layer reads u = attention_ℓ(h_ℓ) for the tokens of a sequence, and h_{ℓ+1} = u +
///   MoE_ℓ(u).
/// - With one target per sample: f = Σ_t f(x_t) over its tokens.
///
/// TransformerOptions gives the equations of transformers.
template <class Real>
class Network {
 public:
  Network(const ModelOptions& options, const Layout& data_layout);

  /// The sample layout that the model reads; see layout_read_by().
  const Layout& layout() const { return layout_; }
  int layers() const { return layers_; }
  int experts() const { return experts_; }  ///< 1 for dense models
  bool has_router() const { return !mixtures_.empty(); }
  const Gating<Real>& train_gating() const { return *train_gating_; }
  const Gating<Real>& eval_gating() const { return *eval_gating_; }
  /// soft: f(x) = Σ_e r_e f_e over every expert, with the probabilities of eval_gating(). Top-1: the output
  /// of the argmax expert.
  const Gating<Real>& soft_gating() const { return *soft_gating_; }
  const Gating<Real>& top1_gating() const { return *top1_gating_; }
  /// Whether the scores of a row, or its gates in training, depend on other rows of its group.
  bool couples_rows() const { return router_couples_rows_ || train_gating_->couples_rows(); }
  /// Samples that are routed together in measuring. 0: each row is routed alone, or all samples that are
  /// measured at a time are routed together.
  int group_samples() const { return group_samples_; }
  /// Samples of a block in measuring: whole groups with about `block_rows` rows.
  int block_samples() const;
  /// Whether the router of the first layer starts at training rows.
  bool starts_at_train_rows() const { return starts_at_train_rows_; }

  const std::vector<PlacedBlock<Real>>& blocks() const { return blocks_; }
  const Mixture<Real>& mixture(int layer) const { return *placed_mixture(layer).mixture; }
  const PlacedBlock<Real>& placed_mixture(int layer) const {
    return blocks_[mixtures_[static_cast<std::size_t>(layer)]];
  }
  MixtureScratch<Real>& mixture_scratch(int layer, Workspace<Real>& workspace) const;

  /// Entries of the flat parameter buffer, and of State::values.
  std::size_t parameter_size() const { return parameter_size_; }
  std::size_t state_size() const { return state_size_; }
  /// Free parameters, padding excluded.
  std::size_t parameter_count() const;
  /// The parameter groups in the order of the buffer.
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  void initialize(const Start& start, AlignedVector<Real>& parameters, State& state) const;
  /// Update the state in a training step, before and after its gradient.
  void begin_step(double progress, const AlignedVector<Real>& parameters, State& state) const;
  void end_step(const Workspace<Real>& workspace, State& state) const;

  Workspace<Real> make_workspace() const;
  /// Returns the rows after the last block, for n samples x (n, s, d): (n·s, o), or (n, o) if token outputs
  /// are added. With `end`, only the blocks before `end` run.
  View<const Real> forward(const Pass<Real>& pass, const Real* x, int samples,
                           const AlignedVector<Real>& parameters, const State& state,
                           Workspace<Real>& workspace, std::size_t end = static_cast<std::size_t>(-1)) const;
  /// Writes `workspace.gradient` and, unless null, ∂L/∂x (n·s, padded(d)) from ∂L/∂(rows after the last
  /// block) (padded). Skips the frozen part of a router if nothing below it learns.
  void backward(const Pass<Real>& pass, const AlignedVector<Real>& parameters, const State& state,
                const Real* output_gradient, Workspace<Real>& workspace, Real* input_gradient) const;
  /// Whether r of every layer was finite in the last pass. A gating skips pairs whose gate is not above 0,
  /// and NaN is not. A row without experts would then get a finite but wrong output.
  bool has_finite_routing(Workspace<Real>& workspace) const;
  /// Whether a router's score was NaN in the last pass, or +∞ under a softmax. Both make the whole row of
  /// probabilities NaN, so one entry of each row is read.
  bool has_lost_rows(Workspace<Real>& workspace) const;
  BlockValues<Real> values(const PlacedBlock<Real>& block, const AlignedVector<Real>& parameters,
                           const State& state) const {
    return {parameters.data() + block.parameters, state.values.data() + block.state};
  }

  /// The ending of names in a layer: "_layer0" for layer 0 in a stack, empty for a single layer.
  std::string layer_ending(int layer) const;
  /// The layers' arrays without padding. In a stack the names end in _layer0, _layer1, ….
  std::vector<NamedArray<Real>> arrays(const AlignedVector<Real>& parameters) const;
  /// The same arrays as the buffer has them: (a, b) of unit experts has any length there.
  std::vector<NamedArray<Real>> stored_arrays(const AlignedVector<Real>& parameters) const;
  /// The arrays of the state in the order of State::values; names end as in arrays().
  std::vector<StateArray> state_arrays() const;

 private:
  void place_blocks();

  Layout layout_;
  int layers_ = 1;
  int experts_ = 1;
  int group_samples_ = 0;
  int block_rows_;
  bool router_couples_rows_ = false;
  bool starts_at_train_rows_ = false;
  std::unique_ptr<Gating<Real>> train_gating_, eval_gating_, soft_gating_, top1_gating_;
  std::vector<PlacedBlock<Real>> blocks_;
  std::vector<std::size_t> mixtures_;  ///< places in `blocks_`, by layer
  std::vector<ParameterGroup> groups_;
  std::size_t parameter_size_ = 0;
  std::size_t state_size_ = 0;
};

// Shared helpers of the functions that make lists of blocks; see ModelKind::make_blocks.

/// Adds a block at the end of a list. `layer` is PlacedBlock::layer, and `mixture` is the mixture in the
/// block.
template <class Real>
PlacedBlock<Real>& add_block(std::vector<PlacedBlock<Real>>& blocks, std::unique_ptr<Block<Real>> block,
                             int layer, Mixture<Real>* mixture = nullptr) {
  PlacedBlock<Real>& placed = blocks.emplace_back();
  placed.block = std::move(block);
  placed.layer = layer;
  placed.streams = std::max(layer, 0);
  placed.mixture = mixture;
  return placed;
}

/// Makes the mixture of a layer from the options, for rows of `layout` (layout_of_blocks()).
template <class Real>
std::unique_ptr<Mixture<Real>> make_mixture(const ModelOptions& options, const Layout& layout, int layer,
                                            int output_dim, const Gatings<Real>& gatings);

/// Makes the blocks of a model in order. The caller sets their places in the buffers.
template <class Real>
std::vector<PlacedBlock<Real>> make_blocks(const ModelOptions& options, const Layout& data_layout,
                                           const Gatings<Real>& gatings) {
  return options.kind.entry().make_blocks.template of<Real>()(options, data_layout, gatings);
}

/// The places in the flat buffer of the entries of each array of Network::arrays(), in the array's order.
/// Together they cover each free parameter once.
using ArrayPlaces = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
template <class Real>
ArrayPlaces array_places(const Network<Real>& network);

}  // namespace moelab
