#include "sim/model/loss/task_loss.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/auxiliary_loss.h"

// To add a task loss, write a new file that defines <name>_task_loss() and add a line here.
// clang-format off
#define MOELAB_TASK_LOSSES(entry) \
  entry(mse_task_loss)            \
  entry(cross_entropy_task_loss)  \
  entry(masked_tokens_task_loss)  \
  entry(correlation_task_loss)    \
  entry(double_softmax_task_loss)
// clang-format on

namespace moelab {

MOELAB_TABLE(TaskLossAxis, MOELAB_TASK_LOSSES)

std::vector<std::string> task_loss_names() {
  return names_of(task_loss_kinds());
}

const TaskLossKind& task_loss_kind(const std::string& name) {
  for (const TaskLossKind& kind : task_loss_kinds()) {
    if (kind.name == name) return kind;
  }
  throw InvalidOption("loss.task", unknown_name("loss", name, task_loss_names()));
}

namespace {

/// A loss divided by the number of outputs.
template <class Real>
class MeanOverOutputs final : public TaskLoss<Real> {
 public:
  explicit MeanOverOutputs(std::unique_ptr<TaskLoss<Real>> sum) : sum_(std::move(sum)) {}

  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const double sum = sum_->value_and_gradient(outputs, targets, rows, output_dim, output_gradient);
    const std::size_t entries_of_gradient = entries(rows, kernels::padded(output_dim));
    const Real factor = Real(1) / static_cast<Real>(output_dim);
    for (std::size_t i = 0; i < entries_of_gradient; ++i) output_gradient[i] *= factor;
    return sum / output_dim;
  }

 private:
  std::unique_ptr<TaskLoss<Real>> sum_;
};

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

/// Cross-entropy with class probabilities: ℓ = (Σ_j y_j) log Σ_j exp f_j − y^T f, ∂ℓ/∂f = (Σ_j y_j)
/// softmax(f) − y. It uses the log-sum-exp of f, so it is finite for all finite f.
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

/// The cross-entropy of p = softmax(f) in place of f: ∂ℓ/∂f = p ∘ (g − p·g), with g = ∂ℓ/∂p.
template <class Real>
class CrossEntropyOfSoftmax final : public TaskLoss<Real> {
 public:
  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    kernels::softmax_rows(outputs, output_gradient, rows, output_dim, stride);
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      const Real* const y = targets + entries(row, output_dim);
      Real* const p = output_gradient + entries(row, stride);  // becomes ∂L/∂f
      Real sum = 0, mass = 0, product = 0, mean = 0;
      for (int j = 0; j < output_dim; ++j) {
        sum += std::exp(p[j]);
        mass += y[j];
        product += y[j] * p[j];
      }
      const auto slope = [&](int j) {
        return (mass * std::exp(p[j]) / sum - y[j]) / static_cast<Real>(rows);
      };
      for (int j = 0; j < output_dim; ++j) mean += p[j] * slope(j);
      for (int j = 0; j < output_dim; ++j) p[j] *= slope(j) - mean;
      total += static_cast<double>(mass * std::log(sum) - product);
    }
    return total / rows;
  }
};

/// Cross-entropy with ids: ℓ = −log softmax(f)_y of the id y, ∂ℓ/∂f = softmax(f) − e_y, without an indicator
/// of V entries. The mean covers rows with a target, y ≥ 0; it is 0 if there are none.
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
      // The largest probability is never 0; the probability of y may be.
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

template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const LossOptions& options, bool of_ids) {
  const TaskLossKind& kind = task_loss_kind(options.task);
  if (of_ids && !kind.make_of_ids) {
    throw InvalidOption("loss.task", "got \"" + options.task + "\", but targets are ids of tokens; needs \"" +
                                         "cross_entropy\" or \"masked_tokens\"");
  }
  if (!of_ids && !kind.make)
    throw InvalidOption("loss.task", "got \"" + options.task + "\", but targets are no ids of tokens");
  std::unique_ptr<TaskLoss<Real>> sum = (of_ids ? kind.make_of_ids : kind.make).template of<Real>()();
  if (options.reduction == LossOptions::Reduction::sum) return sum;
  if (kind.needs_classes) {
    throw InvalidOption("loss.reduction", "got \"mean\", but the classes of loss.task \"" + options.task +
                                              "\" are one output; needs \"sum\"");
  }
  return std::make_unique<MeanOverOutputs<Real>>(std::move(sum));
}

template std::unique_ptr<TaskLoss<float>> make_task_loss(const LossOptions&, bool);
template std::unique_ptr<TaskLoss<double>> make_task_loss(const LossOptions&, bool);

TaskLossKind mse_task_loss() {
  return task_loss<MeanSquaredError>(
      "mse", "‖f − y‖², averaged over rows in training and over rows and outputs where it is reported");
}

TaskLossKind cross_entropy_task_loss() {
  TaskLossKind kind = task_loss<CrossEntropy>("cross_entropy",
                                              "−Σ_j y_j log softmax(f)_j, averaged over rows, nats; for "
                                              "targets that are indicators of classes, or ids of tokens");
  kind.needs_classes = true;
  kind.make_of_ids = task_loss_maker<CrossEntropyOfIds>();
  return kind;
}

TaskLossKind double_softmax_task_loss() {
  TaskLossKind kind = task_loss<CrossEntropyOfSoftmax>("double_softmax",
                                                       "−Σ_j y_j log softmax(softmax(f))_j, averaged over "
                                                       "rows, nats; at least ln(1 + (C − 1)/e) for C classes "
                                                       "(the code of Chen et al. 2022)");
  kind.needs_classes = true;
  kind.of_softmax = true;
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
