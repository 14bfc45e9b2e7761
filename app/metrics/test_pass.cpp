#include "app/metrics/test_pass.h"

#include "app/metrics/finite.h"

namespace moelab {

template <class Real>
const EvaluatedSamples<Real>& TestPass<Real>::evaluated(bool with_routing) {
  if (!evaluated_ || (with_routing && evaluated_->layers.empty())) {
    const double* const ids = data_.has_ids() ? data_.test().y.data() : nullptr;
    evaluated_ =
        evaluate(moment_.model, data_.test_inputs(), ids, data_.samples(), moment_.workspace, with_routing);
  }
  return *evaluated_;
}

template <class Real>
const RoutedRows& TestPass<Real>::routed(int layer) {
  const RoutedRows& routed = evaluated(true).layers.at(static_cast<std::size_t>(layer));
  check_finite<double>(routed.probabilities, "probabilities on the test data");
  return routed;
}

template <class Real>
Matrix TestPass<Real>::outputs() {
  const Matrix& targets = data_.test().y;
  const std::vector<Real>& outputs = evaluated().outputs;
  check_finite<Real>(outputs, "outputs on the test data");
  return widen(outputs, targets.rows(), targets.cols());
}

template <class Real>
const std::vector<double>& TestPass<Real>::token_losses() {
  check_finite<double>(evaluated().token_losses, "losses");
  return evaluated().token_losses;
}

template <class Real>
double TestPass<Real>::loss() {
  return data_.has_ids() ? mean_loss(token_losses()) : data_.task_loss(outputs(), data_.test().y);
}

template class TestPass<float>;
template class TestPass<double>;

}  // namespace moelab
