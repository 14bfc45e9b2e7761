#pragma once

/// The immutable structure of a model: a list of blocks, and where their parameters and state lie.

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

/// A block of a network, its layer (−1 before the first) and its ranges.
template <class Real>
struct PlacedBlock {
  std::unique_ptr<Block<Real>> block;
  int layer = -1;
  int streams = 0;                                ///< it starts from the streams of this layer
  Mixture<Real>* mixture = nullptr;               ///< the block, or the one inside it, if it is a mixture
  std::optional<std::size_t> parameters_of = {};  ///< the block before whose parameters it reads, having none
  std::size_t parameters = 0;                     ///< begin of its range in the flat buffer
  std::size_t state = 0;                          ///< begin of its range in State::values
};

/// The arrays that passes write, for one network; any number of them may exist, on as many threads.
template <class Real>
struct Workspace {
  std::vector<std::unique_ptr<Scratch>> scratch;    ///< of each block
  std::vector<LayerSignals<Real>> signals;          ///< as each block's last forward pass found them
  std::vector<AlignedVector<Real>> outputs;         ///< of each block
  std::vector<View<const Real>> inputs;             ///< of each block, in the last forward pass
  AlignedVector<Real> output_gradient;              ///< ∂L/∂(rows after the last block)
  AlignedVector<Real> gradients[2];                 ///< ∂L/∂(rows between two blocks), in turns
  AlignedVector<Real> gradient;                     ///< ∂L/∂parameters of the last backward pass
  AlignedVector<Real> permuted, permuted_previous;  ///< rows with shuffled columns

  /// The rows after the last block.
  View<const Real> result;
};

/// One layer: f(x) = MoE(x); with a projection, f(x) = MoE(P x + b), and so for h_0 below. Several: h_0 = x,
/// h_{ℓ+1} = h_ℓ + MoE_ℓ(h_ℓ), f(x) = A h_L + b (a linear read-out), so that a layer can route with the
/// assignment of the layer before. With attention a layer reads u = attention_ℓ(h_ℓ), tokens of a sequence
/// together, and h_{ℓ+1} = u + MoE_ℓ(u). With one target a sample the outputs of its tokens are added: f =
/// Σ_t f(x_t). Transformers are told in transformer_options.h. These lists are made in topology.cpp.
template <class Real>
class Network {
 public:
  Network(const ModelOptions& options, const Layout& data_layout);

  /// How the model reads a sample, see layout_read_by().
  const Layout& layout() const { return layout_; }
  int layers() const { return layers_; }
  int experts() const { return experts_; }  ///< 1 for dense models
  bool has_router() const { return !mixtures_.empty(); }
  const Gating<Real>& train_gating() const { return *train_gating_; }
  const Gating<Real>& eval_gating() const { return *eval_gating_; }
  /// Every expert, weighted by the probabilities of eval_gating(), none left out; and the likeliest one
  /// alone.
  const Gating<Real>& soft_gating() const { return *soft_gating_; }
  const Gating<Real>& top1_gating() const { return *top1_gating_; }
  /// Whether scores of a row, or its gates in training, depend on the rows that are routed with it.
  bool couples_rows() const { return router_couples_rows_ || train_gating_->couples_rows(); }
  /// Samples that are routed together in measuring; 0 where rows are routed by themselves, or as many as are
  /// measured at a time.
  int group_samples() const { return group_samples_; }
  /// Samples of a block in measuring: enough to keep the kernels busy, few enough to stay in the cache, and
  /// whole groups.
  int block_samples() const;
  /// Whether the router of the first layer starts at training rows.
  bool starts_at_train_rows() const { return starts_at_train_rows_; }

  const std::vector<PlacedBlock<Real>>& blocks() const { return blocks_; }
  const Mixture<Real>& mixture(int layer) const { return *placed_mixture(layer).mixture; }
  const PlacedBlock<Real>& placed_mixture(int layer) const {
    return blocks_[mixtures_[static_cast<std::size_t>(layer)]];
  }
  MixtureScratch<Real>& mixture_scratch(int layer, Workspace<Real>& workspace) const;

