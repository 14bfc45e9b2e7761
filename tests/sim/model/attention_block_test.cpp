#include "sim/model/attention_block.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/model/gradient_check.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kOutputs = 2, kExperts = 3, kTokens = 4;

/// Sums of a few terms of order one, rounded in double.
constexpr double kRounding = 1e-13;

const Layout kLayout{.input_dim = kInputs,
                     .output_dim = kOutputs,
                     .sequences = true,
                     .tokens = kTokens,
                     .target_per_token = true,
                     .labels = kTokens};

/// A block with its start, and what it hands on.
struct Example {
  explicit Example(int heads, const Json& more = Json::object())
      : spec(of_fields(heads, more)), block(spec, kLayout), parameters(block.block_size()) {
    block.initialize({1, 0}, parameters.data());
  }
  std::vector<double> operator()(const std::vector<double>& x) {
    std::vector<double> u(x.size());
    block.forward(x.data(), static_cast<int>(x.size()) / kInputs, parameters.data(), u.data());
    return u;
  }
  static Json of_fields(int heads, const Json& more) {
    Json fields = {{"heads", heads}};
    fields.update(more);
    return resolve(attention_shape(), fields, "attention");
  }
  Json spec;
  AttentionBlock<double> block;
  AlignedVector<double> parameters;
};

std::vector<double> draw_rows(int samples) {
  return ExampleBatch<double>(3, samples, kTokens * kInputs, 1).x;
}

double largest_difference(const std::vector<double>& left, const std::vector<double>& right) {
  double worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i) worst = std::max(worst, std::abs(left[i] - right[i]));
  return worst;
}

Json mixture(const Json& attention, const Json& router, int layers) {
  Json spec = example_model(router, {{"kind", "mlp"}, {"depth", 2}, {"width", 6}},
                            {{"kind", "topk"}, {"k", 2}}, kExperts);
  spec["attention"] = resolve(attention_shape(), attention, "attention");
  spec["layers"] = layers;
  return spec;
}

TEST_CASE("attention in one layer and in a stack: gradients equal central differences") {
  const Json blocks[] = {
      {{"heads", 1}}, {{"heads", 3}, {"key_dim", 2}, {"causal", true}}, {{"heads", 2}, {"residual", true}}};
  for (const Json& attention : blocks) {
    for (const char* router : {"linear", "similarity_aware", "attention_aware"}) {
      for (const int layers : {1, 2}) {
        CAPTURE(attention.dump());
        CAPTURE(router);
        CAPTURE(layers);
        check_gradients(mixture(attention, example_of(kind_named(router_kinds(), router)), layers), kLayout,
                        3, "mse");
      }
    }
  }
}

TEST_CASE("attention before a dense model, and below a frozen router: gradients equal central differences") {
  Json dense = mixture({{"heads", 2}}, "linear", 1);
  dense["kind"] = "dense";
  dense["match"] = "moe";
  check_gradients(dense, kLayout, 3, "mse");

  Json frozen = example_of(kind_named(router_kinds(), "attention_aware"));
  frozen["trainable"] = false;
  const Json spec = mixture({{"heads", 2}}, frozen, 1);
  Model<double> model(spec, kLayout, 0.0);
  CHECK_FALSE(model.groups()[0].trainable);
  CHECK(model.groups().back().trainable);
  check_gradients(spec, kLayout, 3, "mse");
}

TEST_CASE("gradients in the inputs of a model with attention equal central differences") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const int layers : {1, 2}) {
    Model<double> model(mixture({{"heads", 2}}, "attention_aware", layers), kLayout, 0.0);
    model.initialize({7, 0});
    const ExampleBatch<double> batch = smooth_batch(model, 3, *loss);
    check_input_gradient(model, batch, *loss);
  }
}

TEST_CASE("under a causal mask no token hears of those after it") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    Example attention(2, {{"causal", causal}});
    std::vector<double> x = draw_rows(1);
    const std::vector<double> before = attention(x);
    x[(kTokens - 1) * kInputs] += 1;  // the last token
    std::vector<double> after = attention(x);
    const std::size_t earlier = (kTokens - 1) * kInputs;
    CHECK(std::equal(before.begin(), before.begin() + earlier, after.begin()) == causal);
    CHECK(largest_difference(before, after) > 0.01);
  }
}

TEST_CASE("heads are averaged, a head starts the same whatever their number, and X is added with residual") {
  const std::vector<double> x = draw_rows(2);
  Example one(1), two(2), added(2, {{"residual", true}});
  const std::size_t head = one.parameters.size();
  CHECK(std::equal(one.parameters.begin(), one.parameters.end(), two.parameters.begin()));
  const std::vector<double> first = one(x), mean = two(x), sum = added(x);
  std::copy_n(two.parameters.begin() + static_cast<std::ptrdiff_t>(head), head, one.parameters.begin());
  const std::vector<double> second = one(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(std::abs(mean[i] - (first[i] + second[i]) / 2) < kRounding);
    CHECK(std::abs(sum[i] - (x[i] + mean[i])) < kRounding);
  }
  CHECK(largest_difference(first, second) > 0.01);
}

TEST_CASE("a row that stands alone attends to itself") {
  const Layout single{.input_dim = kInputs, .output_dim = kOutputs};
  Example whole(1);
  AttentionBlock<double> block(whole.spec, single);
  const std::vector<double> x = draw_rows(1);
  std::vector<double> u(x.size());
  block.forward(x.data(), kTokens, whole.parameters.data(), u.data());
  const NamedArray<double> value = block.arrays(whole.parameters.data())[2];
  REQUIRE(value.name == "attention_value_output");
  for (std::size_t i = 0; i < u.size(); ++i) {
    double product = 0;
    for (std::size_t j = 0; j < kInputs; ++j) {
      product += x[i / kInputs * kInputs + j] * value.values[j * kInputs + i % kInputs];
    }
    CHECK(std::abs(u[i] - product) < kRounding);
  }
}

TEST_CASE("the matrices start N(0, init_scale² / d)") {
  constexpr double kScale = 2, kStandardErrors = 5;
  Example attention(200, {{"init_scale", kScale}});
  for (const NamedArray<double>& array : attention.block.arrays(attention.parameters.data())) {
    CAPTURE(array.name);
    double square = 0;
    const double count = static_cast<double>(array.values.size());
    for (const double value : array.values) square += value * value / count;
    const double variance = kScale * kScale / kInputs;
    CHECK(std::abs(square - variance) < kStandardErrors * variance * std::sqrt(2 / count));
    CHECK(std::abs(square - 2 * variance) > kStandardErrors * variance * std::sqrt(2 / count));
  }
}

TEST_CASE("models that attention does not fit are refused") {
  const auto path_of = [](const Json& spec, const Layout& layout) -> std::string {
    try {
      const Model<float> model(spec, layout, 0.0);
    } catch (const UserError& error) {
      return error.path();
    }
    return "";
  };
  Json whole = mixture({{"heads", 2}}, "linear", 1);
  CHECK(path_of(whole, kLayout).empty());
  whole.update({{"kind", "dense"}, {"match", "moe"}, {"reads", "sequence"}});
  CHECK(path_of(whole, kLayout) == "model.reads");
  Json without = mixture({{"heads", 2}}, "attention_aware", 1);
  without.erase("attention");
  CHECK(path_of(without, kLayout) == "model.attention");
  const Json image = mixture({{"heads", 2}}, example_of(kind_named(router_kinds(), "cnn")), 1);
  CHECK(path_of(image, with_image(image, {.input_dim = kInputs, .output_dim = kOutputs})) ==
        "model.attention");
}

}  // namespace
}  // namespace moelab
