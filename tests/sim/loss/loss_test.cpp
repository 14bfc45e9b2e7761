#include "sim/loss/loss.h"

#include <doctest/doctest.h>

#include <vector>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

TEST_CASE_TEMPLATE("mse sums over outputs, averages over rows, and leaves the padding zero", T, float,
                   double) {
  constexpr int kRows = 2, kOutputs = 3;
  const int stride = kernels::padded(kOutputs);
  std::vector<T> outputs(static_cast<std::size_t>(kRows * stride), T(99)), gradient(outputs.size(), T(99));
  const std::vector<T> targets = {0, 1, 2, -1, 0, 3};
  const std::vector<T> values = {1, 1, 0, -1, 2, 0};  // residuals 1 0 -2 | 0 2 -3
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kOutputs; ++j)
      outputs[static_cast<std::size_t>(i * stride + j)] = values[static_cast<std::size_t>(i * kOutputs + j)];
  }
  const std::unique_ptr<TaskLoss<T>> loss = make_task_loss<T>("mse");
  CHECK(loss->value_and_gradient(outputs.data(), targets.data(), kRows, kOutputs, gradient.data()) == 9.0);
  const std::vector<T> expected = {1, 0, -2, 0, 2, -3};  // 2 / n times the residual
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < stride; ++j) {
      const T value = j < kOutputs ? expected[static_cast<std::size_t>(i * kOutputs + j)] : T(0);
      CHECK(gradient[static_cast<std::size_t>(i * stride + j)] == value);
    }
  }
}

TEST_CASE("every named loss can be made, and an unknown one is refused with the nearest name") {
  for (const std::string& name : task_loss_names()) CHECK(make_task_loss<double>(name) != nullptr);
  CHECK_THROWS_WITH_AS(make_task_loss<double>("msee"), doctest::Contains("did you mean 'mse'"), UserError);
}

}  // namespace
}  // namespace moelab
