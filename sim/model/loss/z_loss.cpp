#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/auxiliary_terms.h"

namespace moelab {
namespace {

template <class Real>
double log_sum_exp(const RoutedBatch<Real>& batch, int row) {
  const Real* const scores = batch.scores + entries(row, batch.routing->stride);
  const int count = batch.routing->experts;
  const double largest = static_cast<double>(*std::max_element(scores, scores + count));
  double sum = 0;
  for (int e = 0; e < count; ++e) sum += std::exp(static_cast<double>(scores[e]) - largest);
  return largest + std::log(sum);
}

/// (1/n) Σ_i (log Σ_j exp γ_ij)².
template <class Real>
double value(const RoutedBatch<Real>& batch, AuxiliaryScratch&) {
  const Routing<Real>& routing = *batch.routing;
  double value = 0;
  for (int row = 0; row < routing.rows; ++row) {
    const double lse = log_sum_exp(batch, row);
    value += lse * lse / routing.rows;
  }
  return value;
}

/// ∂/∂γ_ij = (2/n) lse_i softmax(γ_i)_j.
template <class Real>
void add(const RoutedBatch<Real>& batch, double coefficient, const AuxiliaryGradients<Real>& gradients,
         AuxiliaryScratch&) {
  const Routing<Real>& routing = *batch.routing;
  for (int row = 0; row < routing.rows; ++row) {
    const double lse = log_sum_exp(batch, row);
    const double slope = 2 * coefficient * lse / routing.rows;
    Real* const gradient = gradients.scores + entries(row, routing.stride);
    if (batch.is_softmax) {
      kernels::add_scaled(static_cast<Real>(slope), batch.probabilities + entries(row, routing.stride),
                          gradient, routing.stride);
      continue;
    }
    const Real* const scores = batch.scores + entries(row, routing.stride);
    for (int e = 0; e < routing.experts; ++e) {
      gradient[e] += static_cast<Real>(slope * std::exp(static_cast<double>(scores[e]) - lse));
    }
  }
}

}  // namespace

AuxiliaryLossKind z_loss() {
  return {"z",
          "mean of logsumexp(γ)² (ST-MoE)",
          AuxiliaryPath::scores,
          {value<float>, value<double>},
          {add<float>, add<double>}};
}

}  // namespace moelab
