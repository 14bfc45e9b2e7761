#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/task_loss.h"

namespace moelab {
namespace {

template <class Real>
class MeanSquaredError final : public TaskLoss<Real> {
 public:
  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    const Real factor = Real(2) / static_cast<Real>(rows);
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      const Real* f = outputs + static_cast<std::ptrdiff_t>(row) * stride;
      const Real* y = targets + static_cast<std::ptrdiff_t>(row) * output_dim;
      Real* gradient = output_gradient + static_cast<std::ptrdiff_t>(row) * stride;
      Real sum = 0;
      for (int j = 0; j < output_dim; ++j) {
        const Real residual = f[j] - y[j];
        sum += residual * residual;
        gradient[j] = factor * residual;
      }
      for (int j = output_dim; j < stride; ++j) gradient[j] = 0;
      total += static_cast<double>(sum);
    }
    return total / rows;
  }
};

}  // namespace

TaskLossKind mse_task_loss() {
  return task_loss<MeanSquaredError>(
      "mse", "‖f − y‖², averaged over rows in training and over rows and outputs where it is reported");
}

}  // namespace moelab
