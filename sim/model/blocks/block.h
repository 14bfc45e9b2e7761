#pragma once

/// The interface of blocks. A model is a list of blocks: attention, mixtures, dense networks, read-outs, …

#include <functional>
#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/model/gating/gating.h"
#include "sim/model/loss/auxiliary_loss.h"
#include "sim/model/parameters.h"

namespace moelab {

/// A range of the flat parameter buffer that shares a learning rate and a weight decay.
struct ParameterGroup {
  enum class Role { router, expert };
  /// The part of the model. `router`: router and gating of a mixture. `experts`: experts or a dense network.
  /// `layers`: the layers around them (attention, projection, read-out).
  enum class Part { router, experts, layers };
  std::size_t begin = 0;
  std::size_t end = 0;
  bool trainable = true;
  Role role = Role::expert;
  int layer = -1;  ///< the layer of a mixture's router or bank; −1 for other groups
  Part part = Part::layers;
};

/// Calls to the trainer for single experts of a mixture during a pass.
template <class Real>
struct ExpertHooks {
  /// Called between gating and experts. A trainer that defers updates brings the parameters of the active
  /// experts up to date here.
  std::function<void(int layer, const Routing<Real>&)> before;
  /// Called in the backward pass when an expert's gradient is complete. The pass needs neither the expert's
  /// parameters nor its gradient afterwards, so the parameters may change. Empty if the caller needs the
  /// whole gradient. Only banks with an expert_block_size() call it.
  std::function<void(int layer, int expert, const Real* gradient)> after;
};

/// The settings of a pass of a batch through the blocks.
template <class Real>
struct Pass {
  int tokens = 1;                           ///< s, rows of a sequence
  bool keep = false;                        ///< a backward pass follows
  bool training = false;                    ///< the pass of a training step
  double progress = 0;                      ///< State::progress
  int group_samples = 0;                    ///< samples that gatings route together; 0 for the batch
  const int* labels = nullptr;              ///< the true cluster of each row; null if it is unknown
  Targets<Real> targets = {};               ///< of a training step; null if they are ids
  const Gating<Real>* gating = nullptr;     ///< the rule of every mixture
  const AuxiliaryLosses* losses = nullptr;  ///< losses that the backward pass adds; null for none
  const ExpertHooks<Real>* expert_hooks = nullptr;
};

/// The parts of the buffers that belong to a block.
template <class Real>
struct BlockValues {
  const Real* parameters = nullptr;
  const double* state = nullptr;
};

/// A block f: rows (n, d) → rows (n', d'), with parameters and state in ranges of the model's buffers.
/// Immutable, and called once per batch. Output rows have the stride padded(d'), with zero padding in
/// gradients.
template <class Real>
class Block {
 public:
  virtual ~Block() = default;
  virtual int output_dim() const = 0;
  /// The number n' of output rows for n rows of sequences with `tokens` tokens.
  virtual int output_rows(int rows, int /*tokens*/) const { return rows; }

  /// The number of free parameters, and the entries of their range with padding: a multiple of
  /// kernels::kPadding.
  virtual std::size_t parameter_count() const { return 0; }
  virtual std::size_t block_size() const { return 0; }
  /// The parameter groups of the range, with places counted from its begin.
  virtual std::vector<ParameterGroup> groups() const { return {}; }
  virtual void initialize(const Start& /*start*/, Real* /*parameters*/) const {}
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }

  virtual std::vector<StateArray> state_arrays() const { return {}; }
  virtual void start_state(const Start& /*start*/, double* /*state*/) const {}
  /// Updates the state at the beginning of a training step; `progress` is the share of steps done.
  virtual void begin_step(double /*progress*/, const Real* /*parameters*/, double* /*state*/) const {}
  /// Updates the state at the end of a training step; `scratch` is the scratch of its passes.
  virtual void end_step(const Scratch& /*scratch*/, double* /*state*/) const {}

  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }
  /// outputs (n', d') ← f(inputs). Reads the signals of earlier blocks and adds its own.
  virtual void forward(const Pass<Real>& pass, const View<const Real>& inputs,
                       const BlockValues<Real>& values, LayerSignals<Real>& signals, Scratch& scratch,
                       const View<Real>& outputs) const = 0;
  /// Writes ∂L/∂parameters (overwritten) and, unless null, ∂L/∂inputs (n, padded(d), overwritten) from
  /// ∂L/∂outputs (n', padded(d')). `signals` are the signals that the forward pass read. For the batch of the
  /// last forward pass with `keep`.
  virtual void backward(const Pass<Real>& pass, const View<const Real>& inputs,
                        const BlockValues<Real>& values, const LayerSignals<Real>& signals, Scratch& scratch,
                        const View<const Real>& outputs, const Real* output_gradient, Real* gradient,
                        Real* input_gradient) const = 0;
  /// The rows that the block's mixture reads, for the inputs of the block.
  virtual View<const Real> mixture_inputs(const Pass<Real>& /*pass*/, const View<const Real>& inputs,
                                          const BlockValues<Real>& /*values*/, Scratch& /*scratch*/) const {
    return inputs;
  }
  /// The loss that the block adds to the task loss of a training step. Call it after the step's passes.
  virtual double added_loss(const Pass<Real>& /*pass*/, const BlockValues<Real>& /*values*/,
                            Scratch& /*scratch*/) const {
    return 0;
  }
};

}  // namespace moelab
