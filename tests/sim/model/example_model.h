#pragma once

/// A model with a workspace, and what tests ask of it.

#include <cmath>
#include <span>
#include <vector>

#include "tests/sim/model/example.h"

namespace moelab {

template <class Real>
struct ExampleModel {
  ExampleModel(const ModelOptions& options, const Layout& layout, const Seeds& seeds)
      : model(options, layout, {seeds}), workspace(model.network->make_workspace()) {}
  /// A copy of the model with its own workspace.
  ExampleModel(const ExampleModel& other)
      : model(other.model), workspace(model.network->make_workspace()), losses(other.losses) {}

  const Network<Real>& network() const { return *model.network; }
  const Layout& layout() const { return network().layout(); }
  const std::vector<ParameterGroup>& groups() const { return network().groups(); }
  std::size_t parameter_count() const { return network().parameter_count(); }
  AlignedVector<Real>& parameters() { return model.parameters; }
  const AlignedVector<Real>& gradient() const { return workspace.gradient; }
  /// The gradients of the parameters alone.
  std::vector<NamedArray<Real>> arrays() const { return network().arrays(model.parameters); }

  ExampleBatch<Real> batch(std::uint64_t seed, int samples) const {
    ExampleBatch<Real> drawn =
        layout().vocabulary > 0
            ? ExampleBatch<Real>::of_ids(seed, samples, layout().tokens, layout().vocabulary)
            : ExampleBatch<Real>{seed, samples, layout().sample_dim(), layout().target_dim()};
    drawn.labels = labels_of(drawn.x);
    if (masks) {
      Engine engine(seed);
      mask_tokens(masks, engine, samples, layout().tokens, drawn.x.data(), drawn.y.data());
    }
    return drawn;
  }
  /// Clusters that rows carry, at any place.
  std::vector<int> labels_of(const std::vector<Real>& x) const {
    std::vector<int> labels;
    for (auto row = x.begin(); row < x.end(); row += layout().input_dim) {
      labels.push_back(static_cast<int>(std::abs(*row) * 1000) % 3);
    }
    return labels;
  }
  int samples_of(const std::vector<Real>& x) const {
    return static_cast<int>(x.size()) / layout().sample_dim();
  }

  double loss_and_gradient(const ExampleBatch<Real>& batch, const TaskLoss<Real>& task) {
    return moelab::loss_and_gradient(model, {task, losses}, batch.samples(), batch.y.data(), batch.rows,
                                     workspace);
  }
  /// A training step without its update of the parameters.
  double step(const ExampleBatch<Real>& batch, const TaskLoss<Real>& task, double progress = 0) {
    network().begin_step(progress, model.parameters, model.state);
    const double loss = loss_and_gradient(batch, task);
    network().end_step(workspace, model.state);
    return loss;
  }
  /// A whole one, by plain descent.
  double descend(const ExampleBatch<Real>& batch, const TaskLoss<Real>& task, double rate,
                 double progress = 0) {
    const double loss = step(batch, task, progress);
    for (std::size_t i = 0; i < gradient().size(); ++i) {
      model.parameters[i] -= static_cast<Real>(rate) * gradient()[i];
    }
    return loss;
  }

  std::vector<Real> predict(const std::vector<Real>& x, const Gating<Real>& gating) {
    std::vector<Real> outputs(entries(samples_of(x), layout().prediction_dim()));
    const std::vector<int> labels = labels_of(x);
    moelab::predict(model, gating, {x.data(), labels.data()}, samples_of(x), workspace, outputs.data());
    return outputs;
  }
  /// r (n·s, E).
  std::vector<Real> route(const std::vector<Real>& x, int layer = 0, std::span<const int> permutation = {}) {
    std::vector<Real> probabilities(entries(samples_of(x) * layout().tokens, network().experts()));
    const std::vector<int> labels = labels_of(x);
    moelab::route(model, layer, {x.data(), labels.data()}, samples_of(x), workspace, probabilities.data(),
                  permutation);
    return probabilities;
  }
  std::vector<std::int64_t> expert_loads(const std::vector<Real>& x, const Gating<Real>& gating) {
    const std::vector<int> labels = labels_of(x);
    return moelab::expert_loads(model, 0, gating, {x.data(), labels.data()}, samples_of(x), workspace);
  }

  Model<Real> model;
  Workspace<Real> workspace;
  AuxiliaryLosses losses = {};  ///< added to the task loss
  TokenMasks masks = {};        ///< of batches that are drawn
};

}  // namespace moelab
