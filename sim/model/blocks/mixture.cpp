#include "sim/model/blocks/mixture.h"

#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

template <class Real>
MixtureScratch<Real>& own(Scratch& scratch) {
  return static_cast<MixtureScratch<Real>&>(scratch);
}

/// The number of slots of a group.
template <class Real>
int slots_of_group(const GatingScratch<Real>& gating) {
  return gating.routing.experts * gating.slots.each;
}

/// Calls visit(first row, rows, first slot) for every group.
template <class Real, class Visit>
void for_each_slot_group(const GatingScratch<Real>& gating, const Visit& visit) {
  const int most = gating.slots.group_rows, rows = gating.routing.rows;
  for (int first = 0, slot = 0; first < rows; first += most, slot += slots_of_group(gating))
    visit(first, std::min(most, rows - first), slot);
}

/// Routes each slot to its own expert alone.
template <class Real>
void route_slots(const GatingScratch<Real>& gating, SlotScratch<Real>& scratch) {
  Routing<Real>& routing = scratch.routing;
  const int most = gating.slots.group_rows, of_group = slots_of_group(gating);
  routing.experts = gating.routing.experts;
  routing.stride = gating.routing.stride;
  routing.rows = (gating.routing.rows + most - 1) / most * of_group;
  const std::size_t count = entries(routing.rows, routing.stride);
  reserve_entries(scratch.gates, count);
  std::fill_n(scratch.gates.begin(), count, Real(0));
  for (int slot = 0; slot < routing.rows; ++slot) {
    const int expert = slot % of_group / gating.slots.each;
    scratch.gates[entries(slot, routing.stride) + size(expert)] = 1;
  }
  routing.gates = scratch.gates.data();
  list_pairs(routing);
}

/// A group's rows of D, C or their gradients.
template <class Real, class Values>
auto slot_weights(const GatingScratch<Real>& gating, Values& values) {
  return kernels::padded_rows(values.data(), gating.routing.rows, slots_of_group(gating));
}

}  // namespace

template <class Real>
Mixture<Real>::Mixture(MixtureParts<Real> parts)
    : parts_(std::move(parts)),
      expert_dim_(parts_.input_dim - parts_.image_size + parts_.router->feature_dim()),
      experts_read_rows_(parts_.image_size == 0 && parts_.router->feature_dim() == 0),
      gating_begin_(parts_.router->block_size()),
      experts_begin_(gating_begin_ + (parts_.learned_gating ? parts_.learned_gating->block_size() : 0)),
      router_state_(0) {
  for (const StateArray& array : parts_.router->state_arrays()) router_state_ += size(array.size());
  gating_state_ = router_state_ + (parts_.balance_rate ? size(parts_.experts) : 0);
  jitter_state_ = gating_state_;
  if (!parts_.train_gating) return;
  for (const StateArray& array : parts_.train_gating->state_arrays()) jitter_state_ += size(array.size());
}

template <class Real>
int Mixture<Real>::output_stride() const {
  return kernels::padded(parts_.output_dim);
}

template <class Real>
std::size_t Mixture<Real>::parameter_count() const {
  return parts_.router->parameter_count() +
         (parts_.learned_gating ? parts_.learned_gating->parameter_count() : 0) +
         size(networks()) * parameters_per_expert() + parts_.bank->parameters_beside();
}

template <class Real>
std::vector<ParameterGroup> Mixture<Real>::groups() const {
  using Role = ParameterGroup::Role;
  std::vector<ParameterGroup> groups;
  const std::size_t frozen = parts_.router->frozen_size();
  if (frozen > 0) groups.push_back({0, frozen, false, Role::router, parts_.layer});
  if (experts_begin_ > frozen) {
    groups.push_back({frozen, experts_begin_, parts_.router_trainable, Role::router, parts_.layer});
  }
  groups.push_back({experts_begin_, block_size(), true, Role::expert, parts_.layer});
  for (ParameterGroup& group : groups)
    group.part = group.role == Role::router ? ParameterGroup::Part::router : ParameterGroup::Part::experts;
  return groups;
}

