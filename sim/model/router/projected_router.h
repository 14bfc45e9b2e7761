#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// A router on a low-dimensional projection of its inputs (Chi et al. 2022): γ(x) = inner(x A), A (d, m)
/// learned from N(0, 1 / d). Array "router_projection" (m, d), A^T, before the arrays of the inner router.
template <class Real>
class ProjectedRouter final : public Router<Real> {
 public:
  /// `inner` reads rows of m columns and has no state.
  ProjectedRouter(std::unique_ptr<Router<Real>> inner, int input_dim, int projection_dim);

  std::size_t parameter_count() const override;
  /// [A (d, padded(m)) | inner].
  std::size_t block_size() const override { return projection_size() + inner_->block_size(); }
  void initialize(const Start& start, Real* parameters) const override;
  std::unique_ptr<Scratch> make_scratch() const override;
  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override;
  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override;
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override;

 private:
  std::size_t projection_size() const;
  /// The projection A (d, m) in a parameter block.
  template <class Value>
  View<Value> projection(Value* block) const {
    return {block, input_dim_, projection_dim_, stride_};
  }

  std::unique_ptr<Router<Real>> inner_;
  int input_dim_;
  int projection_dim_;
  int stride_;
};

}  // namespace moelab
