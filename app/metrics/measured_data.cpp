#include "app/metrics/measured_data.h"

namespace moelab {
namespace {

template <class Real>
std::vector<Real> cast(const Matrix& values) {
  std::vector<Real> result(static_cast<std::size_t>(values.size()));
  Eigen::Map<MatrixOf<Real>>(result.data(), values.rows(), values.cols()) = values.cast<Real>();
  return result;
}

template <class Real>
Matrix outputs_on(const Moment<Real>& moment, const Gating<Real>& gating, const std::vector<Real>& inputs,
                  const Matrix& targets) {
  std::vector<Real> outputs(static_cast<std::size_t>(targets.size()));
  predict(moment.model, gating, inputs.data(), static_cast<int>(targets.rows()), moment.workspace,
          outputs.data());
  return widen(outputs, targets.rows(), targets.cols());
}

}  // namespace

template <class Real>
MeasuredData<Real>::MeasuredData(const Layout& layout, const LossOptions& loss, const Dataset& train,
                                 const Dataset& test)
    : layout_(layout),
      train_(train),
      test_(test),
      clusters_(cluster_labels(layout, test.cluster)),
      cross_entropy_(loss.task == "cross_entropy"),
      train_inputs_(cast<Real>(train.x)),
      test_inputs_(cast<Real>(test.x)) {}

template <class Real>
Matrix MeasuredData<Real>::train_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const {
  return outputs_on(moment, gating, train_inputs_, train_.y);
}

template <class Real>
Matrix MeasuredData<Real>::test_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const {
  return outputs_on(moment, gating, test_inputs_, test_.y);
}

template <class Real>
Matrix MeasuredData<Real>::test_probabilities(const Moment<Real>& moment, int layer,
                                              std::span<const int> permutation) const {
  const int experts = moment.model.network->experts();
  std::vector<Real> probabilities(static_cast<std::size_t>(rows()) * static_cast<std::size_t>(experts));
  route(moment.model, layer, test_inputs_.data(), samples(), moment.workspace, probabilities.data(),
        permutation);
  return widen(probabilities, rows(), experts);
}

template class MeasuredData<float>;
template class MeasuredData<double>;

}  // namespace moelab
