#include "sim/model/expert/relu_expert.h"

#include "sim/model/expert/ridge_bank.h"

namespace moelab {
namespace {

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_relu_bank(const AnyOptions& options, const ExpertSetting& setting) {
  return make_ridge_bank<Real>({Activation::Kind::relu}, options.get<ReluExpertOptions>().init_scale,
                               setting);
}

}  // namespace

void ReluExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d), b_e zero");
}

ExpertKind relu_expert() {
  return {{"relu", "expert_e(x) = (A_e x + b_e)_+, one neuron for each output", ReluExpertOptions{},
           ReluExpertOptions{}},
          {make_relu_bank<float>, make_relu_bank<double>}};
}

}  // namespace moelab
