#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/auxiliary_loss.h"
#include "sim/model/loss/task_loss.h"

namespace moelab {
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

}  // namespace moelab
