#include "app/metrics/measured_data.h"

#include <algorithm>

#include "analysis/metrics/task.h"
#include "app/metrics/finite.h"

namespace moelab {
namespace {

template <class Real>
std::vector<Real> cast(const Matrix& values) {
  std::vector<Real> result(static_cast<std::size_t>(values.size()));
  Eigen::Map<MatrixOf<Real>>(result.data(), values.rows(), values.cols()) = values.cast<Real>();
  return result;
}

template <class Real>
std::vector<Real> outputs_on(const Moment<Real>& moment, const Gating<Real>& gating,
                             const Samples<Real>& inputs, const Matrix& targets) {
  std::vector<Real> outputs(static_cast<std::size_t>(targets.size()));
  predict(moment.model, gating, inputs, static_cast<int>(targets.rows()), moment.workspace, outputs.data());
  return outputs;
}

template <class Real>
Matrix finite_outputs_on(const Moment<Real>& moment, const Gating<Real>& gating, const Samples<Real>& inputs,
                         const Matrix& targets, const char* name) {
  const std::vector<Real> outputs = outputs_on(moment, gating, inputs, targets);
  check_finite<Real>(outputs, name);
  return widen(outputs, targets.rows(), targets.cols());
}

}  // namespace

int most_measured_train_samples(const DataOptions& data) {
  const GeneratorKind& generator = data.entry();
  if (!generator.token_ids) return kMeasuredTrainSamples;
  return std::max(1, kMeasuredTrainSamples / generator.tokens(data.options()));
}

double mean_loss(const std::vector<double>& token_losses) {
  return Eigen::Map<const Vector>(token_losses.data(), static_cast<Eigen::Index>(token_losses.size())).mean();
}

template <class Real>
MeasuredData<Real>::MeasuredData(const Layout& layout, const LossOptions& loss, const Dataset& train,
                                 const Dataset& test)
    : layout_(layout),
      train_(train),
      test_(test),
      clusters_(cluster_labels(layout, test.cluster)),
      cross_entropy_(task_loss_kind(loss.task).needs_classes),
      train_inputs_(cast<Real>(train.x)),
      test_inputs_(cast<Real>(test.x)) {}

template <class Real>
Matrix MeasuredData<Real>::train_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const {
  return finite_outputs_on(moment, gating, train_inputs(), train_.y, "outputs on the training data");
}

template <class Real>
Matrix MeasuredData<Real>::test_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const {
  return finite_outputs_on(moment, gating, test_inputs(), test_.y, "outputs on the test data");
}

template <class Real>
std::optional<double> MeasuredData<Real>::train_nmse(const Moment<Real>& moment,
                                                     const Gating<Real>& gating) const {
  const Matrix outputs =
      widen(outputs_on(moment, gating, train_inputs(), train_.y), train_.y.rows(), train_.y.cols());
  return normalised_mean_squared_error(target_rows(outputs), target_rows(train_.y));
}

template <class Real>
void MeasuredData<Real>::check_inputs() const {
  check_finite<Real>(train_inputs_, "inputs of the training data");
  check_finite<Real>(test_inputs_, "inputs of the test data");
}

template <class Real>
double MeasuredData<Real>::task_loss(const Matrix& outputs, const Matrix& targets) const {
  const MatrixView f = target_rows(outputs), y = target_rows(targets);
  const double mean = cross_entropy_ ? mean_cross_entropy(f, y) : mean_squared_error(f, y);
  check_finite<double>({&mean, 1}, "losses");
  return mean;
}

template <class Real>
double MeasuredData<Real>::mean_token_loss(const Moment<Real>& moment, const Gating<Real>& gating,
                                           const std::vector<Real>& inputs, const Dataset& data) const {
  const std::vector<double> losses =
      token_losses(moment.model, gating, samples_of(inputs, data), data.y.data(),
                   static_cast<int>(data.y.rows()), moment.workspace);
  check_finite<double>(losses, "losses");
  return mean_loss(losses);
}

template <class Real>
double MeasuredData<Real>::train_loss(const Moment<Real>& moment, const Gating<Real>& gating) const {
  if (has_ids()) return mean_token_loss(moment, gating, train_inputs_, train_);
  return task_loss(train_outputs(moment, gating), train_.y);
}

template <class Real>
double MeasuredData<Real>::test_loss(const Moment<Real>& moment, const Gating<Real>& gating) const {
  if (has_ids()) return mean_token_loss(moment, gating, test_inputs_, test_);
  return task_loss(test_outputs(moment, gating), test_.y);
}

template <class Real>
Matrix MeasuredData<Real>::test_probabilities(const Moment<Real>& moment, int layer,
                                              std::span<const int> permutation) const {
  const int experts = moment.model.network->experts();
  std::vector<Real> probabilities(static_cast<std::size_t>(rows()) * static_cast<std::size_t>(experts));
  route(moment.model, layer, test_inputs(), samples(), moment.workspace, probabilities.data(), permutation);
  if (permutation.empty()) check_finite<Real>(probabilities, "probabilities on the test data");
  return widen(probabilities, rows(), experts);
}

template class MeasuredData<float>;
template class MeasuredData<double>;

}  // namespace moelab
