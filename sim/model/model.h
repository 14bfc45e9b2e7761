#pragma once

/// A model: one or several layers of a mixture, or one dense network.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/base/aligned.h"
#include "sim/loss/loss.h"
#include "sim/model/attention_block.h"
#include "sim/model/mlp.h"
#include "sim/model/moe_layer.h"

namespace moelab {

/// A range of the flat parameter buffer that shares a learning rate and a weight decay.
struct ParameterGroup {
  enum class Role { router, expert };
  std::size_t begin = 0;
  std::size_t end = 0;
  bool trainable = true;
  Role role = Role::expert;
  int layer = 0;  ///< −1 for what is in no layer's bank: the read-out of a stack, attention
};

/// One layer: f(x) = MoE(x). Several: h_0 = x, h_{ℓ+1} = h_ℓ + MoE_ℓ(h_ℓ), f(x) = A h_L + b (a linear
/// read-out), so that a layer can route with the assignment of the layer before. With attention a layer reads
/// u = attention_ℓ(h_ℓ), tokens of a sequence together, and h_{ℓ+1} = u + MoE_ℓ(u).
template <class Real>
class Model {
 public:
  /// From a resolved `model` object. `default_skip_below` is for a soft training gating that does not set it.
  Model(const Json& spec, const Layout& layout, double default_skip_below);
  Model(const Json& spec, int input_dim, int output_dim, double default_skip_below)
      : Model(spec, Layout{.input_dim = input_dim, .output_dim = output_dim}, default_skip_below) {}

  void initialize(const Seeds& seeds);
  /// Starts a router of the first layer that is linear in x at `rows` (E, d); see Router::start_at.
  void start_router_at(const Matrix& rows) { layers_[0].start_router_at(rows, parameters_.data()); }
  /// The share of training's steps that are done, for routers that go by it; stays after training.
  void set_progress(double progress) { progress_ = progress; }
  /// Losses on the routing of every layer that training adds to the task loss.
  void add_losses(AuxiliaryLosses losses) { losses_ = std::move(losses); }

  /// How the model reads a sample: the data's layout, or that of one long row for a dense model that reads
  /// whole sequences. A sample has the same entries either way.
  const Layout& layout() const { return layout_; }
  int layers() const { return static_cast<int>(layers_.size()); }
  int experts() const { return layers_[0].experts(); }  ///< 1 for dense models
  bool has_router() const { return layers_[0].has_router(); }
  /// Free parameters, padding excluded.
  std::size_t parameter_count() const;
  const Gating& train_gating() const { return train_gating_; }
  const Gating& eval_gating() const { return eval_gating_; }

  const MoeLayer<Real>& layer(int index) const { return layers_[static_cast<std::size_t>(index)]; }
  /// Called in every forward pass between gating and experts of a layer: the last moment to bring the
  /// parameters of the active experts up to date, where a trainer defers updates.
  void before_experts(const std::function<void(int layer, const Routing<Real>&)>& hook);

  /// One flat buffer: [router | experts] of each layer, then the read-out of a stack, then the attention
  /// blocks.
  AlignedVector<Real>& parameters() { return parameters_; }
  const AlignedVector<Real>& gradient() const { return gradient_; }
  /// The groups in the order of the buffer; those of a dense model have no router.
  std::vector<ParameterGroup> groups() const;

  /// L of a batch of n samples x (n, s, d), y (n, o) or (n, s, o) under the training gating, auxiliary losses
  /// included, and its gradient in `gradient()`. With one target a sample the outputs of its tokens are
  /// added: f = Σ_t f(x_t). The router's part is not computed where it is frozen and nothing below it learns.
  /// Allocates only while batches, or the active pairs of a batch, grow beyond any before.
  double loss_and_gradient(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss);

  /// Whether L of a batch is the mean of its samples' losses: not with losses on a batch's routing, and not
  /// in a stack, whose routers may read the batch's statistics.
  bool separates_samples() const { return layers() == 1 && losses_.empty(); }

  /// The task loss alone and its gradient ∂L/∂x (n·s, padded(d)), for attacks: no step of training, nothing
  /// that training keeps changes but `gradient()`.
  double input_gradient(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss,
                        Real* input_gradient);

  /// outputs (n, o) or (n, s, o) under `gating`, for any number of samples (done in blocks).
  void predict(const Real* x, int samples, const Gating& gating, Real* outputs);

