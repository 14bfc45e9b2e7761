#pragma once

/// The axis of auxiliary losses. They depend on the routing and are added to the task loss (Guo et al. 2025,
/// and its baselines).

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/model/gating/routing.h"

namespace moelab {

/// The targets of a batch (rows, columns): one for each sample or token, or null.
template <class Real>
struct Targets {
  const Real* first = nullptr;
  int rows = 0, columns = 0;
};

/// The inputs of auxiliary losses: the forward pass of one mixture on n rows.
///
/// r = softmax(γ) (n, E), and g are the gates. n_j counts the rows that activate expert j, and c_j the rows
/// whose argmax expert is j. P_j = (1/n) Σ_i r_ij. x̃_ij is the output of an active expert before its gate.
/// Gradients hold counts and selections fixed.
template <class Real>
struct RoutedBatch {
  const Real* scores = nullptr;         ///< γ (n, routing.stride)
  const Real* probabilities = nullptr;  ///< r (n, routing.stride)
  const Routing<Real>* routing = nullptr;
  const Real* pair_outputs = nullptr;        ///< x̃ (n, E, output_stride), read at active pairs; may be null
  int output_stride = 0;                     ///< padded(o), padding zero
  bool is_softmax = true;                    ///< r = softmax(γ)
  int tokens = 1;                            ///< s, rows of a sequence
  int group = 1;                             ///< sequences whose loads grouped balance terms count together
  const NoisyScores<Real>* noise = nullptr;  ///< scores of a training step with learned noise; may be null
  const double* moves = nullptr;             ///< (E) what the step has moved each expert by; may be null
  const double* dispatched = nullptr;        ///< (E) sequences that each expert had before; may be null
  Targets<Real> targets = {};                ///< null for targets that are ids
};

/// The gradients to which a term adds; null if they are not needed.
template <class Real>
struct AuxiliaryGradients {
  Real* gates = nullptr;          ///< ∂L/∂g (n, stride), written at active pairs
  Real* probabilities = nullptr;  ///< ∂L/∂r (n, stride)
  Real* scores = nullptr;         ///< ∂L/∂γ (n, stride), the part that does not go through r
  Real* spreads = nullptr;        ///< ∂L/∂s (n, stride) of learned noise; may be null
  Real* pair_outputs = nullptr;   ///< ∂L/∂x̃ (n, E, output_stride), written at active pairs
};

/// Temporary arrays of one term at a time, so that steps do not allocate.
struct AuxiliaryScratch {
  std::vector<double> weights, means;  ///< (E), of grouped balance terms (groups · E) and (groups)
  std::vector<int> active;             ///< experts of a row
};

/// Added to squared norms of outputs, to avoid division by zero.
constexpr double kOrthogonalityGuard = 1e-8;

/// The path of a term's gradient: one of the four arrays of AuxiliaryGradients.
enum class AuxiliaryPath { gates, probabilities, scores, pair_outputs };

template <class Real>
using AuxiliaryValue = double(const RoutedBatch<Real>&, AuxiliaryScratch&);
template <class Real>
using AddAuxiliaryGradient = void(const RoutedBatch<Real>&, double coefficient,
                                  const AuxiliaryGradients<Real>&, AuxiliaryScratch&);

struct AuxiliaryLossKind {
  std::string name;  ///< name of its coefficient in `loss`; its metrics are `<name>_loss`
  std::string help;  ///< the equation
  AuxiliaryPath path = AuxiliaryPath::probabilities;
  /// The term on a batch, without its coefficient; 0 if it needs `pair_outputs` and there are none.
  PerPrecision<AuxiliaryValue> value = {};
  /// Adds coefficient · ∂term to the array of its path.
  PerPrecision<AddAuxiliaryGradient> add = {};
  bool needs_sequences = false;  ///< has no effect if every sequence has one row
  bool needs_noise = false;      ///< has a gradient only with learned noise
  bool needs_moves = false;      ///< is zero unless a step moves experts before its gradient
  bool needs_targets = false;    ///< reads targets, which must be no ids
};

/// The entry of a term with static functions value() and add().
template <class Term>
AuxiliaryLossKind auxiliary_loss(std::string name, std::string help,
                                 AuxiliaryPath path = AuxiliaryPath::probabilities) {
  return {std::move(name),
          std::move(help),
          path,
          {Term::template value<float>, Term::template value<double>},
          {Term::template add<float>, Term::template add<double>}};
}

/// The value and the gradient of a term from one function: Term::sum(batch, coefficient, gradients, scratch)
/// returns the value. It adds the gradient unless its array is null.
template <class Term>
struct ValueAndGradient {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    return Term::sum(batch, 0, AuxiliaryGradients<Real>{}, scratch);
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    Term::sum(batch, coefficient, gradients, scratch);
  }
};

