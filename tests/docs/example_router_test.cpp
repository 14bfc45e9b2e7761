/// The example of docs/adding_a_router.md, compiled and held against central differences.

#include <doctest/doctest.h>

#include "docs/example/distance_router.cpp"
#include "tests/app/run/test_scenario.h"

namespace moelab {
namespace {

constexpr int kInputs = 3, kExperts = 4, kRows = 5;
constexpr int kRow = kernels::padded(kInputs), kScoreRow = kernels::padded(kExperts);
/// The scores are quadratic, so central differences have no truncation error; rounding leaves 1e-16 / kStep.
constexpr double kStep = 1e-3, kTolerance = 1e-10;

/// A router with drawn inputs and weights of the scores in a loss L = Σ weight · γ.
struct Example {
  std::unique_ptr<Router<double>> router = make_distance_router<double>(
      {{"init_scale", 1.5}}, Layout{.input_dim = kInputs, .output_dim = 1}, kExperts);
  std::vector<double> parameters = std::vector<double>(router->block_size());
  std::vector<double> x = std::vector<double>(kRows * kRow), weights = std::vector<double>(kRows * kScoreRow);

  Example() {
    router->initialize({1, 0}, parameters.data());
    Engine engine = Seeds{1, 0}.stream(Purpose::train_data);
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kInputs; ++j) x[static_cast<std::size_t>(i * kRow + j)] = draw_normal(engine);
      for (int e = 0; e < kExperts; ++e)
        weights[static_cast<std::size_t>(i * kScoreRow + e)] = draw_normal(engine);
    }
  }
  RouterContext<double> context() const { return {.x = x.data(), .rows = kRows, .stride = kRow}; }
  double loss() const {
    std::vector<double> scores(weights.size());
    router->forward(context(), parameters.data(), scores.data());
    double sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) sum += weights[i] * scores[i];
    return sum;
  }
  double central_difference(double& value) const {
    const double kept = value;
    value = kept + kStep;
    const double above = loss();
    value = kept - kStep;
    const double below = loss();
    value = kept;
    return (above - below) / (2 * kStep);
  }
};

}  // namespace

TEST_CASE("example router: gradients equal central differences, in parameters and inputs") {
  Example example;
  std::vector<double> of_parameters(example.parameters.size(), 1), of_inputs(example.x.size(), 1);
  example.router->backward(
      example.context(), example.parameters.data(),
      {.scores = example.weights.data(), .parameters = of_parameters.data(), .inputs = of_inputs.data()});
  double largest = 0;
  for (std::size_t i = 0; i < of_parameters.size(); ++i) {
    CHECK(std::abs(of_parameters[i] - example.central_difference(example.parameters[i])) < kTolerance);
    largest = std::max(largest, std::abs(of_parameters[i]));
  }
  for (std::size_t i = 0; i < of_inputs.size(); ++i)
    CHECK(std::abs(of_inputs[i] - example.central_difference(example.x[i])) < kTolerance);
  CHECK(largest > 1e-3);  // gradients of zero would tell nothing
}

TEST_CASE("example router: a row at a centre prefers its expert; the array to save has no padding") {
  Example example;
  const std::vector<NamedArray<double>> arrays = example.router->arrays(example.parameters.data());
  REQUIRE(arrays.size() == 1);
  CHECK(arrays[0].values.size() == kExperts * kInputs);
  std::copy_n(arrays[0].values.begin() + 2 * kInputs, kInputs, example.x.begin());
  std::vector<double> scores(example.weights.size());
  example.router->forward(example.context(), example.parameters.data(), scores.data());
  CHECK(scores[2] == 0);
  for (const std::size_t other : {0, 1, 3}) CHECK(scores[other] < 0);
}

TEST_CASE("example router: the page shows the file as it is") {
  const std::filesystem::path docs = std::filesystem::path(MOELAB_TEST_DATA) / ".." / "docs";
  const std::string page = file_text(docs / "adding_a_router.md");
  const std::string code = "```cpp\n" + file_text(docs / "example" / "distance_router.cpp") + "```\n";
  CHECK((page.size() > code.size() && page.ends_with(code)));
}

}  // namespace moelab
