#include "sim/model/expert/polynomial_expert.h"

#include "sim/model/expert/ridge_bank.h"

namespace moelab {
namespace {

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_polynomial_bank(const AnyOptions& options,
                                                       const ExpertSetting& setting) {
  const PolynomialExpertOptions& own = options.get<PolynomialExpertOptions>();
  return make_ridge_bank<Real>({Activation::Kind::power, own.power}, own.init_scale, setting);
}

}  // namespace

void PolynomialExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d), b_e zero");
  fields.add("power", power, between(1, 16), "p");
}

ExpertKind polynomial_expert() {
  return {{"polynomial", "expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al.)",
           PolynomialExpertOptions{}, PolynomialExpertOptions{}},
          {make_polynomial_bank<float>, make_polynomial_bank<double>}};
}

}  // namespace moelab
