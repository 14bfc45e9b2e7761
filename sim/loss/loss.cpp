#include "sim/loss/loss.h"

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

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

std::vector<std::string> task_loss_names() {
  return {"mse"};
}

template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const std::string& name) {
  if (name == "mse") return std::make_unique<MeanSquaredError<Real>>();
  throw UserError("loss.task", unknown_name("loss", name, task_loss_names()));
}

template std::unique_ptr<TaskLoss<float>> make_task_loss(const std::string&);
template std::unique_ptr<TaskLoss<double>> make_task_loss(const std::string&);

}  // namespace moelab
