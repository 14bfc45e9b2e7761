#pragma once

/// What a model is a list of: attention, mixtures, dense networks, sums over tokens, embeddings, read-outs.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/model/gating/gating.h"
#include "sim/model/loss/auxiliary_loss.h"
#include "sim/model/parameters.h"

namespace moelab {

/// A range of the flat parameter buffer that shares a learning rate and a weight decay.
struct ParameterGroup {
  enum class Role { router, expert };
  /// What the group belongs to: a mixture's router (and gating), its experts or a dense network, or the
  /// layers around them (attention, projection, read-out).
  enum class Part { router, experts, layers };
  std::size_t begin = 0;
  std::size_t end = 0;
  bool trainable = true;
  Role role = Role::expert;
  int layer = -1;  ///< of a mixture's router or bank; −1 for what is in none: read-outs, attention
  Part part = Part::layers;
};

/// What a trainer does to single experts of a mixture while a batch passes.
template <class Real>
struct ExpertHooks {
  /// Between gating and experts: the last moment to bring the parameters of the active experts up to date,
  /// where updates are put off.
  std::function<void(int layer, const Routing<Real>&)> before;
  /// On the way back, once an expert's part of the gradient is whole: the last use of its parameters, which
  /// may change now, and of its gradient, which is in the cache and nowhere else. Empty where all of the
  /// gradient is asked for. Called where a bank has its experts one after another, see expert_block_size().
  std::function<void(int layer, int expert, const Real* gradient)> after;
};

/// How a batch goes through the blocks.
template <class Real>
struct Pass {
  int tokens = 1;                           ///< s, rows of a sequence
  bool keep = false;                        ///< a backward pass follows
  bool training = false;                    ///< of a training step
  double progress = 0;                      ///< State::progress
  int group_samples = 0;                    ///< samples that gatings route together; 0 for the batch
  const int* labels = nullptr;              ///< the true cluster of each row; null where nobody knows it
  const Gating<Real>* gating = nullptr;     ///< the rule of every mixture
  const AuxiliaryLosses* losses = nullptr;  ///< added on the way back; null for none
  const ExpertHooks<Real>* expert_hooks = nullptr;
};

/// A block's own parts of the buffers.
template <class Real>
struct BlockValues {
  const Real* parameters = nullptr;
  const double* state = nullptr;
};

/// f: rows (n, d) → rows (n', d'), with parameters and state in ranges of the model's buffers. Immutable.
/// Called once per batch. Rows that a block writes lie padded(d') apart, padding zero in gradients.
template <class Real>
class Block {
 public:
  virtual ~Block() = default;
  virtual int output_dim() const = 0;
  /// n' for n rows of sequences of `tokens`.
  virtual int output_rows(int rows, int /*tokens*/) const { return rows; }

  /// Free parameters; entries of their range, padding included, a multiple of kernels::kPadding.
  virtual std::size_t parameter_count() const { return 0; }
  virtual std::size_t block_size() const { return 0; }
  /// The range in groups, counted from its begin.
  virtual std::vector<ParameterGroup> groups() const { return {}; }
  virtual void initialize(const Start& /*start*/, Real* /*parameters*/) const {}
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }

  virtual std::vector<StateArray> state_arrays() const { return {}; }
  virtual void start_state(const Start& /*start*/, double* /*state*/) const {}
  /// What the beginning of a training step does to the state; `progress` is the share of steps done.
  virtual void begin_step(double /*progress*/, const Real* /*parameters*/, double* /*state*/) const {}
  /// What its end does; `scratch` is that of the step's passes.
  virtual void end_step(const Scratch& /*scratch*/, double* /*state*/) const {}

  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }
  /// outputs (n', d') ← f(inputs). Reads what earlier blocks left in `signals` and leaves its own.
  virtual void forward(const Pass<Real>& pass, const View<const Real>& inputs,
                       const BlockValues<Real>& values, LayerSignals<Real>& signals, Scratch& scratch,
                       const View<Real>& outputs) const = 0;
  /// From ∂L/∂outputs (n', padded(d')) that of the parameters (overwritten) and, unless null, ∂L/∂inputs
  /// (n, padded(d), overwritten). `signals` as the forward pass found them. For the batch of the last forward
  /// pass that kept.
  virtual void backward(const Pass<Real>& pass, const View<const Real>& inputs,
                        const BlockValues<Real>& values, const LayerSignals<Real>& signals, Scratch& scratch,
                        const View<const Real>& outputs, const Real* output_gradient, Real* gradient,
                        Real* input_gradient) const = 0;
  /// The rows that a mixture inside reads, for the block's own inputs.
  virtual View<const Real> mixture_inputs(const Pass<Real>& /*pass*/, const View<const Real>& inputs,
                                          const BlockValues<Real>& /*values*/, Scratch& /*scratch*/) const {
    return inputs;
  }
  /// What the block adds to a training step's loss beside the task loss, after its passes.
  virtual double added_loss(const Pass<Real>& /*pass*/, const BlockValues<Real>& /*values*/,
                            Scratch& /*scratch*/) const {
    return 0;
  }
};

}  // namespace moelab
