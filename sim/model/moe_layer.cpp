#include "sim/model/moe_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {

template <class Real>
MoeLayer<Real>::MoeLayer(const Json& spec, const Layout& layout, int output_dim)
    : layout_(layout),
      output_dim_(output_dim),
      experts_(spec.at("experts")),
      router_trainable_(spec.at("router").at("trainable").get<bool>()),
      router_(make_router<Real>(spec.at("router"), layout, experts_)),
      router_size_(router_->block_size()) {
  expert_dim_ = layout.input_dim - layout.image.size() + router_->feature_dim();
  bank_ = make_expert_bank<Real>(spec.at("expert"), expert_dim_, output_dim, experts_);
  for (const char* phase : {"eval", "train"}) {
    const Gating gating = read_gating(spec.at("gating").at(phase), 0);
    if (!gating.learnable) continue;
    if (gating.p <= 0 || gating.p >= 1) {
      throw UserError(std::string("model.gating.") + phase + ".p",
                      fmt::format("got {}, a learnable threshold starts between 0 and 1", gating.p));
    }
    learns_threshold_ = true;
    threshold_start_ = gating.p;
  }
  if (learns_threshold_) router_size_ += kernels::kPadding;
  if (spec.at("gating").contains("balance_rate")) {
    selection_bias_.assign(static_cast<std::size_t>(experts_), Real(0));
  }
}

template <class Real>
MoeLayer<Real>::MoeLayer(const Json& network, const Layout& layout)
    : layout_(layout),
      output_dim_(layout.output_dim),
      experts_(1),
      expert_dim_(layout.input_dim),
      bank_(make_expert_bank<Real>(network, layout.input_dim, layout.output_dim, 1)) {}

template <class Real>
void MoeLayer<Real>::initialize(const Seeds& seeds, Real* parameters) const {
  if (router_) router_->initialize(seeds, parameters);
  if (learns_threshold_) {
    Real* const threshold = parameters + router_->block_size();
    std::fill_n(threshold, kernels::kPadding, Real(0));
    *threshold = static_cast<Real>(std::log(threshold_start_ / (1 - threshold_start_)));
  }
  bank_->initialize(seeds, parameters + router_size_);
}

template <class Real>
std::size_t MoeLayer<Real>::parameter_count() const {
  return router_parameter_count() + static_cast<std::size_t>(experts_) * bank_->parameters_per_expert();
}

template <class Real>
int MoeLayer<Real>::output_stride() const {
  return kernels::padded(output_dim_);
}

template <class Real>
const Real* MoeLayer<Real>::expert_inputs(const RouterContext<Real>& context) {
  if (expert_dim_ == layout_.input_dim) return context.x;
  const int features = router_->feature_dim();
  const int own = expert_dim_ - features;
  reserve_entries(expert_inputs_, entries(context.rows, expert_dim_));
  for (int row = 0; row < context.rows; ++row) {
    Real* const place = expert_inputs_.data() + entries(row, expert_dim_);
    std::copy_n(context.x + entries(row, layout_.input_dim) + layout_.image.size(), own, place);
    if (features > 0) std::copy_n(router_->features() + entries(row, features), features, place + own);
  }
  return expert_inputs_.data();
}

template <class Real>
Gating MoeLayer<Real>::with_threshold(const Gating& gating, const Real* parameters) const {
  Gating own = gating;
  if (gating.learnable) {
    own.p = 1 / (1 + std::exp(-static_cast<double>(parameters[router_->block_size()])));
  }
  return own;
}

template <class Real>
void MoeLayer<Real>::route(const RouterContext<Real>& context, const Gating& gating, const Real* parameters) {
  const std::size_t size = entries(context.rows, kernels::padded(experts_));
  reserve_entries(scores_, size);
  // A dense network is a single expert with gate softmax of one score = 1.
  if (router_) {
    router_->forward(context, parameters, scores_.data());
  } else {
    std::fill_n(scores_.begin(), size, Real(0));
  }
  gate(with_threshold(gating, parameters), scores_.data(), context.rows, experts_, state_,
       selection_bias_.empty() ? nullptr : selection_bias_.data());
}

template <class Real>
void MoeLayer<Real>::forward(const RouterContext<Real>& context, const Gating& gating, const Real* parameters,
                             Real* outputs, bool keep) {
  route(context, gating, parameters);
  if (before_experts_) before_experts_(state_.routing);
  bank_->forward(expert_inputs(context), state_.routing, parameters + router_size_, outputs, keep);
}

