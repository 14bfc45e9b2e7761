#pragma once

#include <memory>

#include "sim/model/router/router.h"

namespace moelab {

/// γ(x) = inner(x A), A (d, m) learned from N(0, 1 / d): a router on a low-dimensional projection of its
/// inputs (Chi et al. 2022). Array "router_projection" (m, d), A^T, before those of the inner router.
template <class Real>
class ProjectedRouter final : public Router<Real> {
 public:
  /// `inner` reads rows of m columns.
  ProjectedRouter(std::unique_ptr<Router<Real>> inner, int input_dim, int projection_dim);

  std::size_t parameter_count() const override;
  /// [A (d, padded(m)) | inner].
  std::size_t block_size() const override { return projection_size() + inner_->block_size(); }
  void initialize(const Seeds& seeds, Real* parameters) const override;
  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override;
  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override;
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override;

 private:
  std::size_t projection_size() const;
  RouterContext<Real> projected(const RouterContext<Real>& context) const;

  std::unique_ptr<Router<Real>> inner_;
  int input_dim_;
  int projection_dim_;
  int stride_;
  AlignedVector<Real> rows_, gradient_;  ///< x A and ∂L/∂(x A) (n, padded(m))
};

}  // namespace moelab
