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

/// −(1/n) Σ_i Var_j(r_ij) with E − 1 in the denominator, and its gradient as above.
template <class Real>
double row_variance_term(const RoutedBatch<Real>& batch, double coefficient, Real* gradient) {
  const Routing<Real>& routing = *batch.routing;
  if (routing.experts < 2 || routing.rows == 0) return 0;
  const double scale = 1.0 / (static_cast<double>(routing.rows) * (routing.experts - 1));
  double total = 0;
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const r = batch.probabilities + entries(row, routing.stride);
    double mean = 0;
    for (int e = 0; e < routing.experts; ++e) mean += static_cast<double>(r[e]) / routing.experts;
    for (int e = 0; e < routing.experts; ++e) {
      const double deviation = static_cast<double>(r[e]) - mean;
      total += deviation * deviation;
      if (gradient) {
        gradient[entries(row, routing.stride) + size(e)] +=
            static_cast<Real>(-2 * coefficient * scale * deviation);
      }
    }
  }
  return -scale * total;
}
template <class Real>
double rows_value(const RoutedBatch<Real>& batch, AuxiliaryScratch& /*scratch*/) {
  return row_variance_term<Real>(batch, 0, nullptr);
}
template <class Real>
void add_rows(const RoutedBatch<Real>& batch, double coefficient, const AuxiliaryGradients<Real>& gradients,
              AuxiliaryScratch& /*scratch*/) {
  row_variance_term(batch, coefficient, gradients.probabilities);
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

AuxiliaryLossKind variance_rows_loss() {
  return {"variance_rows",
          "−mean over rows of the variance of r over experts, ddof 1 (released code of Guo et al. 2025)",
          AuxiliaryPath::probabilities,
          {rows_value<float>, rows_value<double>},
          {add_rows<float>, add_rows<double>}};
}

}  // namespace moelab