template <class Real>
void Mixture<Real>::initialize(const Start& start, Real* parameters) const {
  parts_.router->initialize(start, parameters);
  if (parts_.learned_gating) parts_.learned_gating->initialize(start, parameters + gating_begin_);
  parts_.bank->initialize(start.seeds, parameters + experts_begin_);
}

template <class Real>
std::vector<NamedArray<Real>> Mixture<Real>::arrays(const Real* parameters) const {
  std::vector<NamedArray<Real>> all = parts_.router->arrays(parameters);
  const auto append = [&all](std::vector<NamedArray<Real>> more) {
    for (NamedArray<Real>& array : more) all.push_back(std::move(array));
  };
  if (parts_.learned_gating) append(parts_.learned_gating->arrays(parameters + gating_begin_));
  append(parts_.bank->arrays(parameters + experts_begin_));
  return all;
}

template <class Real>
std::vector<StateArray> Mixture<Real>::state_arrays() const {
  std::vector<StateArray> all = parts_.router->state_arrays();
  if (parts_.balance_rate) all.push_back({"selection_bias", {parts_.experts}});
  if (parts_.train_gating) {
    for (StateArray& array : parts_.train_gating->state_arrays()) all.push_back(std::move(array));
  }
  if (parts_.jitter > 0) all.push_back(step_stream::array("router_jitter"));
  return all;
}

template <class Real>
void Mixture<Real>::start_state(const Start& start, double* state) const {
  parts_.router->start_state(start, state);
  if (parts_.balance_rate) std::fill_n(state + router_state_, parts_.experts, 0.0);
  if (parts_.train_gating) parts_.train_gating->start_state(start, state + gating_state_);
  if (parts_.jitter > 0) step_stream::start(start, state + jitter_state_, 3);
}

template <class Real>
void Mixture<Real>::begin_step(double progress, const Real* parameters, double* state) const {
  parts_.router->begin_step(progress, parameters, state);
  if (parts_.train_gating) parts_.train_gating->begin_step(state + gating_state_);
  if (parts_.jitter > 0) step_stream::advance(state + jitter_state_);
}

template <class Real>
void Mixture<Real>::end_step(const Scratch& scratch, double* state) const {
  const auto& left = static_cast<const MixtureScratch<Real>&>(scratch);
  parts_.router->end_step(*left.router, state);
  if (parts_.balance_rate.value_or(0) > 0) move_biases(left.routing(), state + router_state_);
  if (parts_.train_gating) parts_.train_gating->end_step(left.gating, state + gating_state_);
}

template <class Real>
void Mixture<Real>::move_biases(const Routing<Real>& routing, double* biases) const {
  std::int64_t pairs = 0;
  for (int e = 0; e < parts_.experts; ++e) pairs += routing.pairs_of(e);
  const Real rate = static_cast<Real>(*parts_.balance_rate);
  for (int e = 0; e < parts_.experts; ++e) {
    // E times (load − mean load)
    const std::int64_t error = std::int64_t{routing.pairs_of(e)} * parts_.experts - pairs;
    double& bias = biases[e];
    if (parts_.balance_rule == BalanceRule::error)
      bias = static_cast<Real>(bias) -
             (pairs > 0 ? rate * static_cast<Real>(error) / static_cast<Real>(pairs) : Real(0));
    else
      bias = static_cast<Real>(bias) - (error > 0 ? rate : error < 0 ? -rate : Real(0));
  }
}

template <class Real>
std::unique_ptr<Scratch> Mixture<Real>::make_scratch() const {
  auto scratch = std::make_unique<MixtureScratch<Real>>();
  scratch->router = parts_.router->make_scratch();
  scratch->bank = parts_.bank->make_scratch();
  return scratch;
}

template <class Real>
int Mixture<Real>::group_rows(const Pass<Real>& pass, int rows) {
  return static_cast<int>(std::min(entries(pass.group_samples, pass.tokens), size(rows)));
}

template <class Real>
RouterContext<Real> Mixture<Real>::router_context(const Pass<Real>& pass, const View<const Real>& inputs,
                                                  const BlockValues<Real>& values,
                                                  const LayerSignals<Real>& signals) const {
  RouterContext<Real> context;
  context.x = parts_.image_size > 0 ? inputs.middle_columns(0, parts_.image_size) : inputs;
  context.tokens = pass.tokens;
  context.group_rows = group_rows(pass, inputs.rows);
  context.training = pass.training;
  context.progress = pass.progress;
  context.signals = signals;
  context.state = values.state;
  return context;
}

