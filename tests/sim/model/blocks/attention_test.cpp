#include "sim/model/blocks/attention.h"

#include <doctest/doctest.h>

#include "sim/model/blocks/dense.h"
#include "tests/sim/model/blocks/block_check.h"

namespace moelab::attention_test {
namespace {

constexpr int kInputs = 5, kTokens = 4, kSamples = 3, kRows = kSamples * kTokens;

/// Sums of a few terms of order one, rounded in double.
constexpr double kRounding = 1e-13;

const AttentionOptions kExamples[] = {
    {.heads = 1},
    {.heads = 3, .key_dim = 2, .causal = true},
    {.heads = 2, .residual = true},
    {.heads = 2, .key_dim = 1, .init_scale = 2},
};

/// A block with its start, on sequences of `tokens` rows.
struct Example {
  explicit Example(const AttentionOptions& options, int samples = kSamples, int tokens = kTokens)
      : block(make_attention<double>(options, kInputs, tokens)),
        run(*block, samples * tokens, kInputs, tokens, 2) {}
  std::vector<double> operator()(const std::vector<double>& x) {
    run.set_inputs(x);
    return run.forward();
  }
  std::unique_ptr<Block<double>> block;
  BlockRun run;
};

std::vector<double> draw_rows(int samples) {
  return normal_values(3, entries(samples * kTokens, kInputs));
}

double largest_difference(const std::vector<double>& left, const std::vector<double>& right) {
  double worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i) worst = std::max(worst, std::abs(left[i] - right[i]));
  return worst;
}

/// Adds Σ_i w_i v_i to `sum`, v the entries of rows of `columns` entries with their padding, w normal and 0
/// at padding and above the diagonal of `causal` weights; and w to `gradient`.
void weigh(std::uint64_t seed, std::size_t rows, int columns, bool causal,
           const AlignedVector<double>& values, AlignedVector<double>* gradient, double& sum) {
  const std::size_t stride = size(kernels::padded(columns));
  const std::vector<double> weights = normal_values(seed, rows * stride);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t end = causal ? row % kTokens + 1 : size(columns);
    for (std::size_t i = row * stride; i < row * stride + end; ++i) {
      sum += weights[i] * values[i];
      if (gradient) (*gradient)[i] += weights[i];
    }
  }
}

/// What a router might add to the loss: a sum over log A, the centres and U.
SignalTerm term_of_router(const AttentionOptions& options) {
  return [options](const LayerSignals<double>& signals, bool adds) {
    const AttentionState<double>& state = *signals.attention;
    AttentionGradients<double>* const gradients = adds ? signals.attention_gradients : nullptr;
    if (adds) {
      gradients->start_adding(state, kRows, kTokens, kernels::padded(kInputs));
      for (int sample = 0; sample < kSamples; ++sample) {
        for (int h = 0; h < options.heads; ++h) gradients->touch(sample, h);
      }
    }
    const std::size_t rows_of_heads = entries(options.heads, kRows);
    double sum = 0;
    weigh(11, rows_of_heads, kTokens, options.causal, state.log_weights,
          adds ? &gradients->log_weights : nullptr, sum);
    weigh(12, rows_of_heads, kInputs, false, state.centres, adds ? &gradients->centres : nullptr, sum);
    weigh(13, kRows, kInputs, false, state.outputs, adds ? &gradients->outputs : nullptr, sum);
    return sum;
  };
}

TEST_CASE("attention: gradients equal central differences, with and without a router that looks at it") {
  for (const AttentionOptions& options : kExamples) {
    CAPTURE(options.heads);
    CAPTURE(options.residual);
    const auto block = make_attention<double>(options, kInputs, kTokens);
    check_block_gradients(*block, kInputs, kRows, kTokens);
    check_block_gradients(*block, kInputs, kRows, kTokens, term_of_router(options));
    const auto alone = make_attention<double>(options, kInputs, 1);
    check_block_gradients(*alone, kInputs, kRows);
    const auto inside = make_residual(make_attention<double>(options, kInputs, kTokens));
    check_block_gradients(*inside, kInputs, kRows, kTokens, term_of_router(options));
  }
}

