/// Losses of continual learning on the routing of a sequence of tasks (Li et al. 2025).

#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

/// Σ_e r_e ‖Δw_e‖, averaged over rows: Δw_e is what the step has moved expert e by.
struct Locality {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    return batch.moves ? balance_value(batch, moves_of(batch, scratch), scratch) : 0;
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    if (batch.moves) add_balance(batch, moves_of(batch, scratch), coefficient, gradients.probabilities);
  }

 private:
  template <class Real>
  static const std::vector<double>& moves_of(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    scratch.weights.assign(batch.moves, batch.moves + batch.routing->experts);
    return scratch.weights;
  }
};

/// E Σ_e f_e P_e over the sequences so far. P_e = (1/t) Σ_τ r_e 1{sequence τ went to e}. Only the present
/// sequences have a gradient and count in the value. `of_shares`: f_e is the share of the t sequences that
/// went to e; otherwise f_e = 1.
template <bool of_shares>
struct HistoryBalance {
  template <class Real>
  static double sum(const RoutedBatch<Real>& batch, double coefficient,
                    const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    std::vector<double>& counts = scratch.weights;
    counts.assign(size(routing.experts), 0.0);
    if (batch.dispatched) counts.assign(batch.dispatched, batch.dispatched + routing.experts);
    for (int row = 0; row < routing.rows; row += batch.tokens) {
      const int own = serving_expert(routing, row);
      if (own >= 0) ++counts[size(own)];
    }
    double sequences = 0;
    for (const double count : counts) sequences += count;
    if (sequences == 0) return 0;
    double value = 0;
    for (int row = 0; row < routing.rows; ++row) {
      const int own = serving_expert(routing, row);
      if (own < 0) continue;
      const double share = of_shares ? counts[size(own)] / sequences : 1;
      const double weight = routing.experts * share / (sequences * batch.tokens);
      const std::size_t place = entries(row, routing.stride) + size(own);
      value += weight * static_cast<double>(batch.probabilities[place]);
      if (gradients.probabilities) gradients.probabilities[place] += static_cast<Real>(coefficient * weight);
    }
    return value;
  }
};

}  // namespace

AuxiliaryLossKind locality_loss() {
  AuxiliaryLossKind kind = auxiliary_loss<Locality>(
      "locality",
      "locality, Σ_e r_e ‖Δw_e‖: Δw_e is what the step moves expert e by (Li et al. 2025, Eq. 6); needs "
      "train.optimizer minimum_norm");
  kind.needs_moves = true;
  return kind;
}
AuxiliaryLossKind history_loss() {
  return auxiliary_loss<ValueAndGradient<HistoryBalance<true>>>(
      "history",
      "E Σ_e f_e P_e over the sequences so far (Li et al. 2025, Eq. 7); with another gating than "
      "sequence_top1 over the batch");
}
AuxiliaryLossKind history_code_loss() {
  return auxiliary_loss<ValueAndGradient<HistoryBalance<false>>>(
      "history_code", "E Σ_e P_e over the sequences so far: history without f_e, as in the public code");
}

}  // namespace moelab