template <class Real>
GatingContext<Real> Mixture<Real>::gating_context(const Pass<Real>& pass, const View<const Real>& x,
                                                  const BlockValues<Real>& values,
                                                  const MixtureScratch<Real>& scratch) const {
  GatingContext<Real> context;
  context.scores = scratch.scores.data();
  context.rows = x.rows;
  context.experts = parts_.experts;
  context.selection_bias = parts_.balance_rate ? values.state + router_state_ : nullptr;
  context.parameters = values.parameters + gating_begin_;
  context.x = x;
  context.training = pass.training;
  context.progress = pass.progress;
  context.group_rows = group_rows(pass, x.rows);
  context.tokens = pass.tokens;
  context.state = pass.training ? values.state + gating_state_ : nullptr;
  return context;
}

template <class Real>
void Mixture<Real>::route(const Pass<Real>& pass, const View<const Real>& inputs,
                          const BlockValues<Real>& values, const LayerSignals<Real>& signals,
                          MixtureScratch<Real>& scratch) const {
  MOELAB_EXPECT(inputs.columns == parts_.input_dim);
  reserve_entries(scratch.scores, entries(inputs.rows, kernels::padded(parts_.experts)));
  scratch.tokens = pass.tokens;
  scratch.targets = pass.targets;
  RouterContext<Real> context = router_context(pass, inputs, values, signals);
  if (is_jittered(pass)) context.x = jittered(context.x, values, scratch);
  scratch.router_output =
      parts_.router->forward(context, values.parameters, *scratch.router, scratch.scores.data());
  pass.gating->gate(gating_context(pass, context.x, values, scratch), scratch.gating);
}

template <class Real>
View<const Real> Mixture<Real>::jittered(const View<const Real>& x, const BlockValues<Real>& values,
                                         MixtureScratch<Real>& scratch) const {
  reserve_entries(scratch.jitter, entries(x.rows, x.columns));
  reserve_entries(scratch.jittered, entries(x.rows, x.columns));
  Engine engine = step_stream::engine(values.state + jitter_state_, kStepJitter);
  for (int row = 0; row < x.rows; ++row) {
    const std::size_t at = entries(row, x.columns);
    for (int j = 0; j < x.columns; ++j) {
      const double factor = 1 + parts_.jitter * (2 * draw_uniform(engine) - 1);
      scratch.jitter[at + size(j)] = static_cast<Real>(factor);
      scratch.jittered[at + size(j)] = x(row, j) * scratch.jitter[at + size(j)];
    }
  }
  return rows_of<const Real>(scratch.jittered.data(), x.rows, x.columns);
}

template <class Real>
View<const Real> Mixture<Real>::expert_inputs(const View<const Real>& inputs,
                                              MixtureScratch<Real>& scratch) const {
  const Real* const weights = scratch.router_output.expert_input_weights;
  if (experts_read_rows_ && !weights) return inputs;
  const int features = parts_.router->feature_dim();
  const int rest = expert_dim_ - features;
  reserve_entries(scratch.expert_inputs, entries(inputs.rows, expert_dim_));
  for (int row = 0; row < inputs.rows; ++row) {
    Real* const place = scratch.expert_inputs.data() + entries(row, expert_dim_);
    std::copy_n(inputs.row(row) + parts_.image_size, rest, place);
    for (int j = 0; weights && j < rest; ++j) place[j] *= weights[entries(row, rest) + size(j)];
    if (features > 0) {
      std::copy_n(scratch.router_output.features + entries(row, features), features, place + rest);
    }
  }
  return rows_of<const Real>(scratch.expert_inputs.data(), inputs.rows, expert_dim_);
}

