/// Losses on the entropy of the routing, in nats: H(r) = −Σ_e r_e ln r_e, P = (1/n) Σ_i r_i.

#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

double entropy_term(double share) {
  return share > 0 ? -share * std::log(share) : 0.0;
}

template <class Real>
double mean_row_entropy(const RoutedBatch<Real>& batch) {
  const Routing<Real>& routing = *batch.routing;
  double sum = 0;
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const r = batch.probabilities + entries(row, routing.stride);
    for (int e = 0; e < routing.experts; ++e) sum += entropy_term(static_cast<double>(r[e]));
  }
  return sum / routing.rows;
}

/// Adds `slope`(expert, r_ie) / n to ∂L/∂r_ie. Entries with r_ie = 0 are skipped: r ln r has no effect there,
/// because the probabilities sum to 1.
template <class Real, class Slope>
void add_entropy_slope(const RoutedBatch<Real>& batch, Real* gradient, const Slope& slope) {
  const Routing<Real>& routing = *batch.routing;
  for (int row = 0; row < routing.rows; ++row) {
    const std::size_t at = entries(row, routing.stride);
    for (int e = 0; e < routing.experts; ++e) {
      const double r = static_cast<double>(batch.probabilities[at + size(e)]);
      if (r > 0) gradient[at + size(e)] += static_cast<Real>(slope(size(e), r) / routing.rows);
    }
  }
}

/// ∂/∂r_ie = −(1 + ln r_ie) / n.
struct RoutingEntropy {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch&) {
    return mean_row_entropy(batch);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch&) {
    add_entropy_slope(batch, gradients.probabilities,
                      [&](std::size_t, double r) { return -coefficient * (1 + std::log(r)); });
  }
};

/// ∂/∂r_ie = (ln P_e − ln r_ie) / n.
struct MutualInformation {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    column_means(batch.probabilities, *batch.routing, scratch.means);
    double of_means = 0;
    for (const double mean : scratch.means) of_means += entropy_term(mean);
    return mean_row_entropy(batch) - of_means;
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    column_means(batch.probabilities, *batch.routing, scratch.means);
    add_entropy_slope(batch, gradients.probabilities, [&](std::size_t e, double r) {
      return coefficient * (std::log(scratch.means[e]) - std::log(r));
    });
  }
};

template <class Real>
double log_sum_exp(const RoutedBatch<Real>& batch, int row) {
  const Real* const scores = batch.scores + entries(row, batch.routing->stride);
  const int count = batch.routing->experts;
  const double largest = static_cast<double>(*std::max_element(scores, scores + count));
  double sum = 0;
  for (int e = 0; e < count; ++e) sum += std::exp(static_cast<double>(scores[e]) - largest);
  return largest + std::log(sum);
}

struct LogSumExp {
  /// (1/n) Σ_i (log Σ_j exp γ_ij)².
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch&) {
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
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch&) {
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
};

}  // namespace

AuxiliaryLossKind routing_entropy_loss() {
  return auxiliary_loss<RoutingEntropy>("routing_entropy",
                                        "mean entropy of r in nats: rows that decide for few experts");
}
AuxiliaryLossKind mutual_information_loss() {
  return auxiliary_loss<MutualInformation>("mutual_information",
                                           "minus the mutual information of row and expert in nats, mean "
                                           "H(r) − H(mean r): decided rows, even loads");
}

AuxiliaryLossKind z_loss() {
  return auxiliary_loss<LogSumExp>("z", "mean of logsumexp(γ)² (ST-MoE)", AuxiliaryPath::scores);
}

}  // namespace moelab
