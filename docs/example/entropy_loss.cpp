#include <cmath>

#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

/// (1/n) Σ_i H(r_i), H(r) = −Σ_e r_e ln r_e in nats.
template <class Real>
double value(const RoutedBatch<Real>& batch, AuxiliaryScratch&) {
  const Routing<Real>& routing = *batch.routing;
  double sum = 0;
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const r = batch.probabilities + entries(row, routing.stride);
    for (int e = 0; e < routing.experts; ++e) {
      if (r[e] > 0) sum -= static_cast<double>(r[e]) * std::log(static_cast<double>(r[e]));
    }
  }
  return sum / routing.rows;
}

/// ∂/∂r_ie = −(1 + ln r_ie) / n.
template <class Real>
void add(const RoutedBatch<Real>& batch, double coefficient, const AuxiliaryGradients<Real>& gradients,
         AuxiliaryScratch&) {
  const Routing<Real>& routing = *batch.routing;
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const r = batch.probabilities + entries(row, routing.stride);
    Real* const gradient = gradients.probabilities + entries(row, routing.stride);
    for (int e = 0; e < routing.experts; ++e) {
      if (r[e] <= 0) continue;
      gradient[e] -=
          static_cast<Real>(coefficient * (1 + std::log(static_cast<double>(r[e]))) / routing.rows);
    }
  }
}

}  // namespace

AuxiliaryLossKind entropy_loss() {
  return {"entropy",
          "mean over rows of H(r), −Σ_e r_e ln r_e",
          AuxiliaryPath::probabilities,
          {value<float>, value<double>},
          {add<float>, add<double>}};
}

}  // namespace moelab
