#pragma once

/// One layer of a model: a router, gating and a bank of experts, or a single dense network.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/loss/auxiliary_losses.h"
#include "sim/model/expert/expert.h"
#include "sim/model/gating.h"
#include "sim/model/router/router.h"

namespace moelab {

/// f(x) = Σ_e gate_e(x) expert_e(x) for rows x (n, d). Parameters lie in a block of the model's flat buffer,
/// [router | experts]; the router's part ends with a = logit p where gating learns its threshold p.
template <class Real>
class MoeLayer {
 public:
  /// A mixture from a resolved `model` object, R^d → R^output_dim.
  MoeLayer(const Json& spec, const Layout& layout, int output_dim);
  /// A single network from a resolved `model.expert` object, behind a gate of 1.
  MoeLayer(const Json& network, const Layout& layout);

  void initialize(const Seeds& seeds, Real* parameters) const;
  void start_router_at(const Matrix& rows, Real* parameters) const { router_->start_at(rows, parameters); }

  int experts() const { return experts_; }
  bool has_router() const { return router_ != nullptr; }
  bool router_trainable() const { return router_trainable_; }
  std::size_t router_size() const { return router_size_; }
  std::size_t block_size() const { return router_size_ + bank_->block_size(); }
  double router_loss() const { return router_ ? router_->added_loss() : 0; }
  std::size_t router_parameter_count() const {
    return (router_ ? router_->parameter_count() : 0) + (learns_threshold_ ? 1 : 0);
  }
  std::size_t parameter_count() const;
  std::size_t parameters_per_expert() const { return bank_->parameters_per_expert(); }
  std::size_t expert_block_size() const { return bank_->expert_block_size(); }

  /// The gating state of the last batch.
  const GatingState<Real>& state() const { return state_; }
  const Routing<Real>& routing() const { return state_.routing; }
  /// Called in every forward pass between gating and experts.
  void before_experts(std::function<void(const Routing<Real>&)> hook) { before_experts_ = std::move(hook); }

  /// scores γ (n, padded(E)) and gates of a batch, without the experts.
  void route(const RouterContext<Real>& context, const Gating& gating, const Real* parameters);
  /// outputs (n, padded(o)) ← f(x). `keep` keeps what backward needs.
  void forward(const RouterContext<Real>& context, const Gating& gating, const Real* parameters,
               Real* outputs, bool keep);
  /// From ∂L/∂f (n, padded(o), padding zero) the gradient of the parameters (overwritten; the router's part
  /// is left out where nobody needs it) and, unless null, ∂L/∂x (n, padded(d), overwritten). The gradients of
  /// `losses` are added on the way. For the batch of the last forward pass that kept.
  void backward(const RouterContext<Real>& context, const Gating& gating, AuxiliaryLosses& losses,
                const Real* parameters, const Real* output_gradient, Real* gradient, Real* input_gradient);

  /// Every auxiliary term of the last batch, those of the outputs only with `with_outputs` (after a forward
  /// pass that kept).
  AuxiliaryValues auxiliary_values(AuxiliaryLosses& losses, const Real* parameters, bool with_outputs);
  /// x̃ (n, E, padded(o)) of the last forward pass that kept, at active pairs.
  const Real* pair_outputs(const Real* parameters);
  int output_stride() const;

  /// Moves the biases of the selection by `rate` against the sign of each expert's load error, the number of
  /// rows over its mean (loss-free balancing); the last batch counts.
  void balance_selection(Real rate);

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const;

 private:
  /// What the experts read: x itself, or its columns after the image with the router's features.
  const Real* expert_inputs(const RouterContext<Real>& context);
  /// A learnable threshold is the layer's own; else the gating as it is.
  Gating with_threshold(const Gating& gating, const Real* parameters) const;
  void backward_scores(const Gating& gating, AuxiliaryLosses& losses, Real* gradient);
  void router_backward(const RouterContext<Real>& context, const Real* parameters, Real* gradient,
                       Real* router_input_gradient);
  RoutedBatch<Real> routed_batch() const;

  Layout layout_;
  int output_dim_;
  int experts_;
  int expert_dim_;  ///< columns that the experts read
  bool router_trainable_ = false;
  bool learns_threshold_ = false;
  double threshold_start_ = 0;
  std::unique_ptr<Router<Real>> router_;
  std::unique_ptr<ExpertBank<Real>> bank_;
  std::size_t router_size_ = 0;
  std::vector<Real> selection_bias_;  ///< (E), added to r when experts are selected; empty unless used
  AlignedVector<Real> scores_;
  AlignedVector<Real> expert_inputs_;
  AlignedVector<Real> expert_input_gradient_;
  AlignedVector<Real> router_input_gradient_;
  AlignedVector<Real> feature_gradient_;
  AlignedVector<Real> gate_gradient_;
  AlignedVector<Real> probability_gradient_;
  AlignedVector<Real> pair_outputs_;
  AlignedVector<Real> pair_gradient_;
  GatingState<Real> state_;
  std::function<void(const Routing<Real>&)> before_experts_;
};

}  // namespace moelab
