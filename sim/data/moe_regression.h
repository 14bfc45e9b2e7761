#pragma once

/// Regression on a mixture of experts with a known mixing measure (Nguyen et al., Statistical Advantages of
/// Perturbing Cosine Router in Mixture of Experts, and their papers on other gates).

#include <optional>
#include <vector>

#include "sim/data/mixing_measure.h"
#include "sim/data/problem.h"

namespace moelab {

// The choices of moe_regression: routers, gates, experts, measures and laws

namespace moe_regression {

/// γ_j(x) = β1_j^T x + β0_j, or its quotient by a temperature t.
struct LinearRouter {
  std::optional<double> temperature = std::nullopt;  ///< t
  void bind(Fields& fields);
};
/// γ_j(x) = β1_j^T x / (‖β1_j‖ ‖x‖) + β0_j.
struct CosineRouter : NoFields {};
/// γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j.
struct PerturbedCosineRouter {
  double tau1 = 0.1, tau2 = 0.1;
  void bind(Fields& fields);
};
/// γ_j(x) = −‖x − β1_j‖² / 2 + β0_j.
struct SquaredDistanceRouter : NoFields {};
/// γ_j(x) = log softmax(U x + c)_g + log softmax over the group g of j of β1_j^T x + β0_j.
struct TwoLevelRouter {
  int groups = 2;  ///< G
  void bind(Fields& fields);
};
struct Routers : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "router";
};

/// r = softmax(γ).
struct SoftGates : NoFields {};
/// r = softmax of the K largest γ, zero for the others.
struct TopKGates {
  int k = 1;
  void bind(Fields& fields);
};
/// r = σ(γ), or σ(γ) over its sum.
struct SigmoidGates {
  bool renormalize = false;
  void bind(Fields& fields);
};
struct Gates : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "gating";
};

/// The lengths of (a, b): any, or 1. With `unit` every (a, b) of the measure is divided by its length.
enum class Normalize { none, unit };
struct OneUnitExpert {
  Normalize normalize = Normalize::none;
  void bind(Fields& fields);
};
/// h(x) = a^T x + b.
struct LinearExpert : OneUnitExpert {};
/// h(x) = (a^T x + b)^power.
struct PolynomialExpert {
  int power = 2;
  Normalize normalize = Normalize::none;
  void bind(Fields& fields);
};
/// h(x) = (a^T x + b)_+.
struct ReluExpert : OneUnitExpert {};
/// h(x) = z Φ(z), z = a^T x + b, Φ the normal distribution function.
struct GeluExpert : OneUnitExpert {};
/// h(x) = σ(a^T x + b).
struct SigmoidExpert : OneUnitExpert {};
struct Experts : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "expert";
};

/// G* by its parameters, the same for every seed. The theory's rates are for one fixed G*.
struct GivenMeasure {
  std::vector<std::vector<double>> gate = {};   ///< β1 (k, d)
  std::vector<double> bias = {};                ///< β0 (k)
  std::vector<std::vector<double>> slope = {};  ///< a (k, d)
  std::vector<double> intercept = {};           ///< b (k)
  // For a two-level router and shared experts
  std::optional<std::vector<std::vector<double>>> group_gate = {};    ///< U (G, d)
  std::optional<std::vector<double>> group_bias = {};                 ///< c (G)
  std::optional<std::vector<std::vector<double>>> shared_slope = {};  ///< a (shared_experts, d)
  std::optional<std::vector<double>> shared_intercept = {};           ///< b (shared_experts)
  void bind(Fields& fields);
};
/// A new G* for every seed: entries of β1_j ~ N(0, gate_std²), β0_j ~ N(0, bias_std²), entries of a_j ~ N(0,
/// slope_std²), b_j ~ N(0, intercept_std²). Each component has its own stream. U and c have the laws of β1
/// and β0, and shared experts the law of the other experts.
struct DrawnMeasure {
  int components = 0;  ///< k*
  double gate_std = 1;
  double bias_std = 0;
  double slope_std = 1;
  double intercept_std = 1;
  void bind(Fields& fields);
};
struct Measures : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "measure";
};

/// x ~ N(0, I).
struct NormalInputs : NoFields {};
/// x uniform on [center − half_width, center + half_width]^dim.
struct UniformInputs {
  double half_width = 1;
  double center = 0;
  void bind(Fields& fields);
};
struct Inputs : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "law of inputs";
};

/// Y = f_{G*}(x) + ε, ε ~ N(0, noise_std²).
struct MeanLaw : NoFields {};
/// Y = h_j(x) + ε_j with probability r_j(x), ε_j ~ N(0, variance_j).
struct MixtureLaw {
  std::vector<double> variance = {};
  void bind(Fields& fields);
};
struct Laws : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "law of targets";
};

}  // namespace moe_regression

/// Y = f_{G*}(X) + ε,  ε ~ N(0, noise_std²), with f_{G*} of sim/data/mixing_measure.h. E[y | x] = f_{G*}(x).
/// The label of a sample is argmax_j γ_j(x). Under a MixtureLaw Y is drawn from one of the components, which
/// is the label.
struct MoeRegressionOptions {
  int dim = 0;  ///< d
  OneOf<moe_regression::Routers> router = {};
  OneOf<moe_regression::Experts> expert = {};
  OneOf<moe_regression::Gates> gating = moe_regression::SoftGates{};
  int shared_experts = 0;
  OneOf<moe_regression::Measures> measure = {};
  OneOf<moe_regression::Inputs> inputs = moe_regression::NormalInputs{};
  OneOf<moe_regression::Laws> law = moe_regression::MeanLaw{};
  double noise_std = 0.1;

  void bind(Fields& fields);
};

/// What turns the parameters of G* into gates and experts.
MixtureForm form_of(const MoeRegressionOptions& options);

/// k*, the components of G*.
int components_of(const MoeRegressionOptions& options);

}  // namespace moelab
