#pragma once

/// Routers that let the tokens of a sequence mix their routing (Nguyen et al. 2025, Definitions 2 and 5).

#include <memory>

#include "sim/model/router/linear_router.h"

namespace moelab {

/// The axis of routers that see tokens alone: what a mixing router mixes. Its table is in mixing_router.cpp.
struct BaseRouterAxis {
  using Entry = RouterKind;
  static const std::vector<RouterKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "router";
};
using BaseRouterOptions = OneOf<BaseRouterAxis>;

/// The fields that routers which mix begin with.
void bind_mixing_fields(Fields& fields, bool& trainable, BaseRouterOptions& base);

/// Weights S (s, s) of a sequence, rows on the simplex: how much token i listens to token j. Immutable, as
/// routers are.
template <class Real>
class TokenWeights {
 public:
  virtual ~TokenWeights() = default;
  virtual std::size_t parameter_count() const { return 0; }
  /// Entries of the parameter block, padding included.
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(Real* /*parameters*/) const {}
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// S and log S (n·s, padded(s)), padding of S zero.
  virtual void forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                       Real* weights, Real* log_weights) const = 0;
  /// From ∂L/∂S (n·s, padded(s)), which it may overwrite, ∂L/∂parameters (overwritten); adds to ∂L/∂x and to
  /// the attention's gradients unless they are null. For the batch of the last forward pass.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                        const Real* weights, Real* weight_gradient,
                        const RouterGradients<Real>& gradients) const = 0;
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
};

/// p_i = Σ_j S_ij r(u_j) over the tokens of a sequence, r = softmax of the scores of a router `base` that
/// sees tokens alone; γ_i = log p_i, so that a gating's softmax(γ_i) is p_i and its TopK that of the source.
/// Rows that are no sequence have p = r. Everything is differentiated: r through the base, S through its
/// weights.
template <class Real>
class MixingRouter : public Router<Real> {
 public:
  MixingRouter(const BaseRouterOptions& base, std::unique_ptr<TokenWeights<Real>> weights,
               const RouterSetting& setting);

  std::size_t parameter_count() const override;
  /// [base | weights].
  std::size_t block_size() const override { return base_->block_size() + weights_->block_size(); }
  std::size_t frozen_size() const override { return base_trainable_ ? 0 : base_->block_size(); }
  void initialize(const Start& start, Real* parameters) const override;
  std::unique_ptr<Scratch> make_scratch() const override;
  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override;
  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override;
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override;

 private:
  std::unique_ptr<Router<Real>> base_;
  std::unique_ptr<TokenWeights<Real>> weights_;
  bool base_trainable_;
  int experts_;
  int stride_;
};

}  // namespace moelab
