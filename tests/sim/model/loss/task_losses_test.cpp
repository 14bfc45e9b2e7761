#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/random.h"
#include "sim/model/loss/task_loss.h"

namespace moelab::task_losses_test {
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

/// Loss and gradient of rows of three outputs.
template <class T>
std::pair<double, std::vector<T>> cross_entropy(const std::vector<T>& values, const std::vector<T>& targets) {
  constexpr int kOutputs = 3;
  const int rows = static_cast<int>(values.size()) / kOutputs, stride = kernels::padded(kOutputs);
  std::vector<T> outputs(static_cast<std::size_t>(rows * stride), T(99)), gradient(outputs.size(), T(99));
  for (int i = 0; i < rows * kOutputs; ++i) {
    outputs[static_cast<std::size_t>(i / kOutputs * stride + i % kOutputs)] =
        values[static_cast<std::size_t>(i)];
  }
  const double loss =
      make_task_loss<T>("cross_entropy")
          ->value_and_gradient(outputs.data(), targets.data(), rows, kOutputs, gradient.data());
  std::vector<T> inner;
  for (int i = 0; i < rows * stride; ++i) {
    if (i % stride < kOutputs) inner.push_back(gradient[static_cast<std::size_t>(i)]);
    if (i % stride >= kOutputs) CHECK(gradient[static_cast<std::size_t>(i)] == 0);
  }
  return {loss, inner};
}

TEST_CASE_TEMPLATE("cross-entropy: a hand-made case, averaged over rows, padding zero", T, float, double) {
  // A handful of operations of order one.
  constexpr double kRounding = 8.0 * static_cast<double>(std::numeric_limits<T>::epsilon());
  // softmax(ln 1, ln 2, ln 5) = (1, 2, 5) / 8; the second row is uniform.
  const T two = std::log(T(2)), five = std::log(T(5));
  const auto [loss, gradient] = cross_entropy<T>({0, two, five, 3, 3, 3}, {0, 1, 0, 0, 0, 1});
  CHECK(std::abs(loss - (std::log(4.0) + std::log(3.0)) / 2) < kRounding);
  const double expected[] = {1 / 16.0, -3 / 8.0, 5 / 16.0, 1 / 6.0, 1 / 6.0, -1 / 3.0};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(std::abs(static_cast<double>(gradient[i]) - expected[i]) < kRounding);
  }
}

TEST_CASE_TEMPLATE("cross-entropy is finite for all finite outputs", T, float, double) {
  const auto [wrong, push] = cross_entropy<T>({T(-1e4), 0, T(1e4)}, {1, 0, 0});
  CHECK(wrong == 2e4);
  CHECK(push == std::vector<T>{-1, 0, 1});
  const auto [right, rest] = cross_entropy<T>({T(-1e4), 0, T(1e4)}, {0, 0, 1});
  CHECK(right == 0);
  CHECK(rest == std::vector<T>{0, 0, 0});
}

TEST_CASE("gradients of every task loss agree with central differences, and the padding is zero") {
  // Truncation leaves step² f‴/6 ≈ 1e-12 in a difference, rounding ε L / step ≈ 2e-10 L, L of order ten here.
  constexpr double kStep = 1e-6, kLargestError = 1e-8;
  constexpr int kRows = 4, kOutputs = 3;
  const int stride = kernels::padded(kOutputs);
  for (const TaskLossKind& kind : task_loss_kinds()) {
    if (!kind.make) continue;  // of ids alone, see transformer_test.cpp
    CAPTURE(kind.name);
    const std::unique_ptr<TaskLoss<double>> loss = kind.make.in_double();
    Engine engine(1);
    std::vector<double> outputs(static_cast<std::size_t>(kRows * stride), 99.0),
        gradient(outputs.size(), 99.0);
    std::vector<double> targets;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kOutputs; ++j) {
        outputs[static_cast<std::size_t>(i * stride + j)] = draw_normal(engine);
        targets.push_back(kind.needs_classes ? double(j == i % kOutputs) : draw_normal(engine));
      }
    }
    std::vector<double> unused(outputs.size());
    const auto value = [&] {
      return loss->value_and_gradient(outputs.data(), targets.data(), kRows, kOutputs, unused.data());
    };
    CHECK(loss->value_and_gradient(outputs.data(), targets.data(), kRows, kOutputs, gradient.data()) ==
          value());
    for (std::size_t at = 0; at < outputs.size(); ++at) {
      if (at % static_cast<std::size_t>(stride) >= kOutputs) {
        CHECK(gradient[at] == 0);
        continue;
      }
      const double kept = outputs[at];
      outputs[at] = kept + kStep;
      const double above = value();
      outputs[at] = kept - kStep;
      const double below = value();
      outputs[at] = kept;
      CHECK(std::abs(gradient[at] - (above - below) / (2 * kStep)) < kLargestError);
    }
  }
}

TEST_CASE("an unknown loss is refused with the nearest name") {
  CHECK_THROWS_WITH_AS(make_task_loss<double>("msee"), doctest::Contains("did you mean 'mse'"),
                       InvalidOption);
}

}  // namespace
}  // namespace moelab::task_losses_test
