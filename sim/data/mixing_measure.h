#pragma once

/// Mixing measures of mixtures of ridge experts, and the regression functions that they stand for (Nguyen et
/// al., Statistical Advantages of Perturbing Cosine Router in Mixture of Experts, and their papers on other
/// gates).

#include "sim/base/arrays.h"

namespace moelab {

/// What turns the parameters of a component into its score, its gate and its expert. A router without its
/// bias has β0 = 0.
struct MixtureForm {
  enum class Router {
    linear,  ///< γ_j(x) = β1_j^T x + β0_j, with `temperature` over a learned t
    cosine,  ///< γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j; a zero norm gives β0_j
    squared_distance,  ///< γ_j(x) = −‖x − β1_j‖² / 2 + β0_j
    two_level,  ///< γ_j(x) = log softmax(U x + c)_g + log softmax over the group g of j of β1_j^T x + β0_j
  };
  enum class Expert {
    power,  ///< h(x) = (a^T x + b)^power
    relu,   ///< h(x) = (a^T x + b)_+
  };
  enum class Gate {
    softmax,             ///< r_j = softmax(γ)_j, over the K largest scores where `selected` = K
    sigmoid,             ///< r_j = σ(γ_j)
    normalised_sigmoid,  ///< r_j = σ(γ_j) / Σ_l σ(γ_l)
  };
  Router router = Router::linear;
  double tau1 = 0, tau2 = 0;
  Expert expert = Expert::power;
  int power = 1;
  Gate gate = Gate::softmax;
  int selected = 0;          ///< K; 0: every component
  bool temperature = false;  ///< of a linear router
  int groups = 0;            ///< G of a two-level router
  int shared = 0;            ///< experts beside the gates, which count with weight 1

  friend bool operator==(const MixtureForm&, const MixtureForm&) = default;
};

/// Whether a fit of one form may be held against a truth of the other: K may differ, the rest may not.
bool is_same_family(const MixtureForm& one, const MixtureForm& other);

/// G = Σ_j exp(β0_j) δ_(β1_j, a_j, b_j) with k components in R^d, and what components have in common.
struct MixingMeasure {
  MixtureForm form;
  Matrix gate;       ///< β1 (k, d)
  Vector bias;       ///< β0 (k)
  Matrix slope;      ///< a (k, d)
  Vector intercept;  ///< b (k)
  /// Of a two-level router U (G, d) and c (G); component j is in the group ⌊j G / k⌋.
  Matrix group_gate = {};
  Vector group_bias = {};
  double log_scale = 0;          ///< log 1/t of a temperature
  Matrix shared_slope = {};      ///< a of the shared experts
  Vector shared_intercept = {};  ///< b of them
  Vector variance = {};  ///< ν (k) of Gaussian experts, Y ~ N(h_j, ν_j) with probability r_j; else empty

  int components() const { return static_cast<int>(gate.rows()); }
};

/// The first of `components` whose group is `group` of so many: the least j with ⌊j G / k⌋ = g.
int first_of_group(int group, int groups, int components);

/// γ_j(x), (k).
Vector gate_scores(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// r_j(x), (k).
Vector gate_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// h(x, a_j, b_j), (k).
Vector expert_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// f_G(x) = Σ_j r_j(x) h(x, a_j, b_j), and the shared experts added.
double regression_value(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// The effective directions g, (k, d): β1 for a linear router (over t) and for squared distances, β1 / (‖β1‖
/// + τ1) for a cosine. A softmax depends on them only through the differences g_j − g_l, which are what a fit
/// can be held against. Of two levels (k, 2d): U of the component's group, and β1 less its mean over the
/// group, weighted by the gates at x = 0.
Matrix effective_directions(const MixingMeasure& measure);

/// r_j(0), every component selected, (k): the weights of components.
Vector gates_at_zero(const MixingMeasure& measure);

/// The leading columns of the effective directions whose common shift f_G does not see: all of a softmax's,
/// of two levels those of U, none of sigmoids.
int shifted_columns(const MixtureForm& form, int dim);

/// The largest distance from an expert (a, b) of one measure to the nearest of the other, either way
/// (Hausdorff). Experts with an even power are the same with (−a, −b).
double expert_distance(const MixingMeasure& one, const MixingMeasure& other);

}  // namespace moelab
