#pragma once

/// Gradients of a model against central differences of its loss.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "tests/sim/model/central_differences.h"
#include "tests/sim/model/learning_routers.h"

namespace moelab {

inline std::vector<double> gradient_of(const ExampleModel<double>& model, const ParameterGroup& group) {
  return {model.gradient().begin() + static_cast<std::ptrdiff_t>(group.begin),
          model.gradient().begin() + static_cast<std::ptrdiff_t>(group.end)};
}

/// Checks the gradient in every parameter against the differences of a batch, which it returns.
inline ExampleBatch<double> check_parameter_gradients(ExampleModel<double>& model, int samples,
                                                      const TaskLoss<double>& loss) {
  const auto [batch, differences] = smooth_batch(model, samples, loss);
  model.loss_and_gradient(batch, loss);
  for (const ParameterGroup& group : model.groups())
    CHECK(relative_difference(gradient_of(model, group), differences.at(group.begin)) <= kTolerance);
  return batch;
}

/// Checks ∂L/∂x of a batch whose loss is smooth around it, L as measured: without the noise of a training
/// step.
inline void check_input_gradient(ExampleModel<double>& model, ExampleBatch<double> batch,
                                 const TaskLoss<double>& loss) {
  const std::size_t inputs = static_cast<std::size_t>(model.layout().input_dim);
  const std::size_t stride = static_cast<std::size_t>(kernels::padded(model.layout().input_dim));
  AlignedVector<double> gradient(batch.x.size() / inputs * stride);
  const auto value = [&] {
    return input_gradient(model.model, loss, batch.samples(), batch.y.data(), batch.rows, model.workspace,
                          gradient.data());
  };
  value();
  const AlignedVector<double> kept_gradient = gradient;
  std::vector<double> exact, differences;
  for (std::size_t i = 0; i < batch.x.size(); ++i) {
    exact.push_back(kept_gradient[i / inputs * stride + i % inputs]);
    double& x = batch.x[i];
    const double kept = x;
    x = kept + kStep;
    const double above = value();
    x = kept - kStep;
    const double below = value();
    x = kept;
    differences.push_back((above - below) / (2 * kStep));
  }
  CHECK(relative_difference(exact, differences) <= kTolerance);
}

/// Whether no row of the last batch has an expert in the first layer.
inline bool serves_none(ExampleModel<double>& model) {
  if (!model.network().has_router()) return false;
  const Routing<double>& routing = model.network().mixture_scratch(0, model.workspace).routing();
  int pairs = 0;
  for (int e = 0; e < routing.experts; ++e) pairs += routing.pairs_of(e);
  return pairs == 0;
}

/// Checks the gradient of a model on data of `layout` in batches of `samples`, and that a wrong one would not
/// pass.
inline void check_gradients(const ModelOptions& options, const Layout& layout, int samples,
                            const std::string& loss_name = "mse") {
  ExampleModel<double> model(options, layout, {3, 0});
  // Biases start at zero, where a unit whose inputs are all dead sits on its kink: move every parameter a
  // little.
  Engine engine(1);
  for (const auto& [name, places] : array_places(model.network())) {
    for (const std::size_t place : places) model.parameters()[place] += 0.1 * draw_normal(engine);
  }
  LossOptions loss_options;
  loss_options.task = loss_name;
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>(loss_options, layout.vocabulary > 0);
  if (task_loss_kind(loss_name).masks_tokens) model.masks = {0.4, layout.vocabulary};
  const auto [batch, differences_of] = smooth_batch(model, samples, *loss);
  model.loss_and_gradient(batch, *loss);
  // A router without parameters leaves its group to the gating's alone, whose gradient may be zero.
  const bool is_taught = model.network().has_router() &&
                         reaches_scores(options.gating.train, model.network().experts()) &&
                         learns(options.router.entry()) &&
                         // A softmax over one token is constant.
                         !(layout.tokens == 1 && options.gating.train.as<PatchChoiceGatingOptions>());
  for (const ParameterGroup& group : model.groups()) {
    const bool is_router = group.role == ParameterGroup::Role::router;
    const std::vector<double>& differences = differences_of.at(group.begin);
    std::vector<double> gradient = gradient_of(model, group);
    CAPTURE(is_router);
    CHECK(relative_difference(gradient, differences) <= kTolerance);

    // Where no gradient reaches the scores, a router learns only through features that the experts read, and
    // what lies below only where the experts read their inputs; else the gradient is zero.
    const auto is_zero = [](double value) { return value == 0; };
    // The same where no expert serves a row: relu gates of scores that are never positive.
    if ((!is_taught || serves_none(model)) && std::all_of(differences.begin(), differences.end(), is_zero)) {
      CHECK(std::all_of(gradient.begin(), gradient.end(), is_zero));
      continue;
    }
    // A gradient with one entry off by a hundredth must not pass.
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (gradient[i] != 0) places.push_back(i);
    }
    REQUIRE_FALSE(places.empty());
    const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
    std::nth_element(places.begin(), middle, places.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(gradient[a]) < std::abs(gradient[b]);
    });
    gradient[*middle] *= 1.01;
    CHECK(relative_difference(gradient, differences) > kTolerance);
  }
}

}  // namespace moelab
