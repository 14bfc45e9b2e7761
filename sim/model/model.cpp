#include "sim/model/model.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"

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

/// The samples from `first` on through the blocks before `end`.
template <class Real>
View<const Real> forward_from(const Model<Real>& model, Pass<Real>& pass, const Samples<Real>& x, int first,
                              int count, Workspace<Real>& workspace, std::size_t end = kAllBlocks) {
  const Layout& layout = model.network->layout();
  pass.labels = x.labels ? x.labels + entries(first, layout.tokens) : nullptr;
  return model.network->forward(pass, x.x + entries(first, layout.sample_dim()), count, model.parameters,
                                model.state, workspace, end);
}

/// Calls visit(first sample, samples) for every block.
template <class Real, class Visit>
void for_each_block(const Model<Real>& model, int samples, const Visit& visit) {
  const int most = model.network->block_samples();
  for (int first = 0; first < samples; first += most) visit(first, std::min(most, samples - first));
}

/// Forward and backward pass of the task loss, with what the pass adds on the way.
template <class Real>
double pass_through(const Model<Real>& model, Pass<Real>& pass, const TaskLoss<Real>& loss, const Real* x,
                    const Real* y, int samples, Workspace<Real>& workspace, Real* input_gradient) {
  const View<const Real> outputs =
      model.network->forward(pass, x, samples, model.parameters, model.state, workspace);
  reserve_entries(workspace.output_gradient, entries(outputs.rows, outputs.row_stride));
  const double value = loss.value_and_gradient(outputs.data, y, outputs.rows, outputs.columns,
                                               workspace.output_gradient.data());
  if (!std::isfinite(value)) pass.expert_hooks = nullptr;
  model.network->backward(pass, model.parameters, model.state, workspace.output_gradient.data(), workspace,
                          input_gradient);
  return value;
}

/// Rows with coordinate π(j) at place j of the first places; the rest stays.
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

/// Routes block after block of samples through a layer under `gating`, the layers before it under the
/// evaluation gating, and calls visit(first row, rows, scratch of the layer).
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

}  // namespace moelab
