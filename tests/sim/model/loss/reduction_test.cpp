/// The task loss as a sum and as a mean over outputs.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "sim/model/loss/auxiliary_loss.h"
#include "sim/model/loss/task_loss.h"
#include "sim/train/experiment.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::reduction_test {

TEST_CASE("the mean over outputs is the sum divided by their number, and so is its gradient") {
  constexpr int kRows = 3, kOutputs = 4;
  const int stride = kernels::padded(kOutputs);
  std::vector<double> outputs(entries(kRows, stride)), targets(entries(kRows, kOutputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = 0.3 * static_cast<double>(i) - 1;
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = 0.1 * static_cast<double>(i * i);
  LossOptions options;
  std::vector<double> of_sum(outputs.size()), of_mean(outputs.size());
  const double sum = make_task_loss<double>(options)->value_and_gradient(outputs.data(), targets.data(),
                                                                         kRows, kOutputs, of_sum.data());
  options.reduction = LossOptions::Reduction::mean;
  const double mean = make_task_loss<double>(options)->value_and_gradient(outputs.data(), targets.data(),
                                                                          kRows, kOutputs, of_mean.data());
  CHECK(mean == sum / kOutputs);
  CHECK(sum > 0);
  for (std::size_t i = 0; i < of_sum.size(); ++i) CHECK(of_mean[i] == of_sum[i] / kOutputs);
}

TEST_CASE("classes have no mean over outputs") {
  LossOptions options;
  options.task = "cross_entropy";
  CHECK_NOTHROW(make_task_loss<float>(options));
  options.reduction = LossOptions::Reduction::mean;
  CHECK_THROWS_WITH_AS(make_task_loss<float>(options), doctest::Contains("loss.reduction"), InvalidOption);
}

}  // namespace moelab::reduction_test
