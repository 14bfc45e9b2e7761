#include "sim/model/router/mixing_router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/kernels/kernels.h"
#include "sim/model/log_softmax.h"
#include "sim/model/router/cosine_router.h"
#include "sim/model/router/linear_router.h"

namespace moelab {
namespace {

/// Below this a mixed probability has lost digits to underflow: its logarithm is taken term by term, and it
/// is left out of the gradient, whatever reaches it from a gating being in proportion to it.
template <class Real>
constexpr Real kSmallest = std::numeric_limits<Real>::min() / std::numeric_limits<Real>::epsilon();

template <class Real>
std::unique_ptr<Router<Real>> make_base(const Json& spec, const Layout& layout, int experts) {
  return spec.at("kind") == "cosine" ? make_cosine_router<Real>(spec, layout, experts)
                                     : make_linear_router<Real>(spec, layout, experts);
}

}  // namespace

template <class Real>
MixingRouter<Real>::MixingRouter(const Json& spec, std::unique_ptr<TokenWeights<Real>> weights,
                                 const Layout& layout, int experts)
    : base_(make_base<Real>(spec.at("base"), layout, experts)),
      weights_(std::move(weights)),
      base_trainable_(spec.at("base").at("trainable")),
      experts_(experts),
      stride_(kernels::padded(experts)) {}

template <class Real>
std::size_t MixingRouter<Real>::parameter_count() const {
  return base_->parameter_count() + weights_->parameter_count();
}

template <class Real>
void MixingRouter<Real>::initialize(const Seeds& seeds, Real* parameters) const {
  base_->initialize(seeds, parameters);
  weights_->initialize(parameters + base_->block_size());
}

template <class Real>
void MixingRouter<Real>::forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) {
  const int rows = context.rows, tokens = context.tokens;
  const int weight_stride = kernels::padded(tokens);
  reserve_entries(base_log_probabilities_, entries(rows, stride_));
  reserve_entries(base_probabilities_, entries(rows, stride_));
  reserve_entries(mixtures_, entries(rows, stride_));
  reserve_entries(token_weights_, entries(rows, weight_stride));
  reserve_entries(log_token_weights_, entries(rows, weight_stride));
  base_->forward(context, parameters, base_log_probabilities_.data());
  log_softmax_rows(base_log_probabilities_.data(), base_probabilities_.data(), rows, experts_, stride_);
  weights_->forward(context, parameters + base_->block_size(), token_weights_.data(),
                    log_token_weights_.data());
  for (int first = 0; first < rows; first += tokens) {
    kernels::Product<Real> product;
    product.m = product.k = tokens;
    product.n = experts_;
    product.a = token_weights_.data() + entries(first, weight_stride);
    product.a_row = weight_stride;
    product.b = base_probabilities_.data() + entries(first, stride_);
    product.b_row = product.c_row = stride_;
    product.c = mixtures_.data() + entries(first, stride_);
    kernels::multiply(product);
  }
  for (int row = 0; row < rows; ++row) {
    const Real* const mixture = mixtures_.data() + entries(row, stride_);
    Real* const own = scores + entries(row, stride_);
    std::fill_n(own, stride_, Real(0));
    for (int e = 0; e < experts_; ++e) {
      own[e] = mixture[e] > kSmallest<Real>
                   ? std::log(mixture[e])
                   : log_mixture(log_token_weights_.data() + entries(row, weight_stride), tokens,
                                 row - row % tokens, e);
    }
  }
}

/// log Σ_j exp(log S_ij + log r_e(u_j)).
template <class Real>
Real MixingRouter<Real>::log_mixture(const Real* log_weights, int tokens, int first_row, int expert) const {
  const auto term = [&](int j) {
    return log_weights[j] + base_log_probabilities_[entries(first_row + j, stride_) + size(expert)];
  };
  Real peak = term(0);
  for (int j = 1; j < tokens; ++j) peak = std::max(peak, term(j));
  Real sum = 0;
  for (int j = 0; j < tokens; ++j) sum += std::exp(term(j) - peak);
  return peak + std::log(sum);
}

template <class Real>
void MixingRouter<Real>::backward(const RouterContext<Real>& context, const Real* parameters,
                                  const RouterGradients<Real>& gradients) {
  const int rows = context.rows, tokens = context.tokens;
  const int weight_stride = kernels::padded(tokens);
  reserve_entries(mixture_gradient_, entries(rows, stride_));
  reserve_entries(base_gradient_, entries(rows, stride_));
  reserve_entries(weight_gradient_, entries(rows, weight_stride));
  for (std::size_t i = 0; i < entries(rows, stride_); ++i) {
    mixture_gradient_[i] = mixtures_[i] > kSmallest<Real> ? gradients.scores[i] / mixtures_[i] : Real(0);
  }
  for (int first = 0; first < rows; first += tokens) {
    const Real* const delta = mixture_gradient_.data() + entries(first, stride_);
    kernels::Product<Real> of_weights;
    of_weights.m = of_weights.n = tokens;
    of_weights.k = experts_;
    of_weights.a = delta;
    of_weights.a_row = of_weights.b_row = stride_;
    of_weights.b = base_probabilities_.data() + entries(first, stride_);
    of_weights.b_transposed = true;
    of_weights.c = weight_gradient_.data() + entries(first, weight_stride);
    of_weights.c_row = weight_stride;
    kernels::multiply(of_weights);
    kernels::Product<Real> of_base;
    of_base.m = of_base.k = tokens;
    of_base.n = experts_;
    of_base.a = token_weights_.data() + entries(first, weight_stride);
    of_base.a_row = 1;
    of_base.a_column = weight_stride;
    of_base.b = delta;
    of_base.b_row = of_base.c_row = stride_;
    of_base.c = base_gradient_.data() + entries(first, stride_);
    kernels::multiply(of_base);
  }
  kernels::softmax_backward_rows(base_probabilities_.data(), base_gradient_.data(), base_gradient_.data(),
                                 rows, experts_, stride_);
  RouterGradients<Real> of_base = gradients;
  of_base.scores = base_gradient_.data();
  base_->backward(context, parameters, of_base);
  RouterGradients<Real> of_weights = gradients;
  of_weights.parameters = gradients.parameters + base_->block_size();
  weights_->backward(context, parameters + base_->block_size(), token_weights_.data(),
                     weight_gradient_.data(), of_weights);
}

template <class Real>
std::vector<NamedArray<Real>> MixingRouter<Real>::arrays(const Real* parameters) const {
  std::vector<NamedArray<Real>> all = base_->arrays(parameters);
  for (NamedArray<Real>& array : weights_->arrays(parameters + base_->block_size())) {
    all.push_back(std::move(array));
  }
  return all;
}

std::vector<Field> mixing_fields() {
  Kind linear = linear_router_kind();
  // A base starts at random: the rows of the training set are those of the whole model's router.
  std::erase_if(linear.fields, [](const Field& field) { return field.name == "init"; });
  return {{"trainable", Shape::boolean(), "false freezes the router, its base included, at its start", true},
          {"base", Shape::variant({linear, cosine_router_kind()}),
           "scores of r(u), a token's own routing; frozen alone by base.trainable false", "linear"}};
}

template class MixingRouter<float>;
template class MixingRouter<double>;

}  // namespace moelab
