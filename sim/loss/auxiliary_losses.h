#pragma once

/// Losses on the routing itself, added to the task loss: balance, logits, orthogonality and variance
/// (Guo et al. 2025, and the baselines it compares with).

#include <array>
#include <string>
#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/schema.h"
#include "sim/model/gating.h"

namespace moelab {

/// The terms, for one MoE layer and a batch of n rows: r = softmax(γ) (n, E), gates g, n_j the rows that
/// activate expert j, c_j those whose likeliest expert it is, P_j = (1/n) Σ_i r_ij, x̃_ij the output of an
/// active expert before its gate. Counts and selections are held fixed in the gradients.
enum class AuxiliaryTerm {
  aux,                 ///< E Σ_j (n_j / Σn) P_j: 1 when either factor is uniform
  aux_unnormalised,    ///< Σ_j (n_j / n) Σ_i r_ij, Guo et al. 2025, Eq. 2: n·K/E times `aux`
  gshard,              ///< (1/E) Σ_j (c_j / n) P_j, GShard
  switch_transformer,  ///< E Σ_j (c_j / n) P_j, Switch Transformer
  z,                   ///< (1/n) Σ_i (log Σ_j exp γ_ij)², ST-MoE
  orthogonality,  ///< (1/n) Σ_i Σ_{j≠k active} (x̃_ij·x̃_ik)² / (‖x̃_ik‖² + ε): 1/n of L_o
  orthogonality_cosine,  ///< (1/n) Σ_i Σ_{j≠k active} cos²(x̃_ij, x̃_ik): blind to the outputs' lengths
  variance,              ///< −(1/(nE)) Σ_ij (g_ij − ḡ_j)²: 1/n of L_v
  variance_probabilities,  ///< the same of r
};
constexpr std::size_t kAuxiliaryTerms = 9;

/// One number per term, in the order of the enumeration.
using AuxiliaryValues = std::array<double, kAuxiliaryTerms>;

/// Guards squared norms of outputs against zero.
constexpr double kOrthogonalityGuard = 1e-8;

/// Their names in `loss` ("switch" for switch_transformer) with one line of help: coefficients, 0 by default.
std::vector<Field> auxiliary_loss_fields();

/// What the terms look at: the forward pass of one layer.
template <class Real>
struct RoutedBatch {
  const Real* scores = nullptr;         ///< γ (n, routing.stride)
  const Real* probabilities = nullptr;  ///< r (n, routing.stride)
  const Routing<Real>* routing = nullptr;
  const Real* pair_outputs = nullptr;  ///< x̃ (n, E, output_stride), read at active pairs; or null
  int output_stride = 0;               ///< padded(o), padding zero
};

/// Gradients that the weighted terms are added to.
template <class Real>
struct AuxiliaryGradients {
  Real* gates = nullptr;          ///< ∂L/∂g (n, stride), written at active pairs
  Real* probabilities = nullptr;  ///< ∂L/∂r (n, stride)
  Real* scores = nullptr;         ///< ∂L/∂γ (n, stride), what does not come through r
  Real* pair_outputs = nullptr;   ///< ∂L/∂x̃ (n, E, output_stride), written at active pairs
};

/// Coefficients of the terms, and their values and gradients on batches.
class AuxiliaryLosses {
 public:
  AuxiliaryLosses() = default;
  /// From a resolved `loss` object.
  explicit AuxiliaryLosses(const Json& loss);

  double coefficient(AuxiliaryTerm term) const { return coefficients_[static_cast<std::size_t>(term)]; }
  bool empty() const;
  /// Whether a term with a coefficient needs ∂L/∂x̃.
  bool reads_outputs() const;
  /// Whether a term needs ∂L/∂r.
  bool reads_probabilities() const;
  /// Σ_t coefficient_t · value_t.
  double weighted_sum(const AuxiliaryValues& values) const;

  /// Every term's value, unweighted; those of outputs are 0 without `pair_outputs`.
  template <class Real>
  AuxiliaryValues values(const RoutedBatch<Real>& batch);
  /// Adds coefficient times gradient of the terms with a coefficient. Null gradients are left out.
  template <class Real>
  void add_gradients(const RoutedBatch<Real>& batch, const AuxiliaryGradients<Real>& gradients);

 private:
  AuxiliaryValues coefficients_{};
  std::vector<double> active_rows_, first_choices_, means_;  // scratch, so that steps do not allocate
  std::vector<int> active_of_row_;
};

/// The term's name in scenarios and metrics.
std::string auxiliary_loss_name(AuxiliaryTerm term);

}  // namespace moelab
