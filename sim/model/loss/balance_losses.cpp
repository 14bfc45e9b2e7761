/// Losses on the balance of loads: Σ_j weight_j P_j, with weights that grow with the number of rows of expert
/// j.

#include <cmath>
#include <numbers>
#include <numeric>

#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

/// Makes a loss from the function that writes its weights (E): write(batch, weights).
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
};

/// Weights E n_j / Σn. The term is 1 if either factor is uniform, and 0 if no pair is active.
struct ShareOfPairs {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    const double pairs = count_active(*batch.routing, weights);
    if (pairs == 0) return;
    const double experts = batch.routing->experts;
    for (double& weight : weights) weight = experts * weight / pairs;
  }
};

/// Weights n_j. The term is Σ_j (n_j / n) Σ_i r_ij: n·K/E times `aux`.
struct ActiveRows {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    count_active(*batch.routing, weights);
  }
};

/// Weights c_j / (n E).
struct FirstChoicesOverExperts {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    count_first_choices(batch, weights);
    const double experts = batch.routing->experts;
    for (double& weight : weights) weight = weight / batch.routing->rows / experts;
  }
};

/// Weights E c_j / n.
struct FirstChoicesTimesExperts {
  template <class Real>
  static void write(const RoutedBatch<Real>& batch, std::vector<double>& weights) {
    count_first_choices(batch, weights);
    const double experts = batch.routing->experts;
    for (double& weight : weights) weight = experts * weight / batch.routing->rows;
  }
};

// Squared coefficients of variation over experts: CV² = var(I) / (mean(I)² + 1e-10) with the population
// variance (Shazeer et al. 2017, Eq. 7; the constant 1e-10 is from public code).

constexpr double kImportanceGuard = 1e-10;

/// CV² of the values (E). slopes (E) ← ∂CV²/∂values.
double squared_variation(const std::vector<double>& values, std::vector<double>& slopes) {
  const double count = static_cast<double>(values.size());
  double mean = 0, variance = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  const double square = mean * mean + kImportanceGuard;
  slopes.resize(values.size());
  for (std::size_t e = 0; e < values.size(); ++e) {
    slopes[e] = 2 * ((values[e] - mean) - variance * mean / square) / (count * square);
  }
  return variance / square;
}

/// CV² of the mean gates (1/n) Σ_i g_ie. A factor on all values changes CV² only through the constant.
struct Importance {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    column_means(batch.routing->gates, *batch.routing, scratch.means);
    return squared_variation(scratch.means, scratch.weights);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    column_means(routing.gates, routing, scratch.means);
    squared_variation(scratch.means, scratch.weights);
    for_each_pair(routing, [&](int row, int e) {
      gradients.gates[entries(row, routing.stride) + size(e)] +=
          static_cast<Real>(coefficient * scratch.weights[size(e)] / routing.rows);
    });
  }
};

/// CV² of the mean probabilities P_e: E Σ_e P_e² − 1, up to the constant.
struct ImportanceOfProbabilities {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    column_means(batch.probabilities, *batch.routing, scratch.means);
    return squared_variation(scratch.means, scratch.weights);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    column_means(batch.probabilities, *batch.routing, scratch.means);
    squared_variation(scratch.means, scratch.weights);
    add_balance(batch, scratch.weights, coefficient, gradients.probabilities);
  }
};

