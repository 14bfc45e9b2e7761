#include "sim/model/loss/auxiliary_terms.h"

namespace moelab {
namespace {

/// −(1/(nE)) Σ_ij (a_ij − ā_j)², and its gradient times `coefficient`, added where `gradient` is not null.
template <class Real>
double variance_term(const Real* values, const Routing<Real>& routing, double coefficient,
                     std::vector<double>& means, Real* gradient) {
  column_means(values, routing, means);
  const double scale = 1.0 / (static_cast<double>(routing.rows) * routing.experts);
  double total = 0;
  for (int row = 0; row < routing.rows; ++row) {
    for (int e = 0; e < routing.experts; ++e) {
      const std::size_t at = entries(row, routing.stride) + size(e);
      const double deviation = static_cast<double>(values[at]) - means[size(e)];
      total += deviation * deviation;
      if (gradient) gradient[at] += static_cast<Real>(-2 * coefficient * scale * deviation);
    }
  }
  return -scale * total;
}

/// Of the gates: 1/n of L_v of Guo et al. 2025.
template <class Real>
double gates_value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
  return variance_term<Real>(batch.routing->gates, *batch.routing, 0, scratch.means, nullptr);
}
template <class Real>
void add_gates(const RoutedBatch<Real>& batch, double coefficient, const AuxiliaryGradients<Real>& gradients,
               AuxiliaryScratch& scratch) {
  variance_term(batch.routing->gates, *batch.routing, coefficient, scratch.means, gradients.gates);
}

/// Of r.
template <class Real>
double probabilities_value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
  return variance_term<Real>(batch.probabilities, *batch.routing, 0, scratch.means, nullptr);
}
template <class Real>
void add_probabilities(const RoutedBatch<Real>& batch, double coefficient,
                       const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
  variance_term(batch.probabilities, *batch.routing, coefficient, scratch.means, gradients.probabilities);
}

}  // namespace

AuxiliaryLossKind variance_loss() {
  return {"variance",
          "−mean over experts of the variance of gates over rows (Guo et al. 2025, L_v / n)",
          AuxiliaryPath::gates,
          {gates_value<float>, gates_value<double>},
          {add_gates<float>, add_gates<double>}};
}
AuxiliaryLossKind variance_probabilities_loss() {
  return {"variance_probabilities",
          "the same of the full softmax r",
          AuxiliaryPath::probabilities,
          {probabilities_value<float>, probabilities_value<double>},
          {add_probabilities<float>, add_probabilities<double>}};
}

}  // namespace moelab
