#include "sim/model/expert/linear_expert.h"

#include "sim/model/expert/mlp_expert.h"
#include "sim/model/expert/ridge_bank.h"

namespace moelab {
namespace {

/// Up to this many outputs a linear expert is a ridge function. Above, it is an MLP of depth 1, whose cost
/// follows the active pairs.
constexpr int kRidgeOutputs = 4;

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_linear_bank(const AnyOptions& options, const ExpertSetting& setting) {
  const double init_scale = options.get<LinearExpertOptions>().init_scale;
  if (setting.output_dim > kRidgeOutputs) {
    return make_mlp_bank<Real>({.depth = 1, .init_scale = init_scale}, setting);
  }
  return make_ridge_bank<Real>({}, init_scale, setting);
}

}  // namespace

void LinearExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d)");
}

ExpertKind linear_expert() {
  return {{"linear", "expert_e(x) = A_e x + b_e", LinearExpertOptions{}, LinearExpertOptions{}},
          {make_linear_bank<float>, make_linear_bank<double>}};
}

}  // namespace moelab
