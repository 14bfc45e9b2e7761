/// Dropout of a residual connection.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/model/blocks/dense.h"
#include "sim/model/expert/expert.h"
#include "tests/sim/model/blocks/block_check.h"

namespace moelab::dropout_test {
namespace {

constexpr int kRows = 4000, kWidth = 3;
constexpr double kProbability = 0.3;

/// D, from x + D ∘ f(x) with f(x) = 2 and x = 1.
std::vector<double> kept(BlockRun& run) {
  std::vector<double> all = run.forward();
  for (double& value : all) value = (value - 1) / 2;
  return all;
}

}  // namespace

TEST_CASE(
    "dropout: entries are 0 with the probability given, the others are scaled up, in training steps alone") {
  const auto block =
      make_residual(make_dense<double>(ConstantExpertOptions{}, kWidth, kWidth), {kProbability, "drops", 4});
  BlockRun run(*block, kRows, kWidth);
  run.set_inputs(std::vector<double>(kRows * kWidth, 1.0));
  for (const std::size_t place :
       free_places(run.parameters.size(), [&](const double* buffer) { return block->arrays(buffer); }))
    run.parameters[place] = 2;
  CHECK(kept(run) == std::vector<double>(kRows * kWidth, 1.0));
  run.pass.training = true;
  block->begin_step(0, run.parameters.data(), run.state.data());
  const std::vector<double> first = kept(run);
  int dropped = 0;
  for (const double value : first) {
    if (value == 0)
      ++dropped;
    else
      REQUIRE(std::abs(value - 1 / (1 - kProbability)) < 1e-12);
  }
  constexpr double kAll = kRows * kWidth;
  CHECK(std::abs(dropped / kAll - kProbability) < 5 * std::sqrt(kProbability * (1 - kProbability) / kAll));
  CHECK(kept(run) == first);
  run.backward(std::vector<double>(kRows * kWidth, 1.0));
  // f is constant: what goes on to x is the connection's alone, and to f what was kept.
  CHECK(run.input_gradient[0] == 1);
  double sum = 0;
  for (std::size_t i = 0; i < first.size(); i += kWidth) sum += first[i];
  CHECK(std::abs(run.gradient[0] - sum) < 1e-9);
  block->begin_step(0, run.parameters.data(), run.state.data());
  CHECK(kept(run) != first);
  CHECK(block->state_arrays().at(0).name == "drops");
}

}  // namespace moelab::dropout_test