TEST_CASE("what a router added to an earlier batch is forgotten") {
  const AttentionOptions options = kExamples[1];
  Example fresh(options), used(options);
  const std::vector<double> x = draw_rows(kSamples), upstream = normal_values(4, x.size());
  used(draw_rows(kSamples));
  term_of_router(options)(used.run.signals, true);
  CHECK(used.run.signals.attention->heads == options.heads);
  CHECK(used.run.signals.attention_gradients->used);
  used.run.backward(upstream);
  for (Example* example : {&fresh, &used}) {
    (*example)(x);
    CHECK_FALSE(example->run.signals.attention_gradients->used);
    example->run.backward(upstream);
  }
  CHECK(used.run.gradient == fresh.run.gradient);
  CHECK(used.run.input_gradient == fresh.run.input_gradient);
}

TEST_CASE("under a causal mask no token hears of those after it") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    Example attention({.heads = 2, .causal = causal}, 1);
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
  Example one({.heads = 1}, 2), two({.heads = 2}, 2), added({.heads = 2, .residual = true}, 2);
  AlignedVector<double>& of_one = one.run.parameters;
  const AlignedVector<double>& of_two = two.run.parameters;
  CHECK(std::equal(of_one.begin(), of_one.end(), of_two.begin()));
  const std::vector<double> first = one(x), mean = two(x), sum = added(x);
  std::copy_n(of_two.begin() + static_cast<std::ptrdiff_t>(of_one.size()), of_one.size(), of_one.begin());
  const std::vector<double> second = one(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(std::abs(mean[i] - (first[i] + second[i]) / 2) < kRounding);
    CHECK(std::abs(sum[i] - (x[i] + mean[i])) < kRounding);
  }
  CHECK(largest_difference(first, second) > 0.01);
}

TEST_CASE("a row that stands alone attends to itself") {
  Example single({.heads = 1}, kTokens, 1);
  const std::vector<double> x = draw_rows(1);
  const std::vector<double> u = single(x);
  const NamedArray<double> value = single.block->arrays(single.run.parameters.data())[2];
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
  Example attention({.heads = 200, .init_scale = kScale}, 1);
  for (const NamedArray<double>& array : attention.block->arrays(attention.run.parameters.data())) {
    CAPTURE(array.name);
    double square = 0;
    const double count = static_cast<double>(array.values.size());
    for (const double value : array.values) square += value * value / count;
    const double variance = kScale * kScale / kInputs;
    CHECK(std::abs(square - variance) < kStandardErrors * variance * std::sqrt(2 / count));
    CHECK(std::abs(square - 2 * variance) > kStandardErrors * variance * std::sqrt(2 / count));
  }
}

TEST_CASE("arrays are the free parameters, each once, in one group") {
  for (const AttentionOptions& options : kExamples) {
    const int keys = options.key_dim.value_or(kInputs);
    Example attention(options, 1);
    const std::vector<NamedArray<double>> arrays = attention.block->arrays(attention.run.parameters.data());
    REQUIRE(arrays.size() == 3);
    CHECK(arrays[0].name == "attention_query");
    CHECK(arrays[1].name == "attention_key");
    CHECK(arrays[0].shape == std::vector<std::int64_t>{options.heads, keys, kInputs});
    CHECK(arrays[1].shape == arrays[0].shape);
    CHECK(arrays[2].shape == std::vector<std::int64_t>{options.heads, kInputs, kInputs});
    std::vector<std::size_t> places = free_places(
        attention.block->block_size(), [&](const double* buffer) { return attention.block->arrays(buffer); });
    CHECK(places.size() == attention.block->parameter_count());
    std::sort(places.begin(), places.end());
    CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
    REQUIRE(attention.block->groups().size() == 1);
    CHECK(attention.block->groups()[0].end == attention.block->block_size());
    CHECK(attention.block->groups()[0].layer == -1);
  }
}

}  // namespace
}  // namespace moelab::attention_test
