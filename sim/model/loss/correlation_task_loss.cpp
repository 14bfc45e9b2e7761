#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/task_loss.h"

namespace moelab {
namespace {

/// ℓ = −Σ_j y_j f_j, ∂ℓ/∂f = −y.
template <class Real>
class Correlation final : public TaskLoss<Real> {
 public:
  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    std::fill_n(output_gradient, entries(rows, stride), Real(0));
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      for (int j = 0; j < output_dim; ++j) {
        const std::size_t place = entries(row, stride) + size(j);
        const Real target = targets[entries(row, output_dim) + size(j)];
        output_gradient[place] = -target / static_cast<Real>(rows);
        total -= static_cast<double>(target * outputs[place]);
      }
    }
    return total / rows;
  }
};

}  // namespace

TaskLossKind correlation_task_loss() {
  return task_loss<Correlation>(
      "correlation",
      "−y·f, averaged over rows in training: the squared error without f² (Kawata et al. "
      "2025); where it is reported, the squared error");
}

}  // namespace moelab
