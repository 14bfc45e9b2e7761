#include "sim/data/contamination/fgsm.h"

#include "sim/data/contamination/contamination.h"
#include "sim/data/contamination/gradient_attack.h"

namespace moelab {
namespace {

template <class Real>
void fgsm_attack(const AnyOptions& any, AttackedLoss<Real>& loss, Engine& /*engine*/, int /*samples*/,
                 std::vector<Real>& x) {
  const double budget = any.get<FgsmOptions>().budget;
  ascend(x, budget, 1, budget,
         [&](const std::vector<Real>& at, std::vector<Real>& gradient) { loss.gradient(at, gradient); });
}

}  // namespace

void FgsmOptions::bind(Fields& fields) {
  fields.required().add("budget", budget, at_least(0), "largest change of an input entry, ε");
}

ContaminationKind fgsm_contamination() {
  return {{"fgsm", "x + ε sign(∂L/∂x) under the training gating", FgsmOptions{}, FgsmOptions{0.1}},
          nullptr,
          {fgsm_attack<float>, fgsm_attack<double>}};
}

}  // namespace moelab
