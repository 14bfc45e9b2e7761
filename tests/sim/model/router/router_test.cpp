#include "sim/model/router/router.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/kernels/kernels.h"
#include "sim/model/attention_block.h"
#include "tests/sim/model/example.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kExperts = 4, kRows = 6, kTokens = 3;

/// Central differences of a function of order ten in double: rounding 1e-15 · 10 / step, truncation step².
constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-7;

/// S(x) = Σ a ∘ γ(x) + Σ b ∘ features(x), with random a, b: its gradients are what backward returns for
/// ∂L/∂γ = a, ∂L/∂features = b. A router that looks at attention sees that of other rows: x and the attention
/// vary apart.
struct Probe {
  Probe(const Json& model, std::uint64_t seed)
      : layout(with_image(model, {.input_dim = kInputs, .output_dim = 1, .tokens = kTokens})),
        attention(resolve(attention_shape(), {{"heads", 2}}, "attention"),
                  {.input_dim = kInputs, .output_dim = 1, .tokens = kTokens}),
        router(make_router<double>(model.at("router"), layout, kExperts)),
        parameters(router->block_size()),
        x(static_cast<std::size_t>(kRows * layout.input_dim)),
        scores(static_cast<std::size_t>(kRows * kernels::padded(kExperts))),
        a(scores.size()),
        b(static_cast<std::size_t>(kRows * router->feature_dim())) {
    router->initialize({seed, 0}, parameters.data());
    Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
    // Biases start at zero, where a unit whose inputs are all dead sits on its kink: move every parameter,
    // and not the padding, a little. Arrays of the places themselves tell which entries are parameters.
    AlignedVector<double> places(parameters.size());
    std::iota(places.begin(), places.end(), 0.0);
    for (const NamedArray<double>& array : router->arrays(places.data())) {
      for (const double place : array.values) {
        parameters[static_cast<std::size_t>(place)] += 0.1 * draw_normal(engine);
      }
    }
    for (double& value : x) value = draw_normal(engine);
    for (double& value : b) value = draw_normal(engine);
    for (int i = 0; i < kRows; ++i) {
      for (int e = 0; e < kExperts; ++e) {
        a[static_cast<std::size_t>(i * kernels::padded(kExperts) + e)] = draw_normal(engine);
      }
    }
    AlignedVector<double> matrices(attention.block_size());
    attention.initialize({seed, 0}, matrices.data());
    std::vector<double> rows(kRows * kInputs), handed_on(rows.size());
    for (double& value : rows) value = draw_normal(engine);
    attention.forward(rows.data(), kRows, matrices.data(), handed_on.data());
    seen = attention.state();
  }

  RouterContext<double> context() const {
    RouterContext<double> context{x.data(), kRows, layout.input_dim};
    context.tokens = kTokens;
    context.attention = &seen;
    return context;
  }

  double value() {
    router->forward(context(), parameters.data(), scores.data());
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * scores[i];
    for (std::size_t i = 0; i < b.size(); ++i) sum += b[i] * router->features()[i];
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

  Layout layout;
  AttentionBlock<double> attention;
  AttentionState<double> seen;
  std::unique_ptr<Router<double>> router;
  AlignedVector<double> parameters;
  std::vector<double> x;
  AlignedVector<double> scores;
  AlignedVector<double> a;
  std::vector<double> b;
};

TEST_CASE("every router: gradients in the inputs and parameters, from scores and features") {
  for (const Kind& kind : router_kinds()) {
    CAPTURE(kind.name);
    Probe probe({{"router", example_of(kind)}}, 7);
    const std::size_t width = static_cast<std::size_t>(kernels::padded(probe.layout.input_dim));
    AlignedVector<double> inputs(kRows * width, NAN), gradient(probe.parameters.size(), NAN);
    probe.value();
    probe.router->backward(
        probe.context(), probe.parameters.data(),
        {probe.a.data(), probe.b.empty() ? nullptr : probe.b.data(), gradient.data(), inputs.data()});
    double worst = 0, wrong = 0;
    const auto compare = [&](double value, double& entry) {
      const double difference = probe.difference(entry);
      worst = std::max(worst, std::abs(value - difference));
      wrong = std::max(wrong, std::abs(value * 1.001 - difference));
    };
    for (std::size_t i = 0; i < probe.x.size(); ++i) {
      const std::size_t columns = static_cast<std::size_t>(probe.layout.input_dim);
      compare(inputs[i / columns * width + i % columns], probe.x[i]);
    }
    CHECK(worst < kTolerance);
    CHECK(wrong > kTolerance);
    worst = wrong = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) compare(gradient[i], probe.parameters[i]);
    CHECK(worst < kTolerance);
    CHECK(wrong > kTolerance);
  }
}

TEST_CASE("a CNN router reads the image alone and hands on its penultimate layer") {
  const Json model = {{"router", example_of(kind_named(router_kinds(), "cnn"))}};
  Probe probe(model, 8);
  probe.value();
  const std::vector<double> features(probe.router->features(), probe.router->features() + probe.b.size());
  const AlignedVector<double> scores = probe.scores;
  CHECK(probe.router->feature_dim() == model.at("router").at("width"));
  CHECK(*std::min_element(features.begin(), features.end()) >= 0);
  CHECK(*std::max_element(features.begin(), features.end()) > 0);
  const auto changed = [&](std::size_t column) {
    probe.x[column] += 1;
    probe.value();
    probe.x[column] -= 1;
    return probe.scores != scores;
  };
  const std::size_t pixels = static_cast<std::size_t>(probe.layout.image.size());
  for (std::size_t column = pixels; column < pixels + kInputs; ++column) CHECK_FALSE(changed(column));
  for (std::size_t column = 0; column < pixels; ++column) CHECK(changed(column));
}

TEST_CASE("a CNN router refuses data without images") {
  const Json spec = example_of(kind_named(router_kinds(), "cnn"));
  try {
    make_router<float>(spec, {.input_dim = kInputs, .output_dim = 1}, kExperts);
    FAIL("a layout without an image was accepted");
  } catch (const UserError& error) {
    CHECK(error.path() == "model.router.kind");
    CHECK(error.message().find("image_clusters") != std::string::npos);
  }
}

}  // namespace
}  // namespace moelab
