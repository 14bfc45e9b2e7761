#include "sim/model/network.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/base/numerics.h"
#include "sim/model/expert/expert.h"

namespace moelab {

template <class Real>
Network<Real>::Network(const ModelOptions& options, const Layout& data_layout)
    : layout_(layout_read_by(options, data_layout)),
      block_rows_(options.block_rows),
      train_gating_(make_gating<Real>(options.gating.train, gating_setting(options, data_layout))),
      eval_gating_(make_gating<Real>(options.gating.eval, gating_setting(options, data_layout))),
      soft_gating_(make_soft_gating<Real>(*eval_gating_)),
      top1_gating_(make_top1_gating<Real>(*eval_gating_)) {
  check(options);
  check(options, data_layout);
  if (mixtures_of(options) > 0) {
    layers_ = mixtures_of(options);
    experts_ = routed_experts(options);
    starts_at_train_rows_ = options.router.entry().needs_train_rows(options.router.options());
  }
  Gatings<Real> gatings{nullptr, train_gating_.get()};
  if (eval_gating_->block_size() > 0) gatings.learned = eval_gating_.get();
  if (train_gating_->block_size() > 0) gatings.learned = train_gating_.get();
  blocks_ = make_blocks<Real>(options, data_layout, gatings);
  place_blocks();
  router_couples_rows_ = std::any_of(mixtures_.begin(), mixtures_.end(), [&](std::size_t block) {
    return blocks_[block].mixture->router_couples_rows();
  });
  if (couples_rows() || eval_gating_->couples_rows()) group_samples_ = options.group_samples;
}

template <class Real>
void Network<Real>::place_blocks() {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    PlacedBlock<Real>& placed = blocks_[i];
    placed.parameters = parameter_size_;
    placed.state = state_size_;
    if (placed.parameters_of) placed.parameters = blocks_[*placed.parameters_of].parameters;
    for (ParameterGroup group : placed.block->groups()) {
      group.begin += parameter_size_;
      group.end += parameter_size_;
      groups_.push_back(group);
    }
    parameter_size_ += placed.block->block_size();
    for (const StateArray& array : placed.block->state_arrays()) state_size_ += size(array.size());
    if (placed.mixture) mixtures_.push_back(i);
  }
}

template <class Real>
MixtureScratch<Real>& Network<Real>::mixture_scratch(int layer, Workspace<Real>& workspace) const {
  return static_cast<MixtureScratch<Real>&>(workspace.scratch[mixtures_[size(layer)]]->innermost());
}

template <class Real>
int Network<Real>::block_samples() const {
  const int most = std::max(1, block_rows_ / layout_.tokens);
  return group_samples_ > 0 ? group_samples_ * std::max(1, most / group_samples_) : most;
}

template <class Real>
std::size_t Network<Real>::parameter_count() const {
  std::size_t count = 0;
  for (const PlacedBlock<Real>& placed : blocks_) count += placed.block->parameter_count();
  return count;
}

template <class Real>
void Network<Real>::initialize(const Start& start, AlignedVector<Real>& parameters, State& state) const {
  parameters.assign(parameter_size_, Real(0));
  state.progress = 0;
  state.values.assign(state_size_, 0.0);
  for (const PlacedBlock<Real>& placed : blocks_) {
    const Start own = start.of_layer(placed.streams);
    placed.block->initialize(own, parameters.data() + placed.parameters);
    placed.block->start_state(own, state.values.data() + placed.state);
  }
}

template <class Real>
void Network<Real>::begin_step(double progress, const AlignedVector<Real>& parameters, State& state) const {
  state.progress = progress;
  for (const PlacedBlock<Real>& placed : blocks_) {
    placed.block->begin_step(progress, parameters.data() + placed.parameters,
                             state.values.data() + placed.state);
  }
}

template <class Real>
void Network<Real>::end_step(const Workspace<Real>& workspace, State& state) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].block->end_step(*workspace.scratch[i], state.values.data() + blocks_[i].state);
  }
}

template <class Real>
Workspace<Real> Network<Real>::make_workspace() const {
  Workspace<Real> workspace;
  for (const PlacedBlock<Real>& placed : blocks_) workspace.scratch.push_back(placed.block->make_scratch());
  workspace.signals.resize(blocks_.size());
  workspace.outputs.resize(blocks_.size());
  workspace.inputs.resize(blocks_.size());
  workspace.gradient.assign(parameter_size_, Real(0));
  return workspace;
}

