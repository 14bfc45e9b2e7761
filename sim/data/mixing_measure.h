#pragma once

/// Mixing measures of softmax-gated mixtures of ridge experts, and the regression functions that they stand
/// for (Nguyen et al., Statistical Advantages of Perturbing Cosine Router in Mixture of Experts).

#include "sim/base/types.h"

namespace moelab {

/// What turns the parameters of a component into its score and its expert. A linear router without its bias
/// has β0 = 0.
struct MixtureForm {
  enum class Router {
    linear,  ///< γ_j(x) = β1_j^T x + β0_j
    cosine,  ///< γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j; a zero norm without τ gives β0_j
  };
  enum class Expert {
    power,  ///< h(x) = (a^T x + b)^power
    relu,   ///< h(x) = (a^T x + b)_+
  };
  Router router = Router::linear;
  double tau1 = 0, tau2 = 0;
  Expert expert = Expert::power;
  int power = 1;

  friend bool operator==(const MixtureForm&, const MixtureForm&) = default;
};

/// G = Σ_j exp(β0_j) δ_(β1_j, a_j, b_j) with k components in R^d.
struct MixingMeasure {
  MixtureForm form;
  Matrix gate;       ///< β1 (k, d)
  Vector bias;       ///< β0 (k)
  Matrix slope;      ///< a (k, d)
  Vector intercept;  ///< b (k)

  int components() const { return static_cast<int>(gate.rows()); }
};

/// γ_j(x), (k).
Vector gate_scores(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// h(x, a_j, b_j), (k).
Vector expert_values(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// f_G(x) = Σ_j softmax(γ(x))_j h(x, a_j, b_j).
double regression_value(const MixingMeasure& measure, const Eigen::Ref<const Eigen::RowVectorXd>& x);

/// The effective directions g, (k, d): β1 for a linear router, β1 / (‖β1‖ + τ1) for a cosine. The gates
/// depend on β1 only through the differences g_j − g_l, which are what a fit can be held against.
Matrix effective_directions(const MixingMeasure& measure);

/// The largest distance from an expert (a, b) of one measure to the nearest of the other, either way
/// (Hausdorff). Experts with an even power are the same with (−a, −b).
double expert_distance(const MixingMeasure& one, const MixingMeasure& other);

}  // namespace moelab
