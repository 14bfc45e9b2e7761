#include "sim/data/moe_regression.h"

namespace moelab {

namespace moe_regression {

void PerturbedCosineRouter::bind(Fields& fields) {
  fields.add("tau1", tau1, positive(), "τ1");
  fields.add("tau2", tau2, positive(), "τ2");
}

void LinearRouter::bind(Fields& fields) {
  fields.add("temperature", temperature, positive(), "t, which the scores are divided by (default: none)");
}

void TwoLevelRouter::bind(Fields& fields) {
  fields.add("groups", groups, between(1, 1000), "G: component j of k is in group ⌊j G / k⌋");
}

const std::vector<KindEntry>& Routers::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<LinearRouter>("linear", "γ_j(x) = β1_j^T x + β0_j, over a temperature if given"),
      plain_kind<CosineRouter>("cosine", "γ_j(x) = β1_j^T x / (‖β1_j‖ ‖x‖) + β0_j"),
      plain_kind<PerturbedCosineRouter>("perturbed_cosine",
                                        "γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j"),
      plain_kind<SquaredDistanceRouter>("squared_distance", "γ_j(x) = −‖x − β1_j‖² / 2 + β0_j"),
      plain_kind<TwoLevelRouter>("two_level",
                                 "γ_j(x) = log softmax(U x + c)_g + log softmax over the group g of j of "
                                 "β1_j^T x + β0_j")};
  return kinds;
}

void TopKGates::bind(Fields& fields) {
  fields.required().add("k", k, between(1, 1000), "K; more than there are components count as all");
}

void SigmoidGates::bind(Fields& fields) {
  fields.add("renormalize", renormalize, "divide the gates by their sum");
}

const std::vector<KindEntry>& Gates::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<SoftGates>("soft", "r = softmax(γ)"),
      {"topk", "r = softmax of the K largest γ, 0 for the others", TopKGates{}, TopKGates{.k = 1}},
      plain_kind<SigmoidGates>("sigmoid", "r = σ(γ)")};
  return kinds;
}

void PolynomialExpert::bind(Fields& fields) {
  fields.add("power", power, between(1, 16), "p");
}

const std::vector<KindEntry>& Experts::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<LinearExpert>("linear", "h(x) = a^T x + b"),
      plain_kind<PolynomialExpert>("polynomial", "h(x) = (a^T x + b)^power"),
      plain_kind<ReluExpert>("relu", "h(x) = (a^T x + b)_+")};
  return kinds;
}

void GivenMeasure::bind(Fields& fields) {
  fields.required().add("gate", gate, "β1, one list of data.dim numbers for each component");
  fields.required().add("bias", bias, any_number(), 1, "β0, one number for each component");
  fields.required().add("slope", slope, "a, one list of data.dim numbers for each component");
  fields.required().add("intercept", intercept, any_number(), 1, "b, one number for each component");
  fields.add("group_gate", group_gate,
             "U of a two-level router, one list of data.dim numbers for each group");
  fields.add("group_bias", group_bias, any_number(), 1, "c of a two-level router, one number for each group");
  fields.add("shared_slope", shared_slope, "a of shared experts, one list of data.dim numbers for each");
  fields.add("shared_intercept", shared_intercept, any_number(), 1,
             "b of shared experts, one number for each");
}

void DrawnMeasure::bind(Fields& fields) {
  fields.required().add("components", components, between(1, 1000), "number of components k*");
  fields.add("gate_std", gate_std, at_least(0), "entries of β1 are N(0, gate_std²)");
  fields.add("bias_std", bias_std, at_least(0), "β0 is N(0, bias_std²)");
  fields.add("slope_std", slope_std, at_least(0), "entries of a are N(0, slope_std²)");
  fields.add("intercept_std", intercept_std, at_least(0), "b is N(0, intercept_std²)");
}

const std::vector<KindEntry>& Measures::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<GivenMeasure>("given", "the same for every seed"),
      plain_kind<DrawnMeasure>("drawn", "drawn anew for every seed")};
  return kinds;
}

void UniformInputs::bind(Fields& fields) {
  fields.add("half_width", half_width, positive(), "half of its side");
  fields.add("center", center, any_number(), "of every coordinate");
}

const std::vector<KindEntry>& Inputs::table() {
  static const std::vector<KindEntry> kinds = {plain_kind<NormalInputs>("normal", "x ~ N(0, I)"),
                                               plain_kind<UniformInputs>("uniform", "x uniform on a cube")};
  return kinds;
}

void MixtureLaw::bind(Fields& fields) {
  fields.required().add("variance", variance, positive(), 1, "of each component's noise");
}

const std::vector<KindEntry>& Laws::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<MeanLaw>("mean", "y = f(x) + N(0, noise_std²)"),
      {"mixture", "y = h_j(x) + N(0, variance_j) with probability r_j(x); noise_std has no effect",
       MixtureLaw{}, MixtureLaw{.variance = {0.04, 0.09}}}};
  return kinds;
}

}  // namespace moe_regression

void MoeRegressionOptions::bind(Fields& fields) {
  fields.required().add("dim", dim, between(1, 1e4), "input width d");
  fields.required().add("router", router, "the gates of f");
  fields.required().add("expert", expert, "the experts of f");
  fields.add("gating", gating, "how scores become gates");
  fields.add("shared_experts", shared_experts, between(0, 1000),
             "experts that are added with weight 1, of the same kind");
  fields.required().add("measure", measure, "G*");
  fields.add("inputs", inputs, "the law of x");
  fields.add("law", law, "the law of y given x");
  fields.add("noise_std", noise_std, at_least(0), "√ν, the standard deviation of ε");
}

}  // namespace moelab
