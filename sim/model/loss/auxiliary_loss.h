#pragma once

/// The axis of auxiliary losses: losses on the routing itself, added to the task loss (Guo et al. 2025, and
/// the baselines it compares with).

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/model/gating/routing.h"

namespace moelab {

/// What the terms look at: the forward pass of one mixture on n rows. r = softmax(γ) (n, E), gates g, n_j the
/// rows that activate expert j, c_j those whose likeliest expert it is, P_j = (1/n) Σ_i r_ij, x̃_ij the output
/// of an active expert before its gate. Counts and selections are held fixed in the gradients.
template <class Real>
struct RoutedBatch {
  const Real* scores = nullptr;         ///< γ (n, routing.stride)
  const Real* probabilities = nullptr;  ///< r (n, routing.stride)
  const Routing<Real>* routing = nullptr;
  const Real* pair_outputs = nullptr;        ///< x̃ (n, E, output_stride), read at active pairs; or null
  int output_stride = 0;                     ///< padded(o), padding zero
  bool is_softmax = true;                    ///< r = softmax(γ)
  int tokens = 1;                            ///< s, rows of a sequence
  const NoisyScores<Real>* noise = nullptr;  ///< of a training step with learned noise; or null
};

/// Gradients that a term is added to; null where they are not wanted now.
template <class Real>
struct AuxiliaryGradients {
  Real* gates = nullptr;          ///< ∂L/∂g (n, stride), written at active pairs
  Real* probabilities = nullptr;  ///< ∂L/∂r (n, stride)
  Real* scores = nullptr;         ///< ∂L/∂γ (n, stride), what does not come through r
  Real* spreads = nullptr;        ///< beside it ∂L/∂s (n, stride) of learned noise; or null
  Real* pair_outputs = nullptr;   ///< ∂L/∂x̃ (n, E, output_stride), written at active pairs
};

/// Numbers and lists of one term at a time, so that steps do not allocate.
struct AuxiliaryScratch {
  std::vector<double> weights, means;  ///< (E)
  std::vector<int> active;             ///< experts of a row
};

/// Guards squared norms of outputs against zero.
constexpr double kOrthogonalityGuard = 1e-8;

/// One term. Its gradient goes through one of the four arrays of AuxiliaryGradients.
enum class AuxiliaryPath { gates, probabilities, scores, pair_outputs };

template <class Real>
using AuxiliaryValue = double(const RoutedBatch<Real>&, AuxiliaryScratch&);
template <class Real>
using AddAuxiliaryGradient = void(const RoutedBatch<Real>&, double coefficient,
                                  const AuxiliaryGradients<Real>&, AuxiliaryScratch&);

struct AuxiliaryLossKind {
  std::string name;  ///< its coefficient in `loss`, and of its metrics `<name>_loss`
  std::string help;  ///< the equation
  AuxiliaryPath path = AuxiliaryPath::probabilities;
  /// The term on a batch, unweighted; 0 where it needs `pair_outputs` and there are none.
  PerPrecision<AuxiliaryValue> value = {};
  /// Adds coefficient · ∂term to the array of its path.
  PerPrecision<AddAuxiliaryGradient> add = {};
  bool needs_sequences = false;  ///< says nothing where every row is a sequence of its own
  bool needs_noise = false;      ///< has a gradient with learned noise alone
};

/// The table: adding a term is a new file and a line in auxiliary_losses.cpp.
const std::vector<AuxiliaryLossKind>& auxiliary_loss_kinds();
void add_auxiliary_loss_kind(AuxiliaryLossKind kind);
/// The place of the term of that name in the table. Throws std::invalid_argument where there is none.
std::size_t auxiliary_loss_place(const std::string& name);

/// `loss` of a scenario: the task loss and a coefficient for each auxiliary term, 0 by default.
struct LossOptions {
  enum class Reduction { sum, mean };
  std::string task = "mse";
  std::vector<double> coefficients;       ///< in the order of the table; shorter ones end in zeros
  Reduction reduction = Reduction::sum;   ///< of the task loss over outputs
  std::optional<double> mask_share = {};  ///< of `masked_tokens`; unset: .15

