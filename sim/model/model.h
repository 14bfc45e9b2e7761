#pragma once

/// A model: a network with its parameters and state, and what can be asked of it. Nothing here changes it.

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
  AlignedVector<Real> parameters;  ///< flat; see Network::arrays() and array_places() for names
  State state;

  /// An initialised model.
  Model(std::shared_ptr<const Network<Real>> structure, const Start& start);
  Model(const ModelOptions& options, const Layout& layout, const Start& start);
};

/// What training minimises on a batch.
template <class Real>
struct Objective {
  const TaskLoss<Real>& task;
  AuxiliaryLosses losses = {};
  TokenMasks masks = {};  ///< of batches
};

/// Samples x (n, s, d) as a model is given them, and the true cluster of each of their rows (n·s), for
/// routers that need it; null where it is not known.
template <class Real>
struct Samples {
  const Real* x = nullptr;
  const int* labels = nullptr;

  // NOLINTNEXTLINE(google-explicit-constructor): inputs alone are samples, too
  Samples(const Real* inputs, const int* clusters = nullptr) : x(inputs), labels(clusters) {}
};
template <class Real>
using SamplesOf = std::type_identity_t<Samples<Real>>;

/// L of a batch of n samples x (n, s, d), y (n, o) or (n, s, o) under the training gating, auxiliary losses
/// included, and its gradient in `workspace.gradient`. Allocates only while batches, or the active pairs of a
/// batch, grow beyond any before. With hooks that take gradients of experts, those are not in the workspace;
/// they are not called where the task loss is not finite.
template <class Real>
double loss_and_gradient(const Model<Real>& model, const Objective<Real>& objective, const SamplesOf<Real>& x,
                         const Real* y, int samples, Workspace<Real>& workspace,
                         const ExpertHooks<Real>* expert_hooks = nullptr);

/// Whether L of a batch is the mean of its samples' losses: not with losses on a batch's routing, not with a
/// gating or a router that routes rows together, and not in a stack.
template <class Real>
bool separates_samples(const Network<Real>& network, const Objective<Real>& objective);

/// The task loss alone and its gradient ∂L/∂x (n·s, padded(d)), for attacks.
template <class Real>
double input_gradient(const Model<Real>& model, const TaskLoss<Real>& loss, const SamplesOf<Real>& x,
                      const Real* y, int samples, Workspace<Real>& workspace, Real* gradient);

/// outputs (n, o), (n, s, o), or (n, s, V) for ids, under `gating`, for any number of samples (done in
/// blocks). NaN in a block in which a router's probabilities are not finite.
template <class Real>
void predict(const Model<Real>& model, const Gating<Real>& gating, const SamplesOf<Real>& x, int samples,
             Workspace<Real>& workspace, Real* outputs);

/// −log softmax(f)_y of each token that has a target id y ≥ 0, nats, of all (n·s) unless tokens are masked,
/// for targets y (n, s), under `gating`. NaN where predict() says so. For models on ids.
template <class Real>
std::vector<double> token_losses(const Model<Real>& model, const Gating<Real>& gating,
                                 const SamplesOf<Real>& x, const double* y, int samples,
                                 Workspace<Real>& workspace);

/// r (n·s, E) of a layer by the evaluation gating, also in the layers before it. With
/// `permutation` (of the router's d columns) the router alone sees coordinate π(j) of its input at place j,
/// which is the same as shuffling the columns of W. Only for models with a router.
template <class Real>
void route(const Model<Real>& model, int layer, const SamplesOf<Real>& x, int samples,
           Workspace<Real>& workspace, Real* probabilities, std::span<const int> permutation = {});

/// How a layer routes rows under the evaluation gating.
struct RoutedRows {
  std::vector<double> probabilities;       ///< r (n·s, E)
  std::vector<double> base_probabilities;  ///< r before tokens mixed it (n·s, E), of routers that leave it
  std::vector<int> serving;                ///< the serving expert of each row (n·s), −1 where it has none
  std::vector<unsigned char> selected;     ///< whether each expert is selected (n·s, E), 1 or 0
};

/// What one pass under the evaluation gating tells of samples.
template <class Real>
struct EvaluatedSamples {
  std::vector<Real> outputs;         ///< as predict() gives them; empty for models on ids
  std::vector<double> token_losses;  ///< as token_losses() gives them, for models on ids
  std::vector<RoutedRows> layers;    ///< of those with a router, where they were asked for
};
/// `y` are targets (n, s) of a model on ids, null for others.
template <class Real>
EvaluatedSamples<Real> evaluate(const Model<Real>& model, const SamplesOf<Real>& x, const double* y,
                                int samples, Workspace<Real>& workspace, bool with_routing = true);

/// Rows that each expert of a layer computes under `gating`, (E).
template <class Real>
std::vector<std::int64_t> expert_loads(const Model<Real>& model, int layer, const Gating<Real>& gating,
                                       const SamplesOf<Real>& x, int samples, Workspace<Real>& workspace);

/// Calls visit(first row) after the forward pass of every block of samples under `gating`, for what the
/// layers leave of a batch in the workspace: routing, outputs, and where they are to `keep` what a backward
/// pass needs, outputs of experts, auxiliary losses.
template <class Real>
void visit_blocks(const Model<Real>& model, const Gating<Real>& gating, const SamplesOf<Real>& x, int samples,
                  Workspace<Real>& workspace, const std::function<void(int first_row)>& visit,
                  bool keep = true);

/// Parameters and state as named arrays, padding removed: what `"save": ["weights"]` keeps, and enough to
/// predict. The state's progress is "training_progress" (1).
template <class Real>
std::vector<NamedArray<Real>> arrays(const Model<Real>& model);

/// Puts the values of such arrays back. Throws std::invalid_argument unless names and shapes are the model's.
template <class Real>
void restore(Model<Real>& model, const std::vector<NamedArray<Real>>& arrays);

}  // namespace moelab
