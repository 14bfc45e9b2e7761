#include "sim/model/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/base/kernels/multiply.h"
#include "sim/model/model_options.h"
#include "sim/model/network.h"

namespace moelab {
namespace {

constexpr std::size_t kAllBlocks = static_cast<std::size_t>(-1);

template <class Real>
Pass<Real> pass_of(const Model<Real>& model, const Gating<Real>& gating, bool keep) {
  Pass<Real> pass;
  pass.tokens = model.network->layout().tokens;
  pass.keep = keep;
  pass.progress = model.state.progress;
  pass.group_samples = model.network->group_samples();
  pass.gating = &gating;
  return pass;
}

/// Runs the samples from `first` on through the blocks before `end`.
template <class Real>
View<const Real> forward_from(const Model<Real>& model, Pass<Real>& pass, const Samples<Real>& x, int first,
                              int count, Workspace<Real>& workspace, std::size_t end = kAllBlocks) {
  const Layout& layout = model.network->layout();
  pass.labels = x.labels ? x.labels + entries(first, layout.tokens) : nullptr;
  return model.network->forward(pass, x.x + entries(first, layout.sample_dim()), count, model.parameters,
                                model.state, workspace, end);
}

/// Calls visit(first sample, samples) for every block of samples.
template <class Real, class Visit>
void for_each_block(const Model<Real>& model, int samples, const Visit& visit) {
  const int most = model.network->block_samples();
  for (int first = 0; first < samples; first += most) visit(first, std::min(most, samples - first));
}

/// Forward and backward pass of the task loss, with the terms that the pass adds.
template <class Real>
double pass_through(const Model<Real>& model, Pass<Real>& pass, const TaskLoss<Real>& loss, const Real* x,
                    const Real* y, int samples, Workspace<Real>& workspace, Real* input_gradient) {
  const View<const Real> outputs =
      model.network->forward(pass, x, samples, model.parameters, model.state, workspace);
  reserve_entries(workspace.output_gradient, entries(outputs.rows, outputs.row_stride));
  double value = loss.value_and_gradient(outputs.data, y, outputs.rows, outputs.columns,
                                         workspace.output_gradient.data());
  // A gating need not select the expert whose score is NaN. Then the loss alone would not show it.
  if (model.network->has_lost_rows(workspace)) value = std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(value)) pass.expert_hooks = nullptr;
  model.network->backward(pass, model.parameters, model.state, workspace.output_gradient.data(), workspace,
                          input_gradient);
  return value;
}

/// Copies rows with coordinate π(j) at place j, for the first places. Other coordinates do not change.
template <class Real>
View<const Real> permute_columns(const View<const Real>& rows, std::span<const int> permutation,
                                 AlignedVector<Real>& permuted) {
  if (rows.empty()) return rows;
  reserve_entries(permuted, entries(rows.rows, rows.columns));
  for (int row = 0; row < rows.rows; ++row) {
    Real* const place = permuted.data() + entries(row, rows.columns);
    std::copy_n(rows.row(row), rows.columns, place);
    for (std::size_t j = 0; j < permutation.size(); ++j) place[j] = rows.row(row)[permutation[j]];
  }
  return rows_of<const Real>(permuted.data(), rows.rows, rows.columns);
}

/// Routes samples in blocks through a layer under `gating`, and through earlier layers under the evaluation
/// gating. Calls visit(first row, rows, scratch of the layer) for each block.
template <class Real, class Visit>
void route_blocks(const Model<Real>& model, int layer, const Gating<Real>& gating, const Samples<Real>& x,
                  int samples, Workspace<Real>& workspace, std::span<const int> permutation,
                  const Visit& visit) {
  const Network<Real>& network = *model.network;
  const PlacedBlock<Real>& placed = network.placed_mixture(layer);
  const std::size_t at = static_cast<std::size_t>(&placed - network.blocks().data());
  Pass<Real> before = pass_of(model, network.eval_gating(), false);
  const Pass<Real> pass = pass_of(model, gating, false);
  MixtureScratch<Real>& scratch = network.mixture_scratch(layer, workspace);
  for_each_block(model, samples, [&](int first, int count) {
    View<const Real> rows = forward_from(model, before, x, first, count, workspace, at);
    rows = placed.block->mixture_inputs(before, rows, network.values(placed, model.parameters, model.state),
                                        *workspace.scratch[at]);
    LayerSignals<Real> signals = workspace.signals[at];
    if (!permutation.empty()) {
      rows = permute_columns(rows, permutation, workspace.permuted);
      signals.previous_inputs =
          permute_columns(signals.previous_inputs, permutation, workspace.permuted_previous);
    }
    placed.mixture->route(pass, rows, network.values(placed, model.parameters, model.state), signals,
                          scratch);
    visit(first * network.layout().tokens, rows.rows, scratch);
  });
}

/// Adds the losses of a block of scores at its targets.
template <class Real>
void append_losses(const View<const Real>& scores, bool is_finite, const double* targets,
                   std::vector<double>& losses) {
  for (int row = 0; row < scores.rows; ++row) {
    const auto target = static_cast<std::ptrdiff_t>(targets[row]);
    if (target < 0) continue;
    const Real* const f = scores.row(row);
    const double peak = *std::max_element(f, f + scores.columns);
    double sum = 0;
    for (int j = 0; j < scores.columns; ++j) sum += std::exp(static_cast<double>(f[j]) - peak);
    losses.push_back(is_finite ? peak + std::log(sum) - static_cast<double>(f[target])
                               : std::numeric_limits<double>::quiet_NaN());
  }
}

/// Writes a block's outputs (rows, o) to `place`.
template <class Real>
void copy_outputs(const View<const Real>& block, bool is_finite, Real* place) {
  for (int row = 0; row < block.rows; ++row, place += block.columns) {
    if (is_finite) {
      std::copy_n(block.row(row), block.columns, place);
    } else {
      std::fill_n(place, block.columns, std::numeric_limits<Real>::quiet_NaN());
    }
  }
}

/// Adds the routing of a block's rows in a layer.
template <class Real>
void append_routed(const MixtureScratch<Real>& scratch, RoutedRows& routed) {
  const Routing<Real>& routing = scratch.routing();
  const std::size_t before = routed.selected.size();
  const auto append = [&](const Real* probabilities, std::vector<double>& all) {
    for (int row = 0; row < routing.rows; ++row) {
      const Real* const r = probabilities + entries(row, routing.stride);
      all.insert(all.end(), r, r + routing.experts);
    }
  };
  append(scratch.gating.probabilities.data(), routed.probabilities);
  if (const Real* const base = scratch.router_output.base_probabilities)
    append(base, routed.base_probabilities);
  for (int row = 0; row < routing.rows; ++row) routed.serving.push_back(serving_expert(routing, row));
  routed.selected.resize(before + entries(routing.rows, routing.experts), 0);
  for_each_pair(routing, [&](int row, int expert) {
    routed.selected[before + entries(row, routing.experts) + size(expert)] = 1;
  });
}

/// The place of a row's first output among the outputs of all samples.
template <class Real>
std::size_t first_output(const Network<Real>& network, int first_row) {
  return entries(first_row / network.layout().tokens, network.layout().prediction_dim());
}

}  // namespace

