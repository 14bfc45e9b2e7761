/// Squared coefficients of variation of what experts weigh in a batch: var(I) / (mean(I)² + 1e-10),
/// population variance over experts (Shazeer et al. 2017, Eq. 7; the guard is that of public code).

#include "sim/model/loss/auxiliary_terms.h"

namespace moelab {
namespace {

constexpr double kImportanceGuard = 1e-10;

/// CV² of the values, (E).
double squared_variation(const std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  double mean = 0, variance = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  return variance / (mean * mean + kImportanceGuard);
}

/// slopes (E) ← ∂CV²/∂values.
void squared_variation_slopes(const std::vector<double>& values, std::vector<double>& slopes) {
  const double count = static_cast<double>(values.size());
  double mean = 0, variance = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  const double square = mean * mean + kImportanceGuard;
  slopes.resize(values.size());
  for (std::size_t e = 0; e < values.size(); ++e) {
    slopes[e] = 2 * ((values[e] - mean) - variance * mean / square) / (count * square);
  }
}

/// Of gates, (1/n) Σ_i g_ie; a step in n leaves CV² alone but for the guard.
struct Importance {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    column_means(batch.routing->gates, *batch.routing, scratch.means);
    return squared_variation(scratch.means);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    column_means(routing.gates, routing, scratch.means);
    squared_variation_slopes(scratch.means, scratch.weights);
    for_each_pair(routing, [&](int row, int e) {
      gradients.gates[entries(row, routing.stride) + size(e)] +=
          static_cast<Real>(coefficient * scratch.weights[size(e)] / routing.rows);
    });
  }
};

/// Of probabilities, P_e: E Σ_e P_e² − 1 but for the guard.
struct ImportanceOfProbabilities {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    column_means(batch.probabilities, *batch.routing, scratch.means);
    return squared_variation(scratch.means);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    column_means(batch.probabilities, *batch.routing, scratch.means);
    squared_variation_slopes(scratch.means, scratch.weights);
    add_balance(batch, scratch.weights, coefficient, gradients.probabilities);
  }
};

template <class Term>
AuxiliaryLossKind importance_kind(std::string name, AuxiliaryPath path, std::string help) {
  return {std::move(name),
          std::move(help),
          path,
          {Term::template value<float>, Term::template value<double>},
          {Term::template add<float>, Term::template add<double>}};
}

}  // namespace

AuxiliaryLossKind importance_loss() {
  return importance_kind<Importance>(
      "importance", AuxiliaryPath::gates,
      "CV² of Σ_i gate_ie over experts, variance over squared mean (Shazeer et al. 2017)");
}
AuxiliaryLossKind importance_probabilities_loss() {
  return importance_kind<ImportanceOfProbabilities>("importance_probabilities", AuxiliaryPath::probabilities,
                                                    "the same of Σ_i r_ie (V-MoE), E Σ_j P_j² − 1");
}

}  // namespace moelab
