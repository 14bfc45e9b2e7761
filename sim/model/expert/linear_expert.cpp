#include "sim/model/expert/linear_expert.h"

#include "sim/model/expert/mlp_expert.h"
#include "sim/model/expert/ridge_bank.h"

namespace moelab {
namespace {

/// Up to this many outputs a linear expert is a ridge function. Above, it is an MLP of depth 1, whose cost
/// follows the active pairs.
constexpr int kRidgeOutputs = 4;

}  // namespace

Kind linear_expert_kind() {
  return {"linear",
          "expert_e(x) = A_e x + b_e",
          {{"init_scale", Shape::real_at_least(0), "entries of A_e start N(0, init_scale² / d)", 1.0}}};
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_linear_bank(const Json& spec, int input_dim, int output_dim,
                                                   int experts) {
  if (output_dim > kRidgeOutputs) return make_mlp_bank<Real>(spec, input_dim, output_dim, experts);
  return make_ridge_bank<Real>({}, spec.at("init_scale"), input_dim, output_dim, experts);
}

template std::unique_ptr<ExpertBank<float>> make_linear_bank(const Json&, int, int, int);
template std::unique_ptr<ExpertBank<double>> make_linear_bank(const Json&, int, int, int);

}  // namespace moelab
