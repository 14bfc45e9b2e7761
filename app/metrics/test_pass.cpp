#include "app/metrics/test_pass.h"

#include <utility>

#include "app/metrics/finite.h"

namespace moelab {

template <class Real>
const EvaluatedSamples<Real>& TestPass<Real>::evaluated(bool with_routing) {
  if (!evaluated_ || (with_routing && evaluated_->layers.empty())) {
    const double* const ids = data_.has_ids() ? data_.test().y.data() : nullptr;
    EvaluatedSamples<Real> made =
        evaluate(moment_.model, data_.test_inputs(), ids, data_.samples(), moment_.workspace, with_routing);
    // Once: every metric of a layer asks for its routing anew.
    for (const RoutedRows& routed : made.layers)
      check_finite<double>(routed.probabilities, "probabilities on the test data");
    evaluated_ = std::move(made);
  }
  return *evaluated_;
}

template <class Real>
const RoutedRows& TestPass<Real>::routed(int layer) {
  return evaluated(true).layers.at(static_cast<std::size_t>(layer));
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
