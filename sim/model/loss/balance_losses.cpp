/// Losses on the balance of loads: Σ_j weight_j P_j with weights that grow with the rows of expert j.

#include "sim/model/loss/auxiliary_terms.h"

namespace moelab {
namespace {

/// A loss from the function that writes its weights (E): write(batch, weights).
template <class Weights>
struct Balance {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    Weights::write(batch, scratch.weights);
    return balance_value(batch, scratch.weights, scratch);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    Weights::write(batch, scratch.weights);
    add_balance(batch, scratch.weights, coefficient, gradients.probabilities);
  }
  static AuxiliaryLossKind kind(std::string name, std::string help) {
    return {std::move(name),
            std::move(help),
            AuxiliaryPath::probabilities,
            {value<float>, value<double>},
            {add<float>, add<double>}};
  }
};

/// E n_j / Σn: the term is 1 when either factor is uniform, and 0 where no pair is active.
struct ShareOfPairs {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    const double pairs = count_active(*batch.routing, weights);
    if (pairs == 0) return;
    const double experts = batch.routing->experts;
    for (double& weight : weights) weight = experts * weight / pairs;
  }
};

/// n_j, so that the term is Σ_j (n_j / n) Σ_i r_ij: n·K/E times `aux`.
struct ActiveRows {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    count_active(*batch.routing, weights);
  }
};

/// c_j / (n E).
struct FirstChoicesOverExperts {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    count_first_choices(batch, weights);
    const double experts = batch.routing->experts;
    for (double& weight : weights) weight = weight / batch.routing->rows / experts;
  }
};

/// E c_j / n.
struct FirstChoicesTimesExperts {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    count_first_choices(batch, weights);
    const double experts = batch.routing->experts;
    for (double& weight : weights) weight = experts * weight / batch.routing->rows;
  }
};

}  // namespace

AuxiliaryLossKind aux_loss() {
  return Balance<ShareOfPairs>::kind(
      "aux", "balance, E Σ_j f_j P_j: f_j the share of active pairs, P_j the mean probability");
}
AuxiliaryLossKind aux_unnormalised_loss() {
  return Balance<ActiveRows>::kind(
      "aux_unnormalised", "balance as printed, Σ_j f_j p_j: sums over the batch (Guo et al. 2025, Eq. 2)");
}
AuxiliaryLossKind gshard_loss() {
  return Balance<FirstChoicesOverExperts>::kind("gshard",
                                                "balance, (1/E) Σ_j f_j P_j with first choices f_j (GShard)");
}
AuxiliaryLossKind switch_loss() {
  return Balance<FirstChoicesTimesExperts>::kind(
      "switch", "balance, E Σ_j f_j P_j with first choices f_j (Switch Transformer)");
}

}  // namespace moelab
