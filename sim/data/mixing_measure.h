#pragma once

/// Mixing measures of mixtures of ridge experts, and their regression functions (Nguyen et al., Statistical
/// Advantages of Perturbing Cosine Router in Mixture of Experts, and their papers on other gates).

#include <cmath>
#include <numbers>

#include "sim/base/arrays.h"

namespace moelab {

/// The functions from the parameters of a component to its score, its gate and its expert. A router without
/// bias has β0 = 0.
struct MixtureForm {
  enum class Router {
    linear,  ///< γ_j(x) = β1_j^T x + β0_j, divided by a learned t with `temperature`
    cosine,  ///< γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j; a zero norm gives β0_j
    squared_distance,  ///< γ_j(x) = −‖x − β1_j‖² / 2 + β0_j
    two_level,  ///< γ_j(x) = log softmax(U x + c)_g + log softmax over the group g of j of β1_j^T x + β0_j
  };
  enum class Expert {
    power,    ///< h(x) = (a^T x + b)^power
    relu,     ///< h(x) = (a^T x + b)_+
    gelu,     ///< h(x) = z Φ(z), z = a^T x + b, Φ the normal distribution function
    sigmoid,  ///< h(x) = σ(a^T x + b)
  };
  enum class Gate {
    softmax,             ///< r_j = softmax(γ)_j, over the K largest scores if `selected` = K
    sigmoid,             ///< r_j = σ(γ_j)
    normalised_sigmoid,  ///< r_j = σ(γ_j) / Σ_l σ(γ_l)
  };
  Router router = Router::linear;
  double tau1 = 0, tau2 = 0;
  Expert expert = Expert::power;
  int power = 1;
  Gate gate = Gate::softmax;
  int selected = 0;          ///< K, or 0 for every component
  bool temperature = false;  ///< of a linear router
  int groups = 0;            ///< G of a two-level router
  int shared = 0;            ///< experts outside the gates, with weight 1
  bool unit = false;         ///< ‖(a, b)‖ = 1 for every expert

  friend bool operator==(const MixtureForm&, const MixtureForm&) = default;
};

/// Whether a fit of one form is comparable with a truth of the other. Only K and the lengths of experts may
/// differ.
bool is_same_family(const MixtureForm& one, const MixtureForm& other);

/// G = Σ_j exp(β0_j) δ_(β1_j, a_j, b_j) with k components in R^d, and the parameters that components share.
struct MixingMeasure {
  MixtureForm form;
  Matrix gate;       ///< β1 (k, d)
  Vector bias;       ///< β0 (k)
  Matrix slope;      ///< a (k, d)
  Vector intercept;  ///< b (k)
  /// U (G, d) and c (G) of a two-level router. Component j is in the group ⌊j G / k⌋.
  Matrix group_gate = {};
  Vector group_bias = {};
  double log_scale = 0;          ///< log 1/t of a temperature
  Matrix shared_slope = {};      ///< a of the shared experts
  Vector shared_intercept = {};  ///< b of the shared experts
  Vector variance = {};  ///< ν (k) of Gaussian experts, Y ~ N(h_j, ν_j) with probability r_j; otherwise empty

  int components() const { return static_cast<int>(gate.rows()); }
};

/// Divides every (a, b) by its length if the form has unit experts.
void put_on_sphere(MixingMeasure& measure);

/// Whether (a, b) and (−a, −b) are different experts. They are equal for an even power.
bool has_signs(const MixtureForm& form);

/// h of the affine functions a^T x + b, entry by entry.
template <class Values>
Values through_expert(const MixtureForm& form, const Values& affine) {
  switch (form.expert) {
    case MixtureForm::Expert::relu:
      return affine.cwiseMax(0.0);
    case MixtureForm::Expert::gelu:
      return affine.unaryExpr([](double z) { return 0.5 * z * std::erfc(-z / std::numbers::sqrt2); });
    case MixtureForm::Expert::sigmoid:
      return affine.unaryExpr([](double z) { return 1 / (1 + std::exp(-z)); });
    case MixtureForm::Expert::power:
      break;
  }
  if (form.power == 1) return affine;
  return affine.array().pow(form.power).matrix();
}

/// The first component of group g: the least j with ⌊j G / k⌋ = g.
int first_of_group(int group, int groups, int components);

/// γ_j(x), (k).
Vector gate_scores(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// r_j(x), (k).
Vector gate_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// h(x, a_j, b_j), (k).
Vector expert_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// f_G(x) = Σ_j r_j(x) h(x, a_j, b_j) plus the shared experts.
double regression_value(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// The effective directions g, (k, d): β1 for a linear router (over t) and for squared distances, β1 / (‖β1‖
/// + τ1) for a cosine. A softmax depends on them only through the differences g_j − g_l, so only these are
/// comparable between a fit and a truth. For two levels (k, 2d): U of the component's group, and β1 minus its
/// mean over the group, weighted by the gates at x = 0.
Matrix effective_directions(const MixingMeasure& measure);

/// r_j(0) (k) with every component selected: the weights of components.
Vector gates_at_zero(const MixingMeasure& measure);

/// The number of leading columns of the effective directions whose common shift f_G does not see: all for a
/// softmax, the columns of U for two levels, none for sigmoids.
int shifted_columns(const MixtureForm& form, int dim);

/// The Hausdorff distance between the experts (a, b) of two measures, up to the sign of has_signs().
double expert_distance(const MixingMeasure& one, const MixingMeasure& other);

}  // namespace moelab