  /// Entries of the flat buffer, and of State::values.
  std::size_t parameter_size() const { return parameter_size_; }
  std::size_t state_size() const { return state_size_; }
  /// Free parameters, padding excluded.
  std::size_t parameter_count() const;
  /// The groups in the order of the buffer.
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  void initialize(const Start& start, AlignedVector<Real>& parameters, State& state) const;
  /// What a training step does to the state, before its gradient and after it.
  void begin_step(double progress, const AlignedVector<Real>& parameters, State& state) const;
  void end_step(const Workspace<Real>& workspace, State& state) const;

  Workspace<Real> make_workspace() const;
  /// The rows after the last block, for n samples x (n, s, d): (n·s, o), or (n, o) where tokens are added.
  /// With `end`, the blocks before it alone.
  View<const Real> forward(const Pass<Real>& pass, const Real* x, int samples,
                           const AlignedVector<Real>& parameters, const State& state,
                           Workspace<Real>& workspace, std::size_t end = static_cast<std::size_t>(-1)) const;
  /// From ∂L/∂(those rows) (padded) `workspace.gradient` and, unless null, ∂L/∂x (n·s, padded(d)). The
  /// router's part is not computed where it is frozen and nothing below it learns.
  void backward(const Pass<Real>& pass, const AlignedVector<Real>& parameters, const State& state,
                const Real* output_gradient, Workspace<Real>& workspace, Real* input_gradient) const;
  /// Whether r of every layer was finite in the last pass. Gatings leave out pairs whose gate is not above 0,
  /// as that of NaN is not: without any expert, outputs would be finite and wrong.
  bool has_finite_routing(Workspace<Real>& workspace) const;
  BlockValues<Real> values(const PlacedBlock<Real>& block, const AlignedVector<Real>& parameters,
                           const State& state) const {
    return {parameters.data() + block.parameters, state.values.data() + block.state};
  }

  /// "_layer0" for layer 0 where there are several.
  std::string layer_ending(int layer) const;
  /// The layers' arrays, padding removed; of a stack the names end in _layer0, _layer1, ….
  std::vector<NamedArray<Real>> arrays(const AlignedVector<Real>& parameters) const;
  /// The arrays of the state in the order of State::values, names as above.
  std::vector<StateArray> state_arrays() const;

 private:
  void place_blocks();

  Layout layout_;
  int layers_ = 1;
  int experts_ = 1;
  int group_samples_ = 0;
  bool router_couples_rows_ = false;
  bool starts_at_train_rows_ = false;
  std::unique_ptr<Gating<Real>> train_gating_, eval_gating_, soft_gating_, top1_gating_;
  std::vector<PlacedBlock<Real>> blocks_;
  std::vector<std::size_t> mixtures_;  ///< places in `blocks_`, by layer
  std::vector<ParameterGroup> groups_;
  std::size_t parameter_size_ = 0;
  std::size_t state_size_ = 0;
};

// The lists of blocks that models are: the one place that knows them.

/// The gatings of a model that its mixtures keep something for; null for none. They outlive the blocks.
template <class Real>
struct Gatings {
  const Gating<Real>* learned = nullptr;  ///< parameters
  const Gating<Real>* train = nullptr;    ///< state
};

/// The blocks of a model in their order, places in the buffers left open.
template <class Real>
std::vector<PlacedBlock<Real>> make_blocks(const ModelOptions& options, const Layout& data_layout,
                                           const Gatings<Real>& gatings);

/// Names for the flat buffer: where the entries of each array of Network::arrays() lie in it, in the array's
/// order. Together they are the free parameters, each once.
using ArrayPlaces = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
template <class Real>
ArrayPlaces array_places(const Network<Real>& network);

}  // namespace moelab
