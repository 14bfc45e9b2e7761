#pragma once

/// Routers that let the tokens of a sequence mix their routing (Nguyen et al. 2025, Definitions 2 and 5).

#include <memory>

#include "sim/model/router/router.h"

namespace moelab {

/// Weights S (s, s) of a sequence, rows on the simplex: how much token i listens to token j.
template <class Real>
class TokenWeights {
 public:
  virtual ~TokenWeights() = default;
  virtual std::size_t parameter_count() const { return 0; }
  /// Entries of the parameter block, padding included.
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(Real* /*parameters*/) const {}
  virtual bool reads_attention() const { return false; }
  /// S and log S (n·s, padded(s)), padding of S zero.
  virtual void forward(const RouterContext<Real>& context, const Real* parameters, Real* weights,
                       Real* log_weights) = 0;
  /// From ∂L/∂S (n·s, padded(s)), which it may overwrite, ∂L/∂parameters (overwritten); adds to ∂L/∂x and to
  /// the attention's gradients unless they are null. For the batch of the last forward pass.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters, const Real* weights,
                        Real* weight_gradient, const RouterGradients<Real>& gradients) = 0;
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
};

/// p_i = Σ_j S_ij r(u_j) over the tokens of a sequence, r = softmax of the scores of a router `base` that
/// sees tokens alone; γ_i = log p_i, so that a gating's softmax(γ_i) is p_i and its TopK that of the source.
/// Rows that are no sequence have p = r. Everything is differentiated: r through the base, S through its
/// weights.
template <class Real>
class MixingRouter final : public Router<Real> {
 public:
  /// `spec` is a resolved router object with the field `base`.
  MixingRouter(const Json& spec, std::unique_ptr<TokenWeights<Real>> weights, const Layout& layout,
               int experts);

  std::size_t parameter_count() const override;
  /// [base | weights].
  std::size_t block_size() const override { return base_->block_size() + weights_->block_size(); }
  std::size_t frozen_size() const override { return base_trainable_ ? 0 : base_->block_size(); }
  bool reads_attention() const override { return weights_->reads_attention(); }
  void initialize(const Seeds& seeds, Real* parameters) const override;
  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override;
  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override;
  const Real* base_probabilities() const override { return base_probabilities_.data(); }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override;

 private:
  Real log_mixture(const Real* log_weights, int tokens, int first_row, int expert) const;

  std::unique_ptr<Router<Real>> base_;
  std::unique_ptr<TokenWeights<Real>> weights_;
  bool base_trainable_;
  int experts_;
  int stride_;
  AlignedVector<Real> base_log_probabilities_, base_probabilities_;  ///< log r and r (n, padded(E))
  AlignedVector<Real> token_weights_, log_token_weights_;            ///< S and log S (n·s, padded(s))
  AlignedVector<Real> mixtures_;                                     ///< p (n, padded(E))
  AlignedVector<Real> mixture_gradient_, base_gradient_;             ///< (n, padded(E))
  AlignedVector<Real> weight_gradient_;                              ///< ∂L/∂S
};

/// The field `base`, a router that sees tokens alone, and the fields of every router, for kinds that mix.
std::vector<Field> mixing_fields();

}  // namespace moelab