template <class Real>
void MoeLayer<Real>::backward(const RouterContext<Real>& context, const Gating& gating,
                              AuxiliaryLosses& losses, const Real* parameters, const Real* output_gradient,
                              Real* gradient, Real* input_gradient) {
  const int rows = context.rows;
  reserve_entries(gate_gradient_, entries(rows, kernels::padded(experts_)));
  const Real* pair_gradient = nullptr;
  if (router_ && losses.reads_outputs()) {
    pair_outputs(parameters);
    const std::size_t size = entries(rows * experts_, output_stride());
    reserve_entries(pair_gradient_, size);
    std::fill_n(pair_gradient_.begin(), size, Real(0));
    losses.add_gradients<Real>(routed_batch(), {.pair_outputs = pair_gradient_.data()});
    pair_gradient = pair_gradient_.data();
  }
  const bool features_learn = router_ && router_trainable_ && router_->feature_dim() > 0;
  Real* expert_input_gradient = input_gradient;
  if (features_learn) {
    reserve_entries(expert_input_gradient_, entries(rows, kernels::padded(expert_dim_)));
    expert_input_gradient = expert_input_gradient_.data();
  }
  const Real* const inputs = expert_dim_ == layout_.input_dim ? context.x : expert_inputs_.data();
  bank_->backward(inputs, state_.routing, parameters + router_size_, output_gradient, gradient + router_size_,
                  gate_gradient_.data(), expert_input_gradient, pair_gradient);
  if (!router_ || !(router_trainable_ || input_gradient)) return;
  backward_scores(with_threshold(gating, parameters), losses, gradient);
  if (!input_gradient) return router_backward(context, parameters, gradient, nullptr);
  const std::size_t size = entries(rows, kernels::padded(layout_.input_dim));
  reserve_entries(router_input_gradient_, size);
  router_backward(context, parameters, gradient, router_input_gradient_.data());
  kernels::add_scaled(Real(1), router_input_gradient_.data(), input_gradient, static_cast<int>(size));
}

template <class Real>
void MoeLayer<Real>::backward_scores(const Gating& gating, AuxiliaryLosses& losses, Real* gradient) {
  const Routing<Real>& routing = state_.routing;
  const std::size_t size = entries(routing.rows, routing.stride);
  if (!losses.empty()) losses.add_gradients<Real>(routed_batch(), {.gates = gate_gradient_.data()});
  const Real by_threshold = gate_backward(gating, state_, gate_gradient_.data(), gate_gradient_.data());
  if (learns_threshold_) {
    Real* const threshold = gradient + router_->block_size();
    std::fill_n(threshold, kernels::kPadding, Real(0));
    *threshold = by_threshold * static_cast<Real>(gating.p * (1 - gating.p));
  }
  if (losses.empty()) return;
  losses.add_gradients<Real>(routed_batch(), {.scores = gate_gradient_.data()});
  if (!losses.reads_probabilities()) return;
  reserve_entries(probability_gradient_, size);
  std::fill_n(probability_gradient_.begin(), size, Real(0));
  losses.add_gradients<Real>(routed_batch(), {.probabilities = probability_gradient_.data()});
  kernels::softmax_backward_rows(state_.probabilities.data(), probability_gradient_.data(),
                                 probability_gradient_.data(), routing.rows, routing.experts, routing.stride);
  kernels::add_scaled(Real(1), probability_gradient_.data(), gate_gradient_.data(), static_cast<int>(size));
}

template <class Real>
void MoeLayer<Real>::router_backward(const RouterContext<Real>& context, const Real* parameters,
                                     Real* gradient, Real* router_input_gradient) {
  const int features = router_->feature_dim();
  RouterGradients<Real> gradients{gate_gradient_.data(), nullptr, gradient, router_input_gradient};
  if (features > 0) {
    reserve_entries(feature_gradient_, entries(context.rows, features));
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t at = entries(row, kernels::padded(expert_dim_)) + entries(1, expert_dim_ - features);
      std::copy_n(expert_input_gradient_.data() + at, features,
                  feature_gradient_.data() + entries(row, features));
    }
    gradients.features = feature_gradient_.data();
  }
  router_->backward(context, parameters, gradients);
}

template <class Real>
const Real* MoeLayer<Real>::pair_outputs(const Real* parameters) {
  reserve_entries(pair_outputs_, entries(state_.routing.rows * experts_, output_stride()));
  bank_->pair_outputs(state_.routing, parameters + router_size_, pair_outputs_.data());
  return pair_outputs_.data();
}

template <class Real>
RoutedBatch<Real> MoeLayer<Real>::routed_batch() const {
  return {scores_.data(), state_.probabilities.data(), &state_.routing,
          pair_outputs_.empty() ? nullptr : pair_outputs_.data(), output_stride()};
}

template <class Real>
AuxiliaryValues MoeLayer<Real>::auxiliary_values(AuxiliaryLosses& losses, const Real* parameters,
                                                 bool with_outputs) {
  if (with_outputs) pair_outputs(parameters);
  RoutedBatch<Real> batch = routed_batch();
  if (!with_outputs) batch.pair_outputs = nullptr;
  return losses.values(batch);
}

template <class Real>
void MoeLayer<Real>::balance_selection(Real rate) {
  const Routing<Real>& routing = state_.routing;
  int pairs = 0;
  for (int e = 0; e < experts_; ++e) pairs += routing.pairs_of(e);
  for (int e = 0; e < experts_; ++e) {
    const int error = routing.pairs_of(e) * experts_ - pairs;  // E times (load − mean load)
    selection_bias_[static_cast<std::size_t>(e)] -= error > 0 ? rate : error < 0 ? -rate : Real(0);
  }
}

template <class Real>
std::vector<NamedArray<Real>> MoeLayer<Real>::arrays(const Real* parameters) const {
  std::vector<NamedArray<Real>> all;
  if (router_) all = router_->arrays(parameters);
  if (learns_threshold_) {
    const double a = static_cast<double>(parameters[router_->block_size()]);
    all.push_back({"gating_threshold", {1}, {static_cast<Real>(1 / (1 + std::exp(-a)))}});
  }
  for (NamedArray<Real>& array : bank_->arrays(parameters + router_size_)) all.push_back(std::move(array));
  return all;
}

template class MoeLayer<float>;
template class MoeLayer<double>;

}  // namespace moelab
