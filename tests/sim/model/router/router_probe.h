#pragma once

/// A single router: on drawn rows, behind the attention of other rows.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/kernels/multiply.h"
#include "tests/sim/model/router/gradient_comparison.h"
#include "tests/sim/model/router/started_router.h"

namespace moelab {

/// S(x) = Σ a ∘ γ(x) + Σ b ∘ features(x) + the added loss, with random a, b: its gradients are what backward
/// returns for ∂L/∂γ = a, ∂L/∂features = b. Rows lie further apart than their columns, NaN between them.
struct RouterProbe : StartedRouter {
  static constexpr int kInputs = 5, kExperts = 4, kRows = 6, kTokens = 3, kGap = 2;
  /// Central differences of a function of order ten in double: rounding 1e-15 · 10 / step, truncation step².
  static constexpr double kStep = 1e-6;
  static constexpr double kTolerance = 1e-7;
  static constexpr int kLabels[kRows] = {2, 0, 5, 1, 1, 3};

  static RouterSetting setting_for(const RouterOptions& options, int layer, int layers) {
    RouterSetting setting{.input_dim = kInputs, .experts = kExperts, .layer = layer, .layers = layers};
    if (!options.entry().needs_image) return setting;
    setting.image = {.channels = 2, .height = 4, .width = 4};
    setting.input_dim = setting.image.size();
    return setting;
  }

  RouterProbe(const RouterOptions& options, std::uint64_t seed, int layer = 0, int layers = 1)
      : StartedRouter(options, setting_for(options, layer, layers), {{seed, 0}}),
        values(entries(kRows, setting.input_dim + kGap), std::numeric_limits<double>::quiet_NaN()),
        x(values.data(), kRows, setting.input_dim, setting.input_dim + kGap),
        scores(entries(kRows, kernels::padded(kExperts))),
        a(scores.size()),
        b(entries(kRows, router->feature_dim())),
        previous(entries(kRows, setting.input_dim)),
        previous_probabilities(scores.size()) {
    Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
    // Biases start at zero, where a unit whose inputs are all dead sits on its kink: moves every parameter a
    // little. Arrays of the places themselves tell which entries are parameters and which padding.
    AlignedVector<double> places(parameters.size());
    std::iota(places.begin(), places.end(), 0.0);
    for (const NamedArray<double>& array : router->arrays(places.data())) {
      for (const double place : array.values) {
        parameters[static_cast<std::size_t>(place)] += 0.1 * draw_normal(engine);
      }
    }
    const auto fill = [&](const View<double>& rows) {
      for (int i = 0; i < rows.rows; ++i) {
        for (int j = 0; j < rows.columns; ++j) rows(i, j) = draw_normal(engine);
      }
    };
    fill(x);
    for (double& value : b) value = draw_normal(engine);
    fill(kernels::padded_rows(a.data(), kRows, kExperts));
    std::vector<double> rows(kRows * kInputs);
    for (double& value : rows) value = draw_normal(engine);
    attention = attention_of(rows, kInputs, kTokens, 2, {{seed, 0}});
    fill(rows_of(previous.data(), kRows, setting.input_dim));
    fill(kernels::padded_rows(previous_probabilities.data(), kRows, kExperts));
    kernels::softmax_rows(previous_probabilities.data(), previous_probabilities.data(), kRows, kExperts,
                          kernels::padded(kExperts));
  }

  RouterContext<double> context() const {
    RouterContext<double> context;
    context.x = x;
    context.tokens = kTokens;
    context.training = training;
    context.progress = progress;
    context.signals.first_inputs = x;
    context.signals.labels = kLabels;
    context.signals.previous_inputs = rows_of(previous.data(), kRows, setting.input_dim);
    context.signals.previous_probabilities =
        kernels::padded_rows(previous_probabilities.data(), kRows, kExperts);
    context.signals.attention = &attention;
    context.state = state.data();
    return context;
  }

  double value() {
    output = router->forward(context(), parameters.data(), *scratch, scores.data());
    double sum = output.added_loss;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * scores[i];
    for (std::size_t i = 0; i < b.size(); ++i) sum += b[i] * output.features[i];
    return sum;
  }

  double difference(double& entry) {
    const double kept = entry;
    entry = kept + kStep;
    const double above = value();
    entry = kept - kStep;
    const double below = value();
    entry = kept;
    return (above - below) / (2 * kStep);
  }

  /// ∂S/∂parameters and ∂S/∂x (n, padded(d)).
  struct Gradient {
    AlignedVector<double> parameters, inputs;
  };
  Gradient gradient() {
    Gradient of;
    of.parameters.assign(parameters.size(), NAN);
    of.inputs.assign(entries(kRows, kernels::padded(setting.input_dim)), NAN);
    value();
    router->backward(context(), parameters.data(), *scratch,
                     {a.data(), b.empty() ? nullptr : b.data(), of.parameters.data(), of.inputs.data()});
    return of;
  }

  /// Checks the gradient in the parameters, padding included, and that a wrong one would not pass.
  void check_parameter_gradient() {
    const Gradient exact = gradient();
    GradientComparison comparison;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      comparison.add(exact.parameters[i], difference(parameters[i]));
    }
    comparison.check(kTolerance);
  }
  /// The same in the inputs.
  void check_input_gradient() {
    const Gradient exact = gradient();
    GradientComparison comparison;
    for (int i = 0; i < kRows; ++i) {
      const double* const row = exact.inputs.data() + entries(i, kernels::padded(setting.input_dim));
      for (int j = 0; j < setting.input_dim; ++j) comparison.add(row[j], difference(x(i, j)));
      for (int j = setting.input_dim; j < kernels::padded(setting.input_dim); ++j) CHECK(row[j] == 0);
    }
    comparison.check(kTolerance);
  }

  std::vector<double> values;
  View<double> x;
  AlignedVector<double> scores, a;
  std::vector<double> b, previous;
  AlignedVector<double> previous_probabilities;
  AttentionState<double> attention;
  RouterOutput<double> output;
  bool training = false;
  double progress = 0;
};

}  // namespace moelab
