#include "sim/model/router/similarity_aware_router.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/base/kernels/kernels.h"
#include "sim/model/log_softmax.h"
#include "sim/model/router/mixing_router.h"

namespace moelab {
namespace {

/// τ over the training steps.
class Temperature {
 public:
  explicit Temperature(const Json& spec)
      : start_(spec.at("tau")), end_(spec.value("tau_end", start_)), schedule_(spec.at("tau_schedule")) {}
  /// At a share of the steps.
  double at(double progress) const {
    if (schedule_ == "geometric") return start_ * std::pow(end_ / start_, progress);
    const double share = schedule_ == "cosine" ? (1 - std::cos(std::numbers::pi * progress)) / 2 : progress;
    return start_ + (end_ - start_) * share;
  }

 private:
  double start_;
  double end_;
  std::string schedule_;
};

/// S = row-softmax(Y U^T / τ), Y = U W_s. W_s is kept as (d, padded(d)).
template <class Real>
class SimilarityWeights final : public TokenWeights<Real> {
 public:
  SimilarityWeights(const Json& spec, int dim)
      : temperature_(spec),
        learned_(spec.at("similarity") == "learned"),
        dim_(dim),
        stride_(kernels::padded(dim)) {}

  std::size_t parameter_count() const override { return learned_ ? entries(dim_, dim_) : 0; }
  std::size_t block_size() const override { return learned_ ? entries(dim_, stride_) : 0; }

  void initialize(Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (int j = 0; j < dim_ && learned_; ++j) parameters[entries(j, stride_) + size(j)] = Real(1);
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* weights,
               Real* log_weights) override {
    pad(context);
    inverse_temperature_ = static_cast<Real>(1 / temperature_.at(context.progress));
    if (learned_) {
      reserve_entries(turned_, entries(context.rows, stride_));
      kernels::Product<Real> product;
      product.m = context.rows;
      product.n = product.k = dim_;
      product.a = rows_.data();
      product.a_row = product.b_row = product.c_row = stride_;
      product.b = parameters;
      product.c = turned_.data();
      kernels::multiply(product);
    }
    const int tokens = context.tokens, weight_stride = kernels::padded(tokens);
    for (int first = 0; first < context.rows; first += tokens) {
      kernels::Product<Real> product;
      product.m = product.n = tokens;
      product.k = dim_;
      product.a = turned(first);
      product.a_row = product.b_row = stride_;
      product.b = rows_.data() + entries(first, stride_);
      product.b_transposed = true;
      product.c = log_weights + entries(first, weight_stride);
      product.c_row = weight_stride;
      kernels::multiply(product);
    }
    kernels::scale_into(inverse_temperature_, log_weights, log_weights,
                        static_cast<int>(entries(context.rows, weight_stride)));
    log_softmax_rows(log_weights, weights, context.rows, tokens, weight_stride);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, const Real* weights,
                Real* weight_gradient, const RouterGradients<Real>& gradients) override {
    if (!learned_ && !gradients.inputs) return;
    const int rows = context.rows, tokens = context.tokens, weight_stride = kernels::padded(tokens);
    kernels::softmax_backward_rows(weights, weight_gradient, weight_gradient, rows, tokens, weight_stride);
    kernels::scale_into(inverse_temperature_, weight_gradient, weight_gradient,
                        static_cast<int>(entries(rows, weight_stride)));
    if (learned_) reserve_entries(turned_gradient_, entries(rows, stride_));
    for (int first = 0; first < rows; first += tokens) {
      // With Z = Y U^T / τ: ∂L/∂Y = (∂L/∂Z) U / τ, and U gets (∂L/∂Z)^T Y / τ on its own side.
      kernels::Product<Real> of_turned;
      of_turned.m = of_turned.k = tokens;
      of_turned.n = dim_;
      of_turned.a = weight_gradient + entries(first, weight_stride);
      of_turned.a_row = weight_stride;
      of_turned.b = rows_.data() + entries(first, stride_);
      of_turned.b_row = of_turned.c_row = stride_;
      of_turned.c = learned_ ? turned_gradient_.data() + entries(first, stride_)
                             : gradients.inputs + entries(first, stride_);
      if (!learned_) of_turned.start = kernels::Start::accumulate;
      kernels::multiply(of_turned);
      if (!gradients.inputs) continue;
      kernels::Product<Real> of_rows = of_turned;
      of_rows.a_row = 1;
      of_rows.a_column = weight_stride;
      of_rows.b = turned(first);
      of_rows.c = gradients.inputs + entries(first, stride_);
      of_rows.start = kernels::Start::accumulate;
      kernels::multiply(of_rows);
    }
    if (learned_) matrix_backward(rows, parameters, gradients);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (!learned_) return {};
    NamedArray<Real> matrix{"router_similarity", {dim_, dim_}, {}};
    for (int j = 0; j < dim_; ++j) {
      const Real* const row = parameters + entries(j, stride_);
      matrix.values.insert(matrix.values.end(), row, row + dim_);
    }
    return {std::move(matrix)};
  }