template <class Real>
void Mixture<Real>::forward(const Pass<Real>& pass, const View<const Real>& inputs,
                            const BlockValues<Real>& values, LayerSignals<Real>& signals, Scratch& scratch,
                            const View<Real>& outputs) const {
  MixtureScratch<Real>& mine = own<Real>(scratch);
  MOELAB_EXPECT(outputs.row_stride == output_stride());
  route(pass, inputs, values, signals, mine);
  if (pass.expert_hooks && pass.expert_hooks->before) pass.expert_hooks->before(parts_.layer, mine.routing());
  const View<const Real> read = expert_inputs(inputs, mine);
  const Real* const parameters = values.parameters + experts_begin_;
  if (mine.gating.slots.each > 0) {
    forward_slots(read, mine.gating, *parts_.bank, parameters, *mine.bank, mine.slots, outputs, pass.keep);
  } else {
    parts_.bank->forward(read, mine.routing(), parameters, *mine.bank, outputs.data, pass.keep);
  }
  signals.previous_inputs = inputs;
  signals.previous_probabilities = {mine.gating.probabilities.data(), inputs.rows, parts_.experts,
                                    mine.routing().stride};
}

template <class Real>
const Real* Mixture<Real>::pair_outputs(const BlockValues<Real>& values,
                                        MixtureScratch<Real>& scratch) const {
  if (scratch.gating.slots.each > 0) return nullptr;
  reserve_entries(scratch.pair_outputs, entries(scratch.routing().rows * parts_.experts, output_stride()));
  parts_.bank->pair_outputs(scratch.routing(), values.parameters + experts_begin_, *scratch.bank,
                            scratch.pair_outputs.data());
  return scratch.pair_outputs.data();
}

template <class Real>
RoutedBatch<Real> Mixture<Real>::routed_batch(const MixtureScratch<Real>& scratch, bool with_outputs) const {
  const bool has_outputs = with_outputs && scratch.gating.slots.each == 0 && !scratch.pair_outputs.empty();
  RoutedBatch<Real> batch{scratch.scores.data(), scratch.gating.probabilities.data(), &scratch.routing()};
  if (scratch.gating.noise.k > 0) batch.noise = &scratch.gating.noise;
  batch.pair_outputs = has_outputs ? scratch.pair_outputs.data() : nullptr;
  batch.output_stride = output_stride();
  batch.tokens = scratch.tokens;
  batch.moves = scratch.moves.empty() ? nullptr : scratch.moves.data();
  batch.dispatched = scratch.gating.dispatched;
  batch.targets = scratch.targets;
  return batch;
}

template <class Real>
double Mixture<Real>::added_loss(const Pass<Real>& pass, const BlockValues<Real>& values,
                                 Scratch& scratch) const {
  MixtureScratch<Real>& mine = own<Real>(scratch);
  const View<const Real> no_inputs{nullptr, mine.routing().rows, 0, 0};
  double value = mine.router_output.added_loss +
                 pass.gating->added_loss(gating_context(pass, no_inputs, values, mine), mine.gating);
  if (!pass.losses || pass.losses->empty()) return value;
  // The backward pass has already written the outputs of pairs.
  const bool reads_outputs = pass.losses->reads(AuxiliaryPath::pair_outputs);
  return value + pass.losses->weighted_sum(routed_batch(mine, reads_outputs), mine.auxiliary);
}

template class Mixture<float>;
template class Mixture<double>;

// The backward pass of a mixture.

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
    // The experts read the columns after the image.
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
#undef MOELAB_INSTANTIATE

template <class Real>
void forward_slots(const View<const Real>& x, const GatingScratch<Real>& gating, const ExpertBank<Real>& bank,
                   const Real* parameters, Scratch& bank_scratch, SlotScratch<Real>& scratch,
                   const View<Real>& outputs, bool keep) {
  route_slots(gating, scratch);
  const int slots = scratch.routing.rows, of_group = slots_of_group(gating);
  reserve_entries(scratch.rows, entries(x.rows, kernels::padded(x.columns)));
  reserve_entries(scratch.slots, entries(slots, kernels::padded(x.columns)));
  reserve_entries(scratch.outputs, entries(slots, kernels::padded(outputs.columns)));
  // Clear the padding, since products read whole vectors of a row.
  const View<Real> rows = kernels::padded_rows(scratch.rows.data(), x.rows, x.columns);
  for (int row = 0; row < x.rows; ++row) {
    std::copy_n(x.row(row), x.columns, rows.row(row));
    std::fill(rows.row(row) + x.columns, rows.row(row) + rows.row_stride, Real(0));
  }
  const View<Real> read = kernels::padded_rows(scratch.slots.data(), slots, x.columns);
  const View<Real> answers = kernels::padded_rows(scratch.outputs.data(), slots, outputs.columns);
  const View<const Real> dispatch = slot_weights(gating, gating.slots.dispatch);
  const View<const Real> combine = slot_weights(gating, gating.slots.combine);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(dispatch.middle_rows(first, count).transposed(), rows.middle_rows(first, count),
                      read.middle_rows(slot, of_group));
  });
  bank.forward(read, scratch.routing, parameters, bank_scratch, scratch.outputs.data(), keep);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(combine.middle_rows(first, count), answers.middle_rows(slot, of_group),
                      outputs.middle_rows(first, count));
  });
}

