#include "sim/model/expert/ridge_experts.h"

#include "sim/model/expert/ridge_bank.h"

namespace moelab {
namespace {

Field init_scale_field() {
  return {"init_scale", Shape::real_at_least(0), "entries of A_e start N(0, init_scale² / d), b_e zero", 1.0};
}

}  // namespace

Kind polynomial_expert_kind() {
  return {"polynomial",
          "expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al.)",
          {init_scale_field(), {"power", Shape::count(1, 16), "p", 2}}};
}

Kind relu_expert_kind() {
  return {"relu", "expert_e(x) = (A_e x + b_e)_+, one neuron for each output", {init_scale_field()}};
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_polynomial_bank(const Json& spec, int input_dim, int output_dim,
                                                       int experts) {
  return make_ridge_bank<Real>({Activation::Kind::power, spec.at("power")}, spec.at("init_scale"), input_dim,
                               output_dim, experts);
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_relu_bank(const Json& spec, int input_dim, int output_dim,
                                                 int experts) {
  return make_ridge_bank<Real>({Activation::Kind::relu}, spec.at("init_scale"), input_dim, output_dim,
                               experts);
}

template std::unique_ptr<ExpertBank<float>> make_polynomial_bank(const Json&, int, int, int);
template std::unique_ptr<ExpertBank<double>> make_polynomial_bank(const Json&, int, int, int);
template std::unique_ptr<ExpertBank<float>> make_relu_bank(const Json&, int, int, int);
template std::unique_ptr<ExpertBank<double>> make_relu_bank(const Json&, int, int, int);

}  // namespace moelab