template <class Real>
View<const Real> Network<Real>::forward(const Pass<Real>& pass, const Real* x, int samples,
                                        const AlignedVector<Real>& parameters, const State& state,
                                        Workspace<Real>& workspace, std::size_t end) const {
  MOELAB_EXPECT(parameters.size() == parameter_size_ && state.values.size() == state_size_);
  View<const Real> rows = rows_of(x, samples * layout_.tokens, layout_.input_dim);
  LayerSignals<Real> signals;
  signals.first_inputs = rows;
  signals.labels = pass.labels;
  for (std::size_t i = 0; i < std::min(end, blocks_.size()); ++i) {
    const Block<Real>& block = *blocks_[i].block;
    const int output_rows = block.output_rows(rows.rows, pass.tokens);
    const int stride = kernels::padded(block.output_dim());
    reserve_entries(workspace.outputs[i], entries(output_rows, stride));
    const View<Real> outputs{workspace.outputs[i].data(), output_rows, block.output_dim(), stride};
    workspace.signals[i] = signals;
    workspace.inputs[i] = rows;
    block.forward(pass, rows, values(blocks_[i], parameters, state), signals, *workspace.scratch[i], outputs);
    rows = outputs;
  }
  // The signals that a block after the end would read.
  if (end < blocks_.size()) {
    workspace.signals[end] = signals;
    workspace.inputs[end] = rows;
  }
  workspace.result = rows;
  return rows;
}

template <class Real>
void Network<Real>::backward(const Pass<Real>& pass, const AlignedVector<Real>& parameters,
                             const State& state, const Real* output_gradient, Workspace<Real>& workspace,
                             Real* input_gradient) const {
  const Real* upstream = output_gradient;
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    const PlacedBlock<Real>& placed = blocks_[i];
    const View<const Real>& inputs = workspace.inputs[i];
    Real* down = input_gradient;
    if (i > 0) {
      AlignedVector<Real>& between = workspace.gradients[i % 2];
      reserve_entries(between, entries(inputs.rows, kernels::padded(inputs.columns)));
      down = between.data();
    }
    const View<const Real> outputs = i + 1 < blocks_.size() ? workspace.inputs[i + 1] : workspace.result;
    placed.block->backward(pass, inputs, values(placed, parameters, state), workspace.signals[i],
                           *workspace.scratch[i], outputs, upstream,
                           workspace.gradient.data() + placed.parameters, down);
    upstream = down;
  }
}

template <class Real>
bool Network<Real>::has_finite_routing(Workspace<Real>& workspace) const {
  for (int layer = 0; layer < layers_ && has_router(); ++layer) {
    const MixtureScratch<Real>& scratch = mixture_scratch(layer, workspace);
    const Routing<Real>& routing = scratch.routing();
    for (int row = 0; row < routing.rows; ++row) {
      const Real* const r = scratch.gating.probabilities.data() + entries(row, routing.stride);
      if (!all_finite<Real>({r, size(routing.experts)})) return false;
    }
  }
  return true;
}

template <class Real>
bool Network<Real>::has_lost_rows(Workspace<Real>& workspace) const {
  for (int layer = 0; layer < layers_ && has_router(); ++layer) {
    const MixtureScratch<Real>& scratch = mixture_scratch(layer, workspace);
    const Routing<Real>& routing = scratch.routing();
    for (int row = 0; row < routing.rows; ++row) {
      if (std::isnan(scratch.gating.probabilities[entries(row, routing.stride)])) return true;
    }
  }
  return false;
}

template <class Real>
std::string Network<Real>::layer_ending(int layer) const {
  return layers_ > 1 ? "_layer" + std::to_string(layer) : "";
}

template <class Real>
std::vector<NamedArray<Real>> Network<Real>::arrays(const AlignedVector<Real>& parameters) const {
  std::vector<NamedArray<Real>> all = stored_arrays(parameters);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].unit_with_next) continue;
    const auto rows = static_cast<int>(all[i].shape.front());
    const auto width = static_cast<int>(all[i].values.size()) / rows;
    const View<Real> slope{all[i].values.data(), rows, width, width};
    for (int row = 0; row < rows; ++row) {
      Real& intercept = all[i + 1].values[size(row)];
      Real square = intercept * intercept;
      for (int j = 0; j < width; ++j) square += slope(row, j) * slope(row, j);
      const Real length = std::sqrt(square);
      intercept /= length;
      for (int j = 0; j < width; ++j) slope(row, j) /= length;
    }
  }
  return all;
}

