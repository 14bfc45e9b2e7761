#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/task_loss.h"

namespace moelab {
namespace {

/// ℓ = (Σ_j y_j) log Σ_j exp f_j − y^T f, ∂ℓ/∂f = (Σ_j y_j) softmax(f) − y: from the log-sum-exp of f, finite
/// for all finite f.
template <class Real>
class CrossEntropy final : public TaskLoss<Real> {
 public:
  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      const Real* f = outputs + static_cast<std::ptrdiff_t>(row) * stride;
      const Real* y = targets + static_cast<std::ptrdiff_t>(row) * output_dim;
      Real* gradient = output_gradient + static_cast<std::ptrdiff_t>(row) * stride;
      const Real peak = *std::max_element(f, f + output_dim);
      Real sum = 0, mass = 0, product = 0;
      for (int j = 0; j < output_dim; ++j) {
        gradient[j] = std::exp(f[j] - peak);
        sum += gradient[j];
        mass += y[j];
        product += y[j] * (f[j] - peak);
      }
      for (int j = 0; j < output_dim; ++j) {
        gradient[j] = (mass * gradient[j] / sum - y[j]) / static_cast<Real>(rows);
      }
      for (int j = output_dim; j < stride; ++j) gradient[j] = 0;
      total += static_cast<double>(mass * std::log(sum) - product);
    }
    return total / rows;
  }
};

/// ℓ = −log softmax(f)_y of the id y, ∂ℓ/∂f = softmax(f) − e_y: the same without an indicator of V entries.
/// The mean is that of rows with a target, y ≥ 0; 0 where there are none.
template <class Real>
class CrossEntropyOfIds final : public TaskLoss<Real> {
 public:
  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    kernels::softmax_rows(outputs, output_gradient, rows, output_dim, stride);
    const std::ptrdiff_t asked = std::count_if(targets, targets + rows, [](Real y) { return y >= 0; });
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * stride;
      if (targets[row] < 0) {
        std::fill_n(output_gradient + at, stride, Real(0));
        continue;
      }
      const Real* const f = outputs + at;
      Real* const gradient = output_gradient + at;
      const std::ptrdiff_t id = static_cast<std::ptrdiff_t>(targets[row]);
      // The largest probability, unlike that of y, is never 0.
      int largest = 0;
      kernels::find_largest(f, output_dim, 1, &largest);
      total += static_cast<double>(f[largest] - f[id]) - std::log(static_cast<double>(gradient[largest]));
      gradient[id] -= Real(1);
      kernels::scale_into(Real(1) / static_cast<Real>(asked), gradient, gradient, stride);
    }
    return asked > 0 ? total / static_cast<double>(asked) : 0;
  }
};

}  // namespace

TaskLossKind cross_entropy_task_loss() {
  TaskLossKind kind = task_loss<CrossEntropy>("cross_entropy",
                                              "−Σ_j y_j log softmax(f)_j, averaged over rows, nats; for "
                                              "targets that are indicators of classes, or ids of "
                                              "tokens");
  kind.needs_classes = true;
  kind.make_of_ids = task_loss_maker<CrossEntropyOfIds>();
  return kind;
}

TaskLossKind masked_tokens_task_loss() {
  TaskLossKind kind{"masked_tokens",
                    "−log softmax(f)_y of the ids y that stood where inputs are masked, averaged over masked "
                    "tokens, nats; for transformers with causal false (Devlin et al. 2019)"};
  kind.needs_classes = true;
  kind.make_of_ids = task_loss_maker<CrossEntropyOfIds>();
  kind.masks_tokens = true;
  return kind;
}

}  // namespace moelab