 private:
  /// rows_ ← U with padding.
  void pad(const RouterContext<Real>& context) {
    reserve_entries(rows_, entries(context.rows, stride_));
    for (int row = 0; row < context.rows; ++row) {
      std::copy_n(context.x + row * context.stride, dim_, rows_.data() + entries(row, stride_));
    }
  }
  const Real* turned(int row) const { return (learned_ ? turned_ : rows_).data() + entries(row, stride_); }

  /// From ∂L/∂Y that of W_s, and its part of ∂L/∂U.
  void matrix_backward(int rows, const Real* parameters, const RouterGradients<Real>& gradients) {
    kernels::Product<Real> product;
    product.m = product.n = dim_;
    product.k = rows;
    product.a = rows_.data();
    product.a_row = 1;
    product.a_column = stride_;
    product.b = turned_gradient_.data();
    product.b_row = product.c_row = stride_;
    product.c = gradients.parameters;
    kernels::multiply(product);
    if (!gradients.inputs) return;
    kernels::Product<Real> back;
    back.m = rows;
    back.n = back.k = dim_;
    back.a = turned_gradient_.data();
    back.a_row = back.b_row = back.c_row = stride_;
    back.b = parameters;
    back.b_transposed = true;
    back.c = gradients.inputs;
    back.start = kernels::Start::accumulate;
    kernels::multiply(back);
  }

  Temperature temperature_;
  bool learned_;
  int dim_;
  int stride_;
  Real inverse_temperature_ = 1;
  AlignedVector<Real> rows_, turned_, turned_gradient_;  // U, Y and ∂L/∂Y (n·s, padded(d))
};

}  // namespace

Kind similarity_aware_router_kind() {
  Kind kind = {"similarity_aware",
               "p_i = Σ_j S_ij r(u_j) over the tokens of a sequence, S = row-softmax(U W_s U^T / τ) (Nguyen "
               "et al. 2025)",
               mixing_fields()};
  const std::vector<Field> own = {
      {"tau", Shape::positive_real(), "temperature τ of the similarities", 1.0},
      {"tau_end", Shape::positive_real(), "τ after the last training step (default: tau throughout)",
       kOptional},
      {"tau_schedule", Shape::choice({"linear", "cosine", "geometric"}),
       "how τ moves from tau to tau_end over the steps", "linear"},
      {"similarity", Shape::choice({"identity", "learned"}), "W_s = I, or learned from the start I",
       "identity"},
  };
  kind.fields.insert(kind.fields.end(), own.begin(), own.end());
  return kind;
}

template <class Real>
std::unique_ptr<Router<Real>> make_similarity_aware_router(const Json& spec, const Layout& layout,
                                                           int experts) {
  return std::make_unique<MixingRouter<Real>>(
      spec, std::make_unique<SimilarityWeights<Real>>(spec, layout.router_dim()), layout, experts);
}

template std::unique_ptr<Router<float>> make_similarity_aware_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_similarity_aware_router(const Json&, const Layout&, int);

}  // namespace moelab
