#include "sim/model/blocks/mixture.h"

#include <algorithm>

#include "sim/model/gating/step_stream.h"

namespace moelab {
namespace {

template <class Real>
MixtureScratch<Real>& own(Scratch& scratch) {
  return static_cast<MixtureScratch<Real>&>(scratch);
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
  if (parts_.train_gating) parts_.train_gating->end_step(left.routing(), state + gating_state_);
}

template <class Real>
void Mixture<Real>::move_biases(const Routing<Real>& routing, double* biases) const {
  int pairs = 0;
  for (int e = 0; e < parts_.experts; ++e) pairs += routing.pairs_of(e);
  const Real rate = static_cast<Real>(*parts_.balance_rate);
  for (int e = 0; e < parts_.experts; ++e) {
    const int error = routing.pairs_of(e) * parts_.experts - pairs;  // E times (load − mean load)
    double& bias = biases[e];
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
  // The outputs of pairs are those that the backward pass has written.
  const bool reads_outputs = pass.losses->reads(AuxiliaryPath::pair_outputs);
  return value + pass.losses->weighted_sum(routed_batch(mine, reads_outputs), mine.auxiliary);
}

template class Mixture<float>;
template class Mixture<double>;

}  // namespace moelab