template <class Real>
Model<Real>::Model(std::shared_ptr<const Network<Real>> structure, const Start& start)
    : network(std::move(structure)) {
  network->initialize(start, parameters, state);
}

template <class Real>
Model<Real>::Model(const ModelOptions& options, const Layout& layout, const Start& start)
    : Model(std::make_shared<const Network<Real>>(options, layout), start) {}

template <class Real>
double loss_and_gradient(const Model<Real>& model, const Objective<Real>& objective, const SamplesOf<Real>& x,
                         const Real* y, int samples, Workspace<Real>& workspace,
                         const ExpertHooks<Real>* expert_hooks) {
  Pass<Real> pass = pass_of(model, model.network->train_gating(), true);
  pass.training = true;
  pass.group_samples = 0;
  pass.losses = &objective.losses;
  pass.expert_hooks = expert_hooks;
  pass.labels = x.labels;
  const Layout& layout = model.network->layout();
  if (layout.vocabulary == 0)
    pass.targets = {y, samples * layout.target_dim() / layout.output_dim, layout.output_dim};
  double value = pass_through<Real>(model, pass, objective.task, x.x, y, samples, workspace, nullptr);
  const std::vector<PlacedBlock<Real>>& blocks = model.network->blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    value += blocks[i].block->added_loss(
        pass, model.network->values(blocks[i], model.parameters, model.state), *workspace.scratch[i]);
  }
  return value;
}

template <class Real>
bool separates_samples(const Network<Real>& network, const Objective<Real>& objective) {
  return network.layers() == 1 && objective.losses.empty() && !network.couples_rows();
}

