#pragma once

/// Regression on a mixture of experts with a known mixing measure (Nguyen et al., Statistical Advantages of
/// Perturbing Cosine Router in Mixture of Experts, and their papers on other gates).

#include "sim/data/mixing_measure.h"
#include "sim/data/moe_regression_choices.h"
#include "sim/data/problem.h"

namespace moelab {

/// Y = f_{G*}(X) + ε,  ε ~ N(0, noise_std²),  f_{G*} as in sim/data/mixing_measure.h. A sample's label is its
/// likeliest component, argmax_j γ_j(x). E[y | x] = f_{G*}(x). Under a MixtureLaw Y is drawn from one of the
/// components, which is its label.
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
