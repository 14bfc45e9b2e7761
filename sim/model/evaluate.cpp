#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/model/model.h"

namespace moelab {
namespace {

/// Adds the losses of a block of scores for its targets.
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

/// Adds the rows of a block that went through a layer.
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

/// The place of a row's first output among those of all samples.
template <class Real>
std::size_t first_output(const Network<Real>& network, int first_row) {
  return entries(first_row / network.layout().tokens, network.layout().prediction_dim());
}

}  // namespace

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
