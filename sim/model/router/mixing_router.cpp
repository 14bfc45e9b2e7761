#include "sim/model/router/mixing_router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/cosine_router.h"

namespace moelab {
namespace {

/// Below this a mixed probability has lost digits to underflow: its logarithm is taken term by term, and it
/// is left out of the gradient, whatever reaches it from a gating being in proportion to it.
template <class Real>
constexpr Real kSmallest = std::numeric_limits<Real>::min() / std::numeric_limits<Real>::epsilon();

template <class Real>
struct MixingScratch final : Scratch {
  std::unique_ptr<Scratch> base, weights;
  AlignedVector<Real> base_log_probabilities, base_probabilities;  // log r and r (n, padded(E))
  AlignedVector<Real> token_weights, log_token_weights;            // S and log S (n·s, padded(s))
  AlignedVector<Real> mixtures;                                    // p (n, padded(E))
  AlignedVector<Real> mixture_gradient, base_gradient;             // (n, padded(E))
  AlignedVector<Real> weight_gradient;                             // ∂L/∂S
};

/// The tokens of a sequence that begins at row `first`: (s, columns) of an array of padded rows.
template <class Value>
View<Value> sequence(Value* rows, int first, int tokens, int columns) {
  return kernels::padded_rows(rows + entries(first, kernels::padded(columns)), tokens, columns);
}

/// log Σ_j exp(log S_ij + log r_e(u_j)), from log S_i and log r of the sequence's first token.
template <class Real>
Real log_mixture(const Real* log_weights, const View<const Real>& log_probabilities, int expert) {
  const auto term = [&](int j) { return log_weights[j] + log_probabilities(j, expert); };
  Real peak = term(0);
  for (int j = 1; j < log_probabilities.rows; ++j) peak = std::max(peak, term(j));
  Real sum = 0;
  for (int j = 0; j < log_probabilities.rows; ++j) sum += std::exp(term(j) - peak);
  return peak + std::log(sum);
}

}  // namespace

const std::vector<RouterKind>& BaseRouterAxis::table() {
  static const std::vector<RouterKind> table = {linear_base(), cosine_router()};
  return table;
}

void bind_mixing_fields(Fields& fields, bool& trainable, BaseRouterOptions& base) {
  fields.add("trainable", trainable, "false freezes the router, its base included, at its start");
  fields.add("base", base, "scores of r(u), a token's own routing; frozen alone by base.trainable false");
}

template <class Real>
MixingRouter<Real>::MixingRouter(const BaseRouterOptions& base, std::unique_ptr<TokenWeights<Real>> weights,
                                 const RouterSetting& setting)
    : base_(base.entry().make.of<Real>()(base.options(), setting)),
      weights_(std::move(weights)),
      base_trainable_(base.entry().trainable(base.options())),
      experts_(setting.experts),
      stride_(kernels::padded(setting.experts)) {
  MOELAB_EXPECT(base_->state_arrays().empty());
}

template <class Real>
std::size_t MixingRouter<Real>::parameter_count() const {
  return base_->parameter_count() + weights_->parameter_count();
}

template <class Real>
void MixingRouter<Real>::initialize(const Start& start, Real* parameters) const {
  base_->initialize(start, parameters);
  weights_->initialize(parameters + base_->block_size());
}

template <class Real>
std::unique_ptr<Scratch> MixingRouter<Real>::make_scratch() const {
  auto scratch = std::make_unique<MixingScratch<Real>>();
  scratch->base = base_->make_scratch();
  scratch->weights = weights_->make_scratch();
  return scratch;
}

template <class Real>
RouterOutput<Real> MixingRouter<Real>::forward(const RouterContext<Real>& context, const Real* parameters,
                                               Scratch& scratch, Real* scores) const {
  auto& own = static_cast<MixingScratch<Real>&>(scratch);
  const int rows = context.x.rows, tokens = context.tokens;
  const int weight_stride = kernels::padded(tokens);
  MOELAB_EXPECT(rows % tokens == 0);
  reserve_entries(own.base_log_probabilities, entries(rows, stride_));
  reserve_entries(own.base_probabilities, entries(rows, stride_));
  reserve_entries(own.mixtures, entries(rows, stride_));
  reserve_entries(own.token_weights, entries(rows, weight_stride));
  reserve_entries(own.log_token_weights, entries(rows, weight_stride));
  Real* const log_r = own.base_log_probabilities.data();
  Real* const r = own.base_probabilities.data();
  base_->forward(context, parameters, *own.base, log_r);
  kernels::log_softmax_rows(log_r, r, rows, experts_, stride_);
  weights_->forward(context, parameters + base_->block_size(), *own.weights, own.token_weights.data(),
                    own.log_token_weights.data());
  for (int first = 0; first < rows; first += tokens) {
    kernels::multiply(sequence(own.token_weights.data(), first, tokens, tokens),
                      sequence(r, first, tokens, experts_),
                      sequence(own.mixtures.data(), first, tokens, experts_));
  }
  for (int row = 0; row < rows; ++row) {
    const Real* const mixture = own.mixtures.data() + entries(row, stride_);
    const Real* const log_weights = own.log_token_weights.data() + entries(row, weight_stride);
    const View<const Real> log_probabilities = sequence(log_r, row - row % tokens, tokens, experts_);
    Real* const of_row = scores + entries(row, stride_);
    std::fill_n(of_row, stride_, Real(0));
    for (int e = 0; e < experts_; ++e) {
      of_row[e] = mixture[e] > kSmallest<Real> ? std::log(mixture[e])
                                               : log_mixture(log_weights, log_probabilities, e);
    }
  }
  return {.base_probabilities = r};
}

template <class Real>
void MixingRouter<Real>::backward(const RouterContext<Real>& context, const Real* parameters,
                                  Scratch& scratch, const RouterGradients<Real>& gradients) const {
  auto& own = static_cast<MixingScratch<Real>&>(scratch);
  const int rows = context.x.rows, tokens = context.tokens;
  reserve_entries(own.mixture_gradient, entries(rows, stride_));
  reserve_entries(own.base_gradient, entries(rows, stride_));
  reserve_entries(own.weight_gradient, entries(rows, kernels::padded(tokens)));
  for (std::size_t i = 0; i < entries(rows, stride_); ++i) {
    own.mixture_gradient[i] =
        own.mixtures[i] > kSmallest<Real> ? gradients.scores[i] / own.mixtures[i] : Real(0);
  }
  for (int first = 0; first < rows; first += tokens) {
    // Of P = S R: ∂L/∂S = (∂L/∂P) R^T and ∂L/∂R = S^T ∂L/∂P.
    const View<const Real> delta = sequence(own.mixture_gradient.data(), first, tokens, experts_);
    const View<const Real> r = sequence(own.base_probabilities.data(), first, tokens, experts_);
    const View<const Real> weights = sequence(own.token_weights.data(), first, tokens, tokens);
    kernels::multiply(delta, r.transposed(), sequence(own.weight_gradient.data(), first, tokens, tokens));
    kernels::multiply(weights.transposed(), delta,
                      sequence(own.base_gradient.data(), first, tokens, experts_));
  }
  kernels::softmax_backward_rows(own.base_probabilities.data(), own.base_gradient.data(),
                                 own.base_gradient.data(), rows, experts_, stride_);
  RouterGradients<Real> of_base = gradients;
  of_base.scores = own.base_gradient.data();
  base_->backward(context, parameters, *own.base, of_base);
  RouterGradients<Real> of_weights = gradients;
  of_weights.parameters = gradients.parameters + base_->block_size();
  weights_->backward(context, parameters + base_->block_size(), *own.weights, own.token_weights.data(),
                     own.weight_gradient.data(), of_weights);
}

template <class Real>
std::vector<NamedArray<Real>> MixingRouter<Real>::arrays(const Real* parameters) const {
  std::vector<NamedArray<Real>> all = base_->arrays(parameters);
  for (NamedArray<Real>& array : weights_->arrays(parameters + base_->block_size())) {
    all.push_back(std::move(array));
  }
  return all;
}

template class MixingRouter<float>;
template class MixingRouter<double>;

}  // namespace moelab