template <class Real>
std::vector<NamedArray<Real>> Network<Real>::stored_arrays(const AlignedVector<Real>& parameters) const {
  std::vector<NamedArray<Real>> all;
  for (const PlacedBlock<Real>& placed : blocks_) {
    for (NamedArray<Real>& array : placed.block->arrays(parameters.data() + placed.parameters)) {
      if (placed.layer >= 0 && placed.layer < layers_) array.name += layer_ending(placed.layer);
      all.push_back(std::move(array));
    }
  }
  return all;
}

template <class Real>
std::vector<StateArray> Network<Real>::state_arrays() const {
  std::vector<StateArray> all;
  for (const PlacedBlock<Real>& placed : blocks_) {
    for (StateArray& array : placed.block->state_arrays()) {
      if (placed.layer >= 0 && placed.layer < layers_) array.name += layer_ending(placed.layer);
      all.push_back(std::move(array));
    }
  }
  return all;
}

template class Network<float>;
template class Network<double>;

template <class Real>
std::unique_ptr<Mixture<Real>> make_mixture(const ModelOptions& options, const Layout& layout, int layer,
                                            int output_dim, const Gatings<Real>& gatings) {
  RouterSetting setting;
  setting.input_dim = layout.router_dim();
  setting.experts = routed_experts(options);
  setting.layer = layer;
  setting.layers = mixtures_of(options);
  setting.image = layout.image;
  setting.causal = is_causal(options);
  MixtureParts<Real> parts;
  parts.router = make_router<Real>(options.router, setting);
  const int expert_dim = layout.input_dim - layout.image.size() + parts.router->feature_dim();
  const ExpertSetting networks{expert_dim, output_dim, options.experts};
  parts.bank = make_expert_bank<Real>(expert_of(options), networks);
  if (options.null_experts > 0)
    parts.bank = with_null_experts(std::move(parts.bank), networks, options.null_experts);
  if (options.shared_experts > 0)
    parts.bank =
        with_shared_experts(std::move(parts.bank), expert_of(options), networks, options.shared_experts);
  parts.router_trainable = is_trainable(options.router);
  parts.layer = layer;
  parts.experts = routed_experts(options);
  parts.null_experts = options.null_experts;
  parts.jitter = options.gating.jitter;
  parts.input_dim = layout.input_dim;
  parts.output_dim = output_dim;
  parts.image_size = layout.image.size();
  parts.learned_gating = gatings.learned;
  parts.train_gating = gatings.train;
  parts.balance_rate = options.gating.balance_rate;
  parts.balance_rule = options.gating.balance_rule;
  return std::make_unique<Mixture<Real>>(std::move(parts));
}

template std::unique_ptr<Mixture<float>> make_mixture(const ModelOptions&, const Layout&, int, int,
                                                      const Gatings<float>&);
template std::unique_ptr<Mixture<double>> make_mixture(const ModelOptions&, const Layout&, int, int,
                                                       const Gatings<double>&);

template <class Real>
ArrayPlaces array_places(const Network<Real>& network) {
  // Each parameter holds its own place, so reading the arrays gives their places. Places have two digits,
  // since float is exact only up to 2^24.
  constexpr std::size_t kDigit = std::size_t{1} << 20;
  AlignedVector<Real> low(network.parameter_size()), high(network.parameter_size());
  for (std::size_t i = 0; i < low.size(); ++i) {
    const std::size_t digit = i / kDigit;
    low[i] = static_cast<Real>(i % kDigit);
    high[i] = static_cast<Real>(digit);
  }
  ArrayPlaces places;
  const std::vector<NamedArray<Real>> of_high = network.stored_arrays(high);
  for (const NamedArray<Real>& array : network.stored_arrays(low)) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      own.push_back(static_cast<std::size_t>(of_high[places.size()].values[i]) * kDigit +
                    static_cast<std::size_t>(array.values[i]));
    }
    places.emplace_back(array.name, std::move(own));
  }
  return places;
}

template ArrayPlaces array_places(const Network<float>&);
template ArrayPlaces array_places(const Network<double>&);

}  // namespace moelab
