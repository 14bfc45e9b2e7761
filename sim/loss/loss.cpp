#include "sim/loss/loss.h"

#include <algorithm>
#include <cmath>

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

/// ℓ = (Σ_j y_j) log Σ_j exp f_j − y^T f, ∂ℓ/∂f = (Σ_j y_j) softmax(f) − y.
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

}  // namespace

const std::vector<Kind>& task_loss_kinds() {
  static const std::vector<Kind> kinds = {
      {"mse", "‖f − y‖², averaged over rows in training and over rows and outputs where it is reported", {}},
      {"cross_entropy",
       "−Σ_j y_j log softmax(f)_j, averaged over rows, nats; for targets that are indicators of classes",
       {}},
  };
  return kinds;
}

std::vector<std::string> task_loss_names() {
  std::vector<std::string> names;
  for (const Kind& kind : task_loss_kinds()) names.push_back(kind.name);
  return names;
}

template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const std::string& name) {
  if (name == "mse") return std::make_unique<MeanSquaredError<Real>>();
  if (name == "cross_entropy") return std::make_unique<CrossEntropy<Real>>();
  throw UserError("loss.task", unknown_name("loss", name, task_loss_names()));
}

template std::unique_ptr<TaskLoss<float>> make_task_loss(const std::string&);
template std::unique_ptr<TaskLoss<double>> make_task_loss(const std::string&);

}  // namespace moelab