  /// r = softmax(γ) (n·s, E) of a layer, under the evaluation gating in the layers before it. With
  /// `permutation` (of the router's d columns) the router alone sees coordinate π(j) of its input at place j,
  /// which is the same as shuffling the columns of W. Only for models with a router.
  void route(const Real* x, int samples, Real* probabilities, int layer = 0,
             std::span<const int> permutation = {});

  /// Rows that each expert of a layer computes under `gating`, (E).
  std::vector<std::int64_t> expert_loads(const Real* x, int samples, const Gating& gating, int layer = 0);

  /// Calls visit(first row) after the forward pass of every block of samples under `gating`, for what the
  /// layers keep of a batch: routing, outputs of experts, auxiliary losses.
  void visit_blocks(const Real* x, int samples, const Gating& gating,
                    const std::function<void(int first_row)>& visit);
  /// Every auxiliary loss term of a layer for the last block or batch.
  AuxiliaryValues auxiliary_values(int layer);
  /// x̃ (n, E, padded(o)) of a layer for the last block or batch, at active pairs; see ExpertBank.
  const Real* pair_outputs(int layer);

  /// The layers' arrays, padding removed; of a stack the names end in _layer0, _layer1, ….
  std::vector<NamedArray<Real>> arrays() const;

 private:
  void forward(const Real* x, int samples, const Gating& gating, bool keep);
  /// h_ℓ of the last forward pass, (n·s, d).
  const Real* layer_input(int layer, const Real* x) const;
  /// What a layer reads, after the forward passes of those before it and of its own attention; of a stack
  /// also for `layers()`, the read-out.
  RouterContext<Real> context(int layer, const Real* x, int rows) const;
  /// The same, its attention block run before.
  RouterContext<Real> attended(int layer, const Real* x, int rows);
  /// The layers up to and without `layer`; returns what that layer reads.
  RouterContext<Real> forward_to(int layer, const Real* x, int rows, const Gating& gating, bool keep);
  /// Forward and backward pass of the task loss, with the gradients of `losses` added on the way.
  double pass(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss, AuxiliaryLosses& losses,
              Real* input_gradient);
  void backward(const Real* x, int rows, AuxiliaryLosses& losses, Real* output_gradient,
                Real* input_gradient);
  bool has_attention() const { return !attention_.empty(); }
  std::size_t attention_offset(int layer) const {
    return attention_begin_ + size(layer) * attention_.front().block_size();
  }
  std::size_t offset(int layer) const { return offsets_[static_cast<std::size_t>(layer)]; }
  int samples_of_block() const;
  /// One target a sample, and several rows of outputs that are added up for it.
  bool adds_tokens() const { return layout_.tokens > 1 && !layout_.target_per_token; }
  bool is_stack() const { return readout_ != nullptr; }

  Layout layout_;
  Gating train_gating_;
  Gating eval_gating_;
  bool in_training_step_ = false;
  double progress_ = 0;
  Real balance_rate_ = 0;             ///< of loss-free balancing
  std::vector<bool> reads_previous_;  ///< of each layer's router
  std::vector<MoeLayer<Real>> layers_;
  std::vector<std::size_t> offsets_;             ///< of the layers' blocks, and of the read-out's
  std::unique_ptr<Mlp<Real>> readout_;           ///< null for a single layer
  std::vector<AttentionBlock<Real>> attention_;  ///< of each layer, or none
  std::size_t attention_begin_ = 0;
  AuxiliaryLosses losses_;
  AlignedVector<Real> parameters_;
  AlignedVector<Real> gradient_;
  std::vector<AlignedVector<Real>> attended_;  ///< u of each layer (n·s, d) with attention
  std::vector<AlignedVector<Real>> hidden_;    ///< h_1 … h_L (n·s, d) of a stack
  AlignedVector<Real> layer_output_;           ///< (n·s, padded(d)) of a stack's layer
  AlignedVector<Real> outputs_;                ///< (n·s, padded(o))
  AlignedVector<Real> sums_;                   ///< (n, padded(o)), outputs added over tokens
  AlignedVector<Real> sums_gradient_;
  AlignedVector<Real> output_gradient_;
  AlignedVector<Real> hidden_gradient_;  ///< ∂L/∂h_ℓ (n·s, padded(d))
  AlignedVector<Real> branch_gradient_;  ///< its part through MoE_ℓ
  AlignedVector<Real> scratch_;
  AlignedVector<Real> permuted_, permuted_previous_;
};

}  // namespace moelab
