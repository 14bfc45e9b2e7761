#pragma once

/// Regression on a softmax-gated mixture of experts with a known mixing measure (Nguyen et al., Statistical
/// Advantages of Perturbing Cosine Router in Mixture of Experts).

#include <vector>

#include "sim/data/choices.h"
#include "sim/data/mixing_measure.h"
#include "sim/data/problem.h"

namespace moelab {

namespace moe_regression {

/// γ_j(x) = β1_j^T x + β0_j.
struct LinearRouter {
  void bind(Fields& /*fields*/) {}
};
/// γ_j(x) = β1_j^T x / (‖β1_j‖ ‖x‖) + β0_j.
struct CosineRouter {
  void bind(Fields& /*fields*/) {}
};
/// γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j.
struct PerturbedCosineRouter {
  double tau1 = 0.1, tau2 = 0.1;
  void bind(Fields& fields);
};
struct Routers : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "router";
};

/// h(x) = a^T x + b.
struct LinearExpert {
  void bind(Fields& /*fields*/) {}
};
/// h(x) = (a^T x + b)^power.
struct PolynomialExpert {
  int power = 2;
  void bind(Fields& fields);
};
/// h(x) = (a^T x + b)_+.
struct ReluExpert {
  void bind(Fields& /*fields*/) {}
};
struct Experts : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "expert";
};

/// G* by its parameters, the same for every seed: the theory's rates are those of one fixed G*.
struct GivenMeasure {
  std::vector<std::vector<double>> gate = {};   ///< β1 (k, d)
  std::vector<double> bias = {};                ///< β0 (k)
  std::vector<std::vector<double>> slope = {};  ///< a (k, d)
  std::vector<double> intercept = {};           ///< b (k)
  void bind(Fields& fields);
};
/// G* anew for every seed: entries of β1_j ~ N(0, gate_std²), β0_j ~ N(0, bias_std²), entries of a_j ~ N(0,
/// slope_std²), b_j ~ N(0, intercept_std²), each component from its own stream.
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
struct NormalInputs {
  void bind(Fields& /*fields*/) {}
};
/// x uniform on [−half_width, half_width]^dim.
struct UniformInputs {
  double half_width = 1;
  void bind(Fields& fields);
};
struct Inputs : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "law of inputs";
};

}  // namespace moe_regression

/// Y = f_{G*}(X) + ε,  ε ~ N(0, noise_std²),  f_{G*} as in sim/data/mixing_measure.h. A sample's label is its
/// likeliest component, argmax_j γ_j(x). E[y | x] = f_{G*}(x).
struct MoeRegressionOptions {
  int dim = 0;  ///< d
  OneOf<moe_regression::Routers> router = {};
  OneOf<moe_regression::Experts> expert = {};
  OneOf<moe_regression::Measures> measure = {};
  OneOf<moe_regression::Inputs> inputs = moe_regression::NormalInputs{};
  double noise_std = 0.1;

  void bind(Fields& fields);
};

/// What turns the parameters of G* into gates and experts.
MixtureForm form_of(const MoeRegressionOptions& options);

/// k*, the components of G*.
int components_of(const MoeRegressionOptions& options);

}  // namespace moelab
