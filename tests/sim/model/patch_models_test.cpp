/// Models of patches: filters, routers on sums of patches, gates of patches and losses of classes.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/model/loss/task_loss.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/example_model.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::patch_models_test {
namespace {

using Activation = FiltersExpertOptions::Activation;
using Outputs = FiltersExpertOptions::Outputs;
using Signs = FiltersExpertOptions::Signs;

constexpr int kTokens = 4, kDim = 3, kSamples = 6;
const Layout kLayout{.input_dim = kDim,
                     .output_dim = 2,
                     .sequences = true,
                     .tokens = kTokens,
                     .class_targets = true,
                     .labels = kTokens};

ModelOptions patch_model(const FiltersExpertOptions& expert, const GatingRule& gating) {
  ModelOptions options = model_of_kinds("linear", "linear", gating, 3);
  options.router = SequenceMeanRouterOptions{.sum = true};
  options.expert = expert;
  return options;
}

const GatingRule kSequenceNoise =
    NoisyTopKGatingOptions{.k = 1,
                           .noise = NoisyTopKGatingOptions::Noise::uniform,
                           .noise_per = NoisyTopKGatingOptions::NoisePer::sequence};

TEST_CASE("filters: gradients of every activation, output and sign") {
  for (const Activation activation : {Activation::linear, Activation::cubic, Activation::relu,
                                      Activation::celu, Activation::gelu, Activation::tanh}) {
    CAPTURE(static_cast<int>(activation));
    check_gradients(patch_model({.filters = 3, .activation = activation}, kSequenceNoise), kLayout, kSamples);
    check_gradients(patch_model({.filters = 3,
                                 .activation = activation,
                                 .outputs = Outputs::opposite,
                                 .signs = Signs::normal,
                                 .bias = true},
                                SoftGatingOptions{}),
                    kLayout, kSamples);
  }
}

TEST_CASE("patch gates and raw gates: gradients") {
  const FiltersExpertOptions expert{.filters = 3, .activation = Activation::gelu, .signs = Signs::by_expert};
  for (const auto gate : {PatchChoiceGatingOptions::Gate::chosen, PatchChoiceGatingOptions::Gate::all}) {
    const PatchChoiceGatingOptions choice{.patches = 2, .gate = gate};
    ModelOptions options = patch_model(expert, choice);
    options.router = LinearRouterOptions{};
    check_gradients(options, kLayout, kSamples);
  }
  NoisyTopKGatingOptions raw{.k = 1, .noise = NoisyTopKGatingOptions::Noise::uniform};
  raw.gate = NoisyTopKGatingOptions::Gate::raw;
  check_gradients(patch_model(expert, raw), kLayout, kSamples);
}

TEST_CASE("double_softmax: gradients, and no loss below ln(1 + 1/e)") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("double_softmax");
  const int stride = kernels::padded(2);
  std::vector<double> f(size(stride), 0.0), gradient(size(stride)), unused(size(stride));
  const double targets[] = {1, 0};
  f[0] = 0.3;
  f[1] = -0.4;
  const auto value = [&](std::vector<double>& out) {
    return loss->value_and_gradient(f.data(), targets, 1, 2, out.data());
  };
  const double p = 1 / (1 + std::exp(-0.7));
  CHECK(value(gradient) == doctest::Approx(std::log(1 + std::exp(1 - 2 * p))).epsilon(1e-13));
  for (const std::size_t j : {0u, 1u}) {
    const double kept = f[j];
    f[j] = kept + 1e-6;
    const double above = value(unused);
    f[j] = kept - 1e-6;
    const double below = value(unused);
    f[j] = kept;
    CHECK(gradient[j] == doctest::Approx((above - below) / 2e-6).epsilon(1e-7));
  }
  f[0] = 100;
  CHECK(value(unused) == doctest::Approx(std::log(1 + std::exp(-1.0))).epsilon(1e-13));
}

TEST_CASE("filters by hand: sums of cubes, and two opposite outputs of one function") {
  ModelOptions options = patch_model({.filters = 2, .activation = Activation::cubic}, Top1GatingOptions{});
  options.experts = 1;
  const auto output = [&](const ModelOptions& of) {
    ExampleModel<double> model(of, kLayout, {1, 0});
    const ExampleBatch<double> batch = model.batch(1, 1);
    const std::vector<double> outputs = model.predict(batch.x, model.network().top1_gating());
    double first = 0;
    for (const NamedArray<double>& array : model.arrays()) {
      if (array.name != "expert_weight") continue;
      for (int t = 0; t < kTokens; ++t) {
        for (int j = 0; j < 2; ++j) {
          double z = 0;
          for (int i = 0; i < kDim; ++i) z += array.values[size(j * kDim + i)] * batch.x[size(t * kDim + i)];
          first += z * z * z;
        }
      }
    }
    return std::pair(outputs, first);
  };
  const auto [own, sum_of_own] = output(options);
  CHECK(own[0] == doctest::Approx(sum_of_own).epsilon(1e-12));
  options.expert = FiltersExpertOptions{
      .filters = 2, .activation = Activation::cubic, .outputs = Outputs::opposite, .signs = Signs::by_expert};
  const auto [opposite, sum] = output(options);
  CHECK(opposite[0] == doctest::Approx(sum / 2).epsilon(1e-12));
  CHECK(opposite[1] == -opposite[0]);
}

TEST_CASE("filters: opposite outputs are two") {
  Layout layout = kLayout;
  layout.output_dim = 3;
  const ModelOptions options = patch_model({.outputs = Outputs::opposite}, SoftGatingOptions{});
  CHECK_THROWS_AS(ExampleModel<double>(options, layout, {1, 0}), InvalidOption);
}

TEST_CASE("class_scores is linear in the scores, with the sample's class") {
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  LossOptions losses;
  losses.coefficient("class_scores") = 1;
  const GatingRule gating =
      PatchChoiceGatingOptions{.patches = 2, .gate = PatchChoiceGatingOptions::Gate::one};
  ModelOptions options = model_of_kinds("linear", "linear", gating, 2);
  options.router = LinearRouterOptions{};
  ExampleModel<double> model(options, kLayout, {1, 0});
  model.losses = AuxiliaryLosses(losses);
  ExampleBatch<double> batch = model.batch(1, 2);
  batch.y = {1, 0, 0, 1};
  model.loss_and_gradient(batch, *task);
  // The router's block is W^T (d, padded(E)): −(1/2)(Σ_t x_1t − Σ_t x_2t) for the first expert.
  for (int i = 0; i < kDim; ++i) {
    double expected = 0;
    for (int t = 0; t < kTokens; ++t)
      expected -= 0.5 * (batch.x[size(t * kDim + i)] - batch.x[size((kTokens + t) * kDim + i)]);
    const std::size_t at = entries(i, kernels::padded(2));
    CHECK(model.gradient()[at] == doctest::Approx(expected).epsilon(1e-12));
    CHECK(model.gradient()[at + 1] == doctest::Approx(-expected).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace moelab::patch_models_test
