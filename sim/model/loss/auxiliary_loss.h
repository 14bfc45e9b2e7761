#pragma once

/// The axis of auxiliary losses: losses on the routing itself, added to the task loss (Guo et al. 2025, and
/// the baselines it compares with).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/options.h"
#include "sim/base/per_precision.h"
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

}  // namespace moelab