/// The table of auxiliary losses. A new term is one file and one line in auxiliary_loss.cpp.
struct AuxiliaryLossAxis {
  using Entry = AuxiliaryLossKind;
  static const std::vector<AuxiliaryLossKind>& table();
};
inline const std::vector<AuxiliaryLossKind>& auxiliary_loss_kinds() {
  return AuxiliaryLossAxis::table();
}
/// The index of the term with this name in the table. Throws std::invalid_argument if there is none.
std::size_t auxiliary_loss_place(const std::string& name);

/// The `loss` section of a scenario: the task loss, and a coefficient for each auxiliary term (default 0).
struct LossOptions {
  enum class Reduction { sum, mean };
  std::string task = "mse";
  std::vector<double> coefficients;       ///< in the order of the table; missing ones are zero
  Reduction reduction = Reduction::sum;   ///< reduction of the task loss over outputs
  std::optional<double> mask_share = {};  ///< share of masked tokens for `masked_tokens`; unset: 0.15
  int aux_group = 1;                      ///< sequences of a group of `aux_sequence` and `aux_mixed`

  LossOptions();
  /// The coefficient of the term with this name. Throws std::invalid_argument if there is none.
  double& coefficient(const std::string& name);
  void bind(Fields& fields);
};

template <class Real>
class TaskLoss;
/// Makes the optimised task loss: the sum over the o outputs, or the sum divided by o with `reduction` mean.
/// With `of_ids` targets are ids. Throws InvalidOption at "loss.…" for an unknown name, for a loss without a
/// form for ids, and for a mean over classes.
template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const LossOptions& options, bool of_ids = false);

/// The auxiliary terms with their coefficients. Immutable.
class AuxiliaryLosses {
 public:
  AuxiliaryLosses() = default;
  explicit AuxiliaryLosses(const LossOptions& options);

  bool empty() const { return weighted_.empty(); }
  /// The coefficient of a term, by its index in the table.
  double coefficient(std::size_t term) const {
    return term < coefficients_.size() ? coefficients_[term] : 0.0;
  }
  /// Whether a term with a coefficient uses this path.
  bool reads(AuxiliaryPath path) const;
  /// The value of every term without its coefficient, in the order of the table.
  template <class Real>
  std::vector<double> values(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const;
  /// Σ_t coefficient_t · value_t over the terms with a coefficient.
  template <class Real>
  double weighted_sum(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const;
  /// Adds coefficient_t · ∂term_t of the terms with a coefficient, to arrays that are not null.
  template <class Real>
  void add_gradients(const RoutedBatch<Real>& batch, const AuxiliaryGradients<Real>& gradients,
                     AuxiliaryScratch& scratch) const;

 private:
  template <class Real>
  RoutedBatch<Real> grouped(RoutedBatch<Real> batch) const {
    batch.group = group_;
    return batch;
  }

  std::vector<double> coefficients_;
  std::vector<std::size_t> weighted_;  ///< terms with a coefficient
  int group_ = 1;
};

// Shared helpers of auxiliary losses.

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

/// counts (E) ← n_j, the number of rows that activate expert j. Returns their sum.
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

/// counts (E) ← c_j, the number of rows whose argmax expert is j.
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

/// The value of a balance term: Σ_j weight_j P_j, P_j = (1/n) Σ_i r_ij, with fixed weights (E).
template <class Real>
double balance_value(const RoutedBatch<Real>& batch, const std::vector<double>& weights,
                     AuxiliaryScratch& scratch) {
  column_means(batch.probabilities, *batch.routing, scratch.means);
  double value = 0;
  for (std::size_t e = 0; e < weights.size(); ++e) value += weights[e] * scratch.means[e];
  return value;
}

/// Adds coefficient times the gradient of balance_value() to ∂L/∂r.
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