template <class Real>
double input_gradient(const Model<Real>& model, const TaskLoss<Real>& loss, const SamplesOf<Real>& x,
                      const Real* y, int samples, Workspace<Real>& workspace, Real* gradient) {
  Pass<Real> pass = pass_of(model, model.network->train_gating(), true);
  pass.labels = x.labels;
  return pass_through(model, pass, loss, x.x, y, samples, workspace, gradient);
}

template <class Real>
void route(const Model<Real>& model, int layer, const SamplesOf<Real>& x, int samples,
           Workspace<Real>& workspace, Real* probabilities, std::span<const int> permutation) {
  const int experts = model.network->experts();
  route_blocks(model, layer, model.network->soft_gating(), x, samples, workspace, permutation,
               [&](int first_row, int rows, const MixtureScratch<Real>& scratch) {
                 for (int row = 0; row < rows; ++row) {
                   std::copy_n(scratch.gating.probabilities.data() + entries(row, scratch.routing().stride),
                               experts, probabilities + entries(first_row + row, experts));
                 }
               });
}

template <class Real>
std::vector<std::int64_t> expert_loads(const Model<Real>& model, int layer, const Gating<Real>& gating,
                                       const SamplesOf<Real>& x, int samples, Workspace<Real>& workspace) {
  std::vector<std::int64_t> loads(size(model.network->experts()), 0);
  route_blocks(model, layer, gating, x, samples, workspace, {},
               [&](int, int, const MixtureScratch<Real>& scratch) {
                 for (std::size_t e = 0; e < loads.size(); ++e) {
                   loads[e] += scratch.routing().pairs_of(static_cast<int>(e));
                 }
               });
  return loads;
}

template <class Real>
void visit_blocks(const Model<Real>& model, const Gating<Real>& gating, const SamplesOf<Real>& x, int samples,
                  Workspace<Real>& workspace, const std::function<void(int)>& visit, bool keep) {
  Pass<Real> pass = pass_of(model, gating, keep);
  for_each_block(model, samples, [&](int first, int count) {
    forward_from(model, pass, x, first, count, workspace);
    visit(first * model.network->layout().tokens);
  });
}

template struct Model<float>;
template struct Model<double>;
#define MOELAB_INSTANTIATE(Real)                                                                      \
  template double loss_and_gradient(const Model<Real>&, const Objective<Real>&, const Samples<Real>&, \
                                    const Real*, int, Workspace<Real>&, const ExpertHooks<Real>*);    \
  template bool separates_samples(const Network<Real>&, const Objective<Real>&);                      \
  template double input_gradient(const Model<Real>&, const TaskLoss<Real>&, const Samples<Real>&,     \
                                 const Real*, int, Workspace<Real>&, Real*);                          \
  template void route(const Model<Real>&, int, const Samples<Real>&, int, Workspace<Real>&, Real*,    \
                      std::span<const int>);                                                          \
  template std::vector<std::int64_t> expert_loads(const Model<Real>&, int, const Gating<Real>&,       \
                                                  const Samples<Real>&, int, Workspace<Real>&);       \
  template void visit_blocks(const Model<Real>&, const Gating<Real>&, const Samples<Real>&, int,      \
                             Workspace<Real>&, const std::function<void(int)>&, bool)
MOELAB_INSTANTIATE(float);
MOELAB_INSTANTIATE(double);
#undef MOELAB_INSTANTIATE

// Conversion between a model and named arrays.

template <class Real>
std::vector<NamedArray<Real>> arrays(const Model<Real>& model) {
  std::vector<NamedArray<Real>> all = model.network->arrays(model.parameters);
  const double* values = model.state.values.data();
  for (const StateArray& array : model.network->state_arrays()) {
    NamedArray<Real> named{array.name, array.shape, {}};
    for (std::int64_t i = 0; i < array.size(); ++i) named.values.push_back(static_cast<Real>(*values++));
    all.push_back(std::move(named));
  }
  all.push_back({"training_progress", {1}, {static_cast<Real>(model.state.progress)}});
  return all;
}

