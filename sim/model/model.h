#pragma once

/// A model is a network with its parameters and state. The functions here evaluate a model and do not change
/// it.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/data/problem.h"
#include "sim/model/loss/task_loss.h"
#include "sim/model/network.h"

namespace moelab {

template <class Real>
struct Model {
  std::shared_ptr<const Network<Real>> network;
  AlignedVector<Real> parameters;  ///< one flat buffer; Network::arrays() and array_places() name its entries
  State state;

  /// An initialised model.
  Model(std::shared_ptr<const Network<Real>> structure, const Start& start);
  Model(const ModelOptions& options, const Layout& layout, const Start& start);
};

/// The loss that training minimises on a batch.
template <class Real>
struct Objective {
  const TaskLoss<Real>& task;
  AuxiliaryLosses losses = {};
  TokenMasks masks = {};  ///< masks of training batches
};

/// Samples x (n, s, d), and the true cluster of each row (n·s) for routers that need it; null if it is
/// unknown.
template <class Real>
struct Samples {
  const Real* x = nullptr;
  const int* labels = nullptr;

  // NOLINTNEXTLINE(google-explicit-constructor): inputs alone are samples, too
  Samples(const Real* inputs, const int* clusters = nullptr) : x(inputs), labels(clusters) {}
};
template <class Real>
using SamplesOf = std::type_identity_t<Samples<Real>>;

/// The loss L of a batch under the training gating, including auxiliary losses. Writes its gradient to
/// `workspace.gradient`.
///
/// Samples x are (n, s, d), and targets y are (n, o) or (n, s, o). Allocates only if the batch, or its number
/// of active pairs, is larger than all before. Hooks may take the gradients of experts; these gradients are
/// then not in the workspace. Hooks are not called if the task loss is not finite.
template <class Real>
double loss_and_gradient(const Model<Real>& model, const Objective<Real>& objective, const SamplesOf<Real>& x,
                         const Real* y, int samples, Workspace<Real>& workspace,
                         const ExpertHooks<Real>* expert_hooks = nullptr);

/// Whether L of a batch is the mean of its samples' losses. This is false for losses on a batch's routing,
/// for gatings or routers that couple rows, and for stacks.
template <class Real>
bool separates_samples(const Network<Real>& network, const Objective<Real>& objective);

/// The task loss without auxiliary losses. Writes its gradient ∂L/∂x (n·s, padded(d)), for attacks.
template <class Real>
double input_gradient(const Model<Real>& model, const TaskLoss<Real>& loss, const SamplesOf<Real>& x,
                      const Real* y, int samples, Workspace<Real>& workspace, Real* gradient);

/// Writes the outputs under `gating`: (n, o), (n, s, o), or (n, s, V) for ids. Works in blocks, for any
/// number of samples. A block's outputs are NaN if a router's probabilities are not finite in it.
template <class Real>
void predict(const Model<Real>& model, const Gating<Real>& gating, const SamplesOf<Real>& x, int samples,
             Workspace<Real>& workspace, Real* outputs);

/// The losses −log softmax(f)_y in nats of each token with a target id y ≥ 0, under `gating`. Targets y are
/// (n, s). All (n·s) tokens have a target unless tokens are masked. NaN in the same cases as predict(). For
/// models on ids.
template <class Real>
std::vector<double> token_losses(const Model<Real>& model, const Gating<Real>& gating,
                                 const SamplesOf<Real>& x, const double* y, int samples,
                                 Workspace<Real>& workspace);

/// Writes r (n·s, E) of a layer under the evaluation gating; earlier layers also use this gating.
///
/// With `permutation` (of the router's d columns), the router sees coordinate π(j) of its input at place j.
/// No other part of the model sees the permutation. This equals a shuffle of the columns of W. Only for
/// models with a router.
template <class Real>
void route(const Model<Real>& model, int layer, const SamplesOf<Real>& x, int samples,
           Workspace<Real>& workspace, Real* probabilities, std::span<const int> permutation = {});

/// The routing of rows in a layer under the evaluation gating.
struct RoutedRows {
  std::vector<double> probabilities;       ///< r (n·s, E)
  std::vector<double> base_probabilities;  ///< r before tokens mix it (n·s, E), if the router provides it
  std::vector<int> serving;                ///< the serving expert of each row (n·s), −1 if it has none
  std::vector<unsigned char> selected;     ///< whether each expert is selected (n·s, E), 1 or 0
};

/// The results of one pass over samples under the evaluation gating.
template <class Real>
struct EvaluatedSamples {
  std::vector<Real> outputs;         ///< as from predict(); empty for models on ids
  std::vector<double> token_losses;  ///< as from token_losses(), for models on ids
  std::vector<RoutedRows> layers;    ///< of layers with a router, if requested
};
/// `y` holds the targets (n, s) of a model on ids; null for other models.
template <class Real>
EvaluatedSamples<Real> evaluate(const Model<Real>& model, const SamplesOf<Real>& x, const double* y,
                                int samples, Workspace<Real>& workspace, bool with_routing = true);

/// The number of rows that each expert of a layer computes under `gating`, (E).
template <class Real>
std::vector<std::int64_t> expert_loads(const Model<Real>& model, int layer, const Gating<Real>& gating,
                                       const SamplesOf<Real>& x, int samples, Workspace<Real>& workspace);

/// Calls visit(first row) after the forward pass of every block of samples under `gating`. The workspace then
/// holds the block's routing and outputs. With `keep` it also holds the arrays for a backward pass, for
/// experts' outputs and for auxiliary losses.
template <class Real>
void visit_blocks(const Model<Real>& model, const Gating<Real>& gating, const SamplesOf<Real>& x, int samples,
                  Workspace<Real>& workspace, const std::function<void(int first_row)>& visit,
                  bool keep = true);

/// Parameters and state as named arrays without padding, for `"save": ["weights"]`. They suffice for
/// predictions. The state's progress is "training_progress" (1).
template <class Real>
std::vector<NamedArray<Real>> arrays(const Model<Real>& model);

/// Sets the values from named arrays. Throws std::invalid_argument unless names and shapes match the model.
template <class Real>
void restore(Model<Real>& model, const std::vector<NamedArray<Real>>& arrays);

}  // namespace moelab