/// CV² of the experts' loads, mean_i Φ((γ_ie − θ_ie) / s_ie) (Shazeer et al. 2017, Eqs. 8–10).
///
/// The load is the probability that an expert is among the K of a row if only its own noise is drawn anew.
/// θ_ie is the K-th largest of the other experts' noisy scores h. The gradient goes through γ, s and θ.
/// Measuring draws no noise: there h = γ. Without learned noise, and if every expert is selected, the loads
/// are the numbers of rows and have no gradient.
struct Load {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    write_loads(batch, scratch);
    return squared_variation(scratch.means, scratch.weights);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    if (!is_noisy(batch) || !gradients.spreads) return;
    write_loads(batch, scratch);
    squared_variation(scratch.means, scratch.weights);
    const NoisyScores<Real>& noise = *batch.noise;
    for_each_chance(
        batch, scratch, [&](std::size_t row, std::size_t e, std::size_t threshold, double argument) {
          constexpr double kRootTwoPi = 2.5066282746310002;
          const double spread = static_cast<double>(noise.spreads[row + e]);
          const double density = std::exp(-argument * argument / 2) / kRootTwoPi;
          const double slope = coefficient * scratch.weights[e] / batch.routing->rows * density / spread;
          // θ = γ + s ε of the expert at the threshold.
          const double draw = (static_cast<double>(noise.noisy[row + threshold]) -
                               static_cast<double>(batch.scores[row + threshold])) /
                              static_cast<double>(noise.spreads[row + threshold]);
          gradients.scores[row + e] += static_cast<Real>(slope);
          gradients.scores[row + threshold] -= static_cast<Real>(slope);
          gradients.spreads[row + e] -= static_cast<Real>(slope * argument);
          gradients.spreads[row + threshold] -= static_cast<Real>(slope * draw);
        });
  }

 private:
  template <class Real>
  static bool is_noisy(const RoutedBatch<Real>& batch) {
    return batch.noise && batch.noise->k < batch.routing->experts;
  }
  template <class Real>
  static void write_loads(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    if (!is_noisy(batch)) {
      count_active(routing, scratch.means);
      for (double& load : scratch.means) load /= routing.rows;
      return;
    }
    scratch.means.assign(size(routing.experts), 0.0);
    for_each_chance(batch, scratch, [&](std::size_t, std::size_t e, std::size_t, double argument) {
      scratch.means[e] += std::erfc(-argument / std::numbers::sqrt2) / 2 / routing.rows;
    });
  }
  /// Calls visit(begin of the row, expert, expert at its threshold, (γ − θ) / s).
  template <class Real, class Visit>
  static void for_each_chance(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch, const Visit& visit) {
    const Routing<Real>& routing = *batch.routing;
    const NoisyScores<Real>& noise = *batch.noise;
    const std::size_t k = size(noise.k);
    for (int row = 0; row < routing.rows; ++row) {
      const std::size_t at = entries(row, routing.stride);
      const Real* const h = noise.noisy + at;
      // The K + 1 largest in order; ties go to the lower index.
      std::vector<int>& order = scratch.active;
      order.resize(size(routing.experts));
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + noise.k + 1, order.end(),
                        [&](int a, int b) { return h[a] != h[b] ? h[a] > h[b] : a < b; });
      for (std::size_t place = 0; place < order.size(); ++place) {
        const std::size_t e = size(order[place]);
        const std::size_t threshold = size(order[place < k ? k : k - 1]);
        const double above = static_cast<double>(batch.scores[at + e]) - static_cast<double>(h[threshold]);
        visit(at, e, threshold, above / static_cast<double>(noise.spreads[at + e]));
      }
    }
  }
};

}  // namespace

AuxiliaryLossKind aux_loss() {
  return auxiliary_loss<Balance<ShareOfPairs>>(
      "aux", "balance, E Σ_j f_j P_j: f_j the share of active pairs, P_j the mean probability");
}
AuxiliaryLossKind aux_unnormalised_loss() {
  return auxiliary_loss<Balance<ActiveRows>>(
      "aux_unnormalised", "balance as printed, Σ_j f_j p_j: sums over the batch (Guo et al. 2025, Eq. 2)");
}
AuxiliaryLossKind gshard_loss() {
  return auxiliary_loss<Balance<FirstChoicesOverExperts>>(
      "gshard", "balance, (1/E) Σ_j f_j P_j with first choices f_j (GShard)");
}
AuxiliaryLossKind switch_loss() {
  return auxiliary_loss<Balance<FirstChoicesTimesExperts>>(
      "switch", "balance, E Σ_j f_j P_j with first choices f_j (Switch Transformer)");
}

AuxiliaryLossKind importance_loss() {
  return auxiliary_loss<Importance>(
      "importance", "CV² of Σ_i gate_ie over experts, variance over squared mean (Shazeer et al. 2017)",
      AuxiliaryPath::gates);
}
AuxiliaryLossKind importance_probabilities_loss() {
  return auxiliary_loss<ImportanceOfProbabilities>("importance_probabilities",
                                                   "CV² of Σ_i r_ie over experts, E Σ_j P_j² − 1 (V-MoE)");
}
AuxiliaryLossKind load_loss() {
  AuxiliaryLossKind kind =
      auxiliary_loss<Load>("load",
                           "CV² of experts' mean chances under new noise (Shazeer et al. 2017); needs "
                           "noisy_topk with learned noise, else CV² of rows, no gradient",
                           AuxiliaryPath::scores);
  kind.needs_noise = true;
  return kind;
}

}  // namespace moelab