template <class Real>
void restore(Model<Real>& model, const std::vector<NamedArray<Real>>& arrays) {
  // Find all arrays before writing one, so that an error changes nothing.
  const std::vector<NamedArray<Real>> own = moelab::arrays(model);
  std::vector<const NamedArray<Real>*> given;
  for (const NamedArray<Real>& array : own) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray<Real>& other) {
      return other.name == array.name && other.shape == array.shape &&
             other.values.size() == array.values.size();
    });
    if (found == arrays.end()) {
      throw std::invalid_argument("restore: no array '" + array.name + "' of the model's shape");
    }
    given.push_back(&*found);
  }
  if (arrays.size() != own.size()) {
    throw std::invalid_argument("restore: " + std::to_string(arrays.size()) + " arrays, the model has " +
                                std::to_string(own.size()));
  }
  // Order: the parameters, the state, the state's progress.
  auto next = given.begin();
  for (const auto& [name, places] : array_places(*model.network)) {
    const std::vector<Real>& values = (*next++)->values;
    for (std::size_t i = 0; i < places.size(); ++i) model.parameters[places[i]] = values[i];
  }
  auto state = model.state.values.begin();
  for (; next + 1 != given.end(); ++next) {
    state = std::copy((*next)->values.begin(), (*next)->values.end(), state);
  }
  model.state.progress = static_cast<double>((*next)->values.front());
}

template std::vector<NamedArray<float>> arrays(const Model<float>&);
template std::vector<NamedArray<double>> arrays(const Model<double>&);
template void restore(Model<float>&, const std::vector<NamedArray<float>>&);
template void restore(Model<double>&, const std::vector<NamedArray<double>>&);

template <class Real>
void predict(const Model<Real>& model, const Gating<Real>& gating, const SamplesOf<Real>& x, int samples,
             Workspace<Real>& workspace, Real* outputs) {
  const Network<Real>& network = *model.network;
  visit_blocks<Real>(
      model, gating, x, samples, workspace,
      [&](int first_row) {
        copy_outputs(workspace.result, network.has_finite_routing(workspace),
                     outputs + first_output(network, first_row));
      },
      false);
}

template <class Real>
std::vector<double> token_losses(const Model<Real>& model, const Gating<Real>& gating,
                                 const SamplesOf<Real>& x, const double* y, int samples,
                                 Workspace<Real>& workspace) {
  std::vector<double> losses;
  losses.reserve(entries(samples, model.network->layout().tokens));
  visit_blocks<Real>(
      model, gating, x, samples, workspace,
      [&](int first_row) {
        append_losses(workspace.result, model.network->has_finite_routing(workspace), y + first_row, losses);
      },
      false);
  return losses;
}

template <class Real>
EvaluatedSamples<Real> evaluate(const Model<Real>& model, const SamplesOf<Real>& x, const double* y,
                                int samples, Workspace<Real>& workspace, bool with_routing) {
  const Network<Real>& network = *model.network;
  const std::size_t rows = entries(samples, network.layout().tokens);
  EvaluatedSamples<Real> evaluated;
  if (with_routing && network.has_router()) evaluated.layers.resize(size(network.layers()));
  for (RoutedRows& routed : evaluated.layers) {
    routed.probabilities.reserve(rows * size(network.experts()));
    routed.selected.reserve(rows * size(network.experts()));
    routed.serving.reserve(rows);
  }
  if (y) {
    evaluated.token_losses.reserve(rows);
  } else {
    evaluated.outputs.resize(entries(samples, network.layout().prediction_dim()));
  }
  visit_blocks<Real>(
      model, network.eval_gating(), x, samples, workspace,
      [&](int first_row) {
        const bool is_finite = network.has_finite_routing(workspace);
        if (y) {
          append_losses(workspace.result, is_finite, y + first_row, evaluated.token_losses);
        } else {
          copy_outputs(workspace.result, is_finite,
                       evaluated.outputs.data() + first_output(network, first_row));
        }
        for (std::size_t layer = 0; layer < evaluated.layers.size(); ++layer) {
          append_routed(network.mixture_scratch(static_cast<int>(layer), workspace), evaluated.layers[layer]);
        }
      },
      false);
  return evaluated;
}

#define MOELAB_INSTANTIATE_EVALUATION(Real)                                                                \
  template void predict(const Model<Real>&, const Gating<Real>&, const Samples<Real>&, int,                \
                        Workspace<Real>&, Real*);                                                          \
  template std::vector<double> token_losses(const Model<Real>&, const Gating<Real>&, const Samples<Real>&, \
                                            const double*, int, Workspace<Real>&);                         \
  template EvaluatedSamples<Real> evaluate(const Model<Real>&, const Samples<Real>&, const double*, int,   \
                                           Workspace<Real>&, bool)
MOELAB_INSTANTIATE_EVALUATION(float);
MOELAB_INSTANTIATE_EVALUATION(double);

}  // namespace moelab