template <class Real>
void backward_slots(GatingScratch<Real>& gating, const ExpertBank<Real>& bank, const Real* parameters,
                    Scratch& bank_scratch, SlotScratch<Real>& scratch, int input_dim, int output_dim,
                    const ExpertGradients<Real>& gradients) {
  const int slots = scratch.routing.rows, of_group = slots_of_group(gating), row_count = gating.routing.rows;
  reserve_entries(scratch.of_slots, entries(slots, kernels::padded(input_dim)));
  reserve_entries(scratch.of_outputs, entries(slots, kernels::padded(output_dim)));
  const View<const Real> upstream =
      kernels::padded_rows<const Real>(gradients.outputs, row_count, output_dim);
  const View<const Real> answers =
      kernels::padded_rows<const Real>(scratch.outputs.data(), slots, output_dim);
  const View<Real> of_answers = kernels::padded_rows(scratch.of_outputs.data(), slots, output_dim);
  const View<Real> of_read = kernels::padded_rows(scratch.of_slots.data(), slots, input_dim);
  const View<const Real> rows = kernels::padded_rows<const Real>(scratch.rows.data(), row_count, input_dim);
  const View<const Real> dispatch = slot_weights(gating, gating.slots.dispatch);
  const View<const Real> combine = slot_weights(gating, gating.slots.combine);
  const View<Real> of_dispatch = slot_weights(gating, gating.slots.of_dispatch);
  const View<Real> of_combine = slot_weights(gating, gating.slots.of_combine);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(combine.middle_rows(first, count).transposed(), upstream.middle_rows(first, count),
                      of_answers.middle_rows(slot, of_group));
    kernels::multiply(upstream.middle_rows(first, count), answers.middle_rows(slot, of_group).transposed(),
                      of_combine.middle_rows(first, count));
  });
  ExpertGradients<Real> of_bank;
  of_bank.outputs = scratch.of_outputs.data();
  of_bank.parameters = gradients.parameters;
  of_bank.inputs = scratch.of_slots.data();
  of_bank.take = gradients.take;
  const View<const Real> read = kernels::padded_rows<const Real>(scratch.slots.data(), slots, input_dim);
  bank.backward(read, scratch.routing, parameters, bank_scratch, of_bank);
  for_each_slot_group(gating, [&](int first, int count, int slot) {
    kernels::multiply(rows.middle_rows(first, count), of_read.middle_rows(slot, of_group).transposed(),
                      of_dispatch.middle_rows(first, count));
    if (!gradients.inputs) return;
    kernels::multiply(dispatch.middle_rows(first, count), of_read.middle_rows(slot, of_group),
                      kernels::padded_rows(gradients.inputs, row_count, input_dim).middle_rows(first, count));
  });
}

#define MOELAB_SLOTS(Real)                                                                                  \
  template void forward_slots(const View<const Real>&, const GatingScratch<Real>&, const ExpertBank<Real>&, \
                              const Real*, Scratch&, SlotScratch<Real>&, const View<Real>&, bool);          \
  template void backward_slots(GatingScratch<Real>&, const ExpertBank<Real>&, const Real*, Scratch&,        \
                               SlotScratch<Real>&, int, int, const ExpertGradients<Real>&)
MOELAB_SLOTS(float);
MOELAB_SLOTS(double);
#undef MOELAB_SLOTS

}  // namespace moelab
