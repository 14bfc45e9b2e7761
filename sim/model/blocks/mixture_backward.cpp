/// The backward pass of a mixture.

#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/blocks/mixture.h"

namespace moelab {

template <class Real>
void Mixture<Real>::backward(const Pass<Real>& pass, const View<const Real>& inputs,
                             const BlockValues<Real>& values, const LayerSignals<Real>& signals,
                             Scratch& scratch, const View<const Real>& /*outputs*/,
                             const Real* output_gradient, Real* gradient, Real* input_gradient) const {
  MixtureScratch<Real>& mine = static_cast<MixtureScratch<Real>&>(scratch);
  const int rows = inputs.rows;
  const int dim = parts_.input_dim;
  reserve_entries(mine.gate_gradient, entries(rows, kernels::padded(parts_.experts)));
  ExpertGradients<Real> of_experts;
  of_experts.outputs = output_gradient;
  of_experts.parameters = gradient + experts_begin_;
  of_experts.gates = mine.gate_gradient.data();
  const bool reads_outputs = pass.losses && pass.losses->reads(AuxiliaryPath::pair_outputs);
  if (reads_outputs && pair_outputs(values, mine)) {
    const std::size_t count = entries(rows * parts_.experts, output_stride());
    reserve_entries(mine.pair_gradient, count);
    std::fill_n(mine.pair_gradient.begin(), count, Real(0));
    pass.losses->add_gradients(routed_batch(mine, true), {.pair_outputs = mine.pair_gradient.data()},
                               mine.auxiliary);
    of_experts.pair_outputs = mine.pair_gradient.data();
  }
  const int features = parts_.router->feature_dim();
  const bool features_learn = parts_.router_trainable && features > 0;
  const Real* const weights = mine.router_output.expert_input_weights;
  const bool reads_all = experts_read_rows_ && !weights;
  of_experts.inputs = input_gradient;
  if (!reads_all) {
    of_experts.inputs = nullptr;
    if (features_learn || input_gradient) {
      reserve_entries(mine.expert_input_gradient, entries(rows, kernels::padded(expert_dim_)));
      of_experts.inputs = mine.expert_input_gradient.data();
    }
  }
  const View<const Real> read =
      reads_all ? inputs : rows_of<const Real>(mine.expert_inputs.data(), rows, expert_dim_);
  const std::function<void(int, const Real*)> take = [&pass, this](int expert, const Real* of_expert) {
    pass.expert_hooks->after(parts_.layer, expert, of_expert);
  };
  const bool takes = pass.expert_hooks && pass.expert_hooks->after && expert_block_size() > 0;
  if (takes) of_experts.take = &take;
  const Real* const parameters = values.parameters + experts_begin_;
  if (mine.gating.slots.each > 0) {
    std::fill_n(mine.gate_gradient.begin(), entries(rows, mine.routing().stride), Real(0));
    backward_slots(mine.gating, *parts_.bank, parameters, *mine.bank, mine.slots, expert_dim_,
                   parts_.output_dim, of_experts);
  } else {
    parts_.bank->backward(read, mine.routing(), parameters, *mine.bank, of_experts);
  }
  if (!reads_all && input_gradient) {
    // The columns that the experts read: those after the image.
    const int rest = expert_dim_ - features;
    std::fill_n(input_gradient, entries(rows, kernels::padded(dim)), Real(0));
    for (int row = 0; row < rows; ++row) {
      Real* const place = input_gradient + entries(row, kernels::padded(dim)) + parts_.image_size;
      std::copy_n(mine.expert_input_gradient.data() + entries(row, kernels::padded(expert_dim_)), rest,
                  place);
      for (int j = 0; weights && j < rest; ++j) place[j] *= weights[entries(row, rest) + size(j)];
    }
  }
  if (!(parts_.router_trainable || input_gradient)) return;
  RouterContext<Real> context = router_context(pass, inputs, values, signals);
  const int router_stride = kernels::padded(context.x.columns);
  View<Real> of_inputs;
  if (input_gradient) of_inputs = {input_gradient, rows, context.x.columns, kernels::padded(dim)};
  if (is_jittered(pass)) {
    context.x = rows_of<const Real>(mine.jittered.data(), rows, context.x.columns);
    if (input_gradient) {
      reserve_entries(mine.jittered_gradient, entries(rows, router_stride));
      std::fill_n(mine.jittered_gradient.begin(), entries(rows, router_stride), Real(0));
      of_inputs = kernels::padded_rows(mine.jittered_gradient.data(), rows, context.x.columns);
    }
  }
  backward_scores(pass, context, values, mine, gradient, of_inputs);
  if (!input_gradient) return backward_router(context, values, mine, gradient, nullptr);
  reserve_entries(mine.router_input_gradient, entries(rows, router_stride));
  backward_router(context, values, mine, gradient, mine.router_input_gradient.data());
  for (int row = 0; row < rows; ++row) {
    if (is_jittered(pass)) {
      for (int j = 0; j < context.x.columns; ++j) {
        const Real of_jittered = mine.router_input_gradient[entries(row, router_stride) + size(j)] +
                                 mine.jittered_gradient[entries(row, router_stride) + size(j)];
        input_gradient[entries(row, kernels::padded(dim)) + size(j)] +=
            of_jittered * mine.jitter[entries(row, context.x.columns) + size(j)];
      }
      continue;
    }
    kernels::add_scaled(Real(1), mine.router_input_gradient.data() + entries(row, router_stride),
                        input_gradient + entries(row, kernels::padded(dim)), router_stride);
  }
}

template <class Real>
void Mixture<Real>::backward_scores(const Pass<Real>& pass, const RouterContext<Real>& context,
                                    const BlockValues<Real>& values, MixtureScratch<Real>& scratch,
                                    Real* gradient, const View<Real>& of_inputs) const {
  const Routing<Real>& routing = scratch.routing();
  const std::size_t count = entries(routing.rows, routing.stride);
  Real* const gates = scratch.gate_gradient.data();
  const bool has_losses = pass.losses && !pass.losses->empty();
  RoutedBatch<Real> batch = routed_batch(scratch, true);
  batch.is_softmax = pass.gating->is_softmax();
  if (has_losses) pass.losses->add_gradients(batch, {.gates = gates}, scratch.auxiliary);
  Real* of_gating = nullptr;
  if (parts_.learned_gating) {
    of_gating = gradient + gating_begin_;
    std::fill_n(of_gating, parts_.learned_gating->block_size(), Real(0));
  }
  if (pass.gating->block_size() == 0) of_gating = nullptr;
  const GatingContext<Real> gating = gating_context(pass, context.x, values, scratch);
  pass.gating->backward(gating, scratch.gating, gates, gates, of_gating);
  pass.gating->add_own_gradient(gating, scratch.gating, gates, of_gating, of_inputs);
  if (!has_losses) return;
  Real* spreads = nullptr;
  if (batch.noise && pass.losses->reads(AuxiliaryPath::scores)) {
    reserve_entries(scratch.spread_gradient, count);
    spreads = scratch.spread_gradient.data();
    std::fill_n(spreads, count, Real(0));
  }
  pass.losses->add_gradients(batch, {.scores = gates, .spreads = spreads}, scratch.auxiliary);
  if (spreads) pass.gating->add_spread_gradient(gating, scratch.gating, spreads, of_gating, of_inputs);
  if (!pass.losses->reads(AuxiliaryPath::probabilities)) return;
  reserve_entries(scratch.probability_gradient, count);
  Real* const probabilities = scratch.probability_gradient.data();
  std::fill_n(probabilities, count, Real(0));
  pass.losses->add_gradients(batch, {.probabilities = probabilities}, scratch.auxiliary);
  pass.gating->backward_probabilities(scratch.gating, probabilities);
  pass.gating->add_own_gradient(gating, scratch.gating, probabilities, of_gating, of_inputs);
  kernels::add_scaled(Real(1), probabilities, gates, static_cast<int>(count));
}

template <class Real>
void Mixture<Real>::backward_router(const RouterContext<Real>& context, const BlockValues<Real>& values,
                                    MixtureScratch<Real>& scratch, Real* gradient,
                                    Real* router_input_gradient) const {
  RouterGradients<Real> gradients;
  gradients.scores = scratch.gate_gradient.data();
  gradients.parameters = gradient;
  gradients.inputs = router_input_gradient;
  const int features = parts_.router->feature_dim();
  if (features > 0) {
    reserve_entries(scratch.feature_gradient, entries(context.x.rows, features));
    for (int row = 0; row < context.x.rows; ++row) {
      const std::size_t at = entries(row, kernels::padded(expert_dim_)) + size(expert_dim_ - features);
      std::copy_n(scratch.expert_input_gradient.data() + at, features,
                  scratch.feature_gradient.data() + entries(row, features));
    }
    gradients.features = scratch.feature_gradient.data();
  }
  parts_.router->backward(context, values.parameters, *scratch.router, gradients);
}

#define MOELAB_INSTANTIATE(Real)                                                                       \
  template void Mixture<Real>::backward(const Pass<Real>&, const View<const Real>&,                    \
                                        const BlockValues<Real>&, const LayerSignals<Real>&, Scratch&, \
                                        const View<const Real>&, const Real*, Real*, Real*) const
MOELAB_INSTANTIATE(float);
MOELAB_INSTANTIATE(double);

}  // namespace moelab