  LossOptions();
  /// The coefficient of the term of that name. Throws std::invalid_argument where there is none.
  double& coefficient(const std::string& name);
  void bind(Fields& fields);
};

template <class Real>
class TaskLoss;
/// The task loss that is optimised: summed over the o outputs, or with `reduction` mean that divided by o; of
/// targets that are ids where said. Throws InvalidOption at "loss.…" for an unknown name, one without a form
/// for ids, and for a mean over classes.
template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const LossOptions& options, bool of_ids = false);

/// The terms with their coefficients. Immutable.
class AuxiliaryLosses {
 public:
  AuxiliaryLosses() = default;
  explicit AuxiliaryLosses(const LossOptions& options);

  bool empty() const { return weighted_.empty(); }
  /// Of a term by its place in the table.
  double coefficient(std::size_t term) const {
    return term < coefficients_.size() ? coefficients_[term] : 0.0;
  }
  /// Whether a term with a coefficient goes through that array.
  bool reads(AuxiliaryPath path) const;
  /// Every term's value, unweighted, in the order of the table.
  template <class Real>
  std::vector<double> values(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const;
  /// Σ_t coefficient_t · value_t over the terms with a coefficient.
  template <class Real>
  double weighted_sum(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const;
  /// Adds coefficient times gradient of the terms with a coefficient, where their array is not null.
  template <class Real>
  void add_gradients(const RoutedBatch<Real>& batch, const AuxiliaryGradients<Real>& gradients,
                     AuxiliaryScratch& scratch) const;

 private:
  std::vector<double> coefficients_;
  std::vector<std::size_t> weighted_;  ///< terms with a coefficient
};

// What auxiliary losses have in common.

/// Calls visit(expert) for the active experts of a row, in no particular order.
template <class Real, class Visit>
void for_each_active(const Routing<Real>& routing, int row, const Visit& visit) {
  if (routing.every_pair) {
    for (int e = 0; e < routing.experts; ++e) visit(e);
    return;
  }
  const int begin = row == 0 ? 0 : routing.row_ends[size(row) - 1];
  for (int at = begin; at < routing.row_ends[size(row)]; ++at) visit(routing.row_experts[size(at)]);
}

/// counts (E) ← n_j, the rows that activate each expert. Returns their sum.
template <class Real>
double count_active(const Routing<Real>& routing, std::vector<double>& counts) {
  counts.resize(size(routing.experts));
  double pairs = 0;
  for (int e = 0; e < routing.experts; ++e) {
    counts[size(e)] = routing.pairs_of(e);
    pairs += routing.pairs_of(e);
  }
  return pairs;
}

/// counts (E) ← c_j, the rows whose likeliest expert each is.
template <class Real>
void count_first_choices(const RoutedBatch<Real>& batch, std::vector<double>& counts) {
  const Routing<Real>& routing = *batch.routing;
  counts.assign(size(routing.experts), 0.0);
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const r = batch.probabilities + entries(row, routing.stride);
    ++counts[size(std::max_element(r, r + routing.experts) - r)];
  }
}

/// means (E) ← the mean of each column of `values` (n, stride).
template <class Real>
void column_means(const Real* values, const Routing<Real>& routing, std::vector<double>& means) {
  means.assign(size(routing.experts), 0.0);
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const line = values + entries(row, routing.stride);
    for (std::size_t e = 0; e < means.size(); ++e) means[e] += static_cast<double>(line[e]);
  }
  for (double& mean : means) mean /= routing.rows;
}

/// Σ_j weight_j P_j, P_j = (1/n) Σ_i r_ij: what balance terms are, with weights (E) that are held fixed.
template <class Real>
double balance_value(const RoutedBatch<Real>& batch, const std::vector<double>& weights,
                     AuxiliaryScratch& scratch) {
  column_means(batch.probabilities, *batch.routing, scratch.means);
  double value = 0;
  for (std::size_t e = 0; e < weights.size(); ++e) value += weights[e] * scratch.means[e];
  return value;
}

/// Adds coefficient times its gradient to ∂L/∂r.
template <class Real>
void add_balance(const RoutedBatch<Real>& batch, const std::vector<double>& weights, double coefficient,
                 Real* gradient) {
  const Routing<Real>& routing = *batch.routing;
  for (std::size_t e = 0; e < weights.size(); ++e) {
    const Real step = static_cast<Real>(coefficient * weights[e] / routing.rows);
    for (int row = 0; row < routing.rows; ++row) gradient[entries(row, routing.stride) + e] += step;
  }
}

}  // namespace moelab
