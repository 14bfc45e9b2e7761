#include "sim/data/contamination/pgd.h"

#include "sim/data/contamination/contamination.h"
#include "sim/data/contamination/gradient_attack.h"

namespace moelab {
namespace {

template <class Real>
void pgd_attack(const AnyOptions& any, AttackedLoss<Real>& loss, Engine& /*engine*/, int /*samples*/,
                std::vector<Real>& x) {
  const PgdOptions& options = any.get<PgdOptions>();
  const double step_size = options.step_size.value_or(default_step_size(options.budget, options.steps));
  ascend(x, options.budget, options.steps, step_size,
         [&](const std::vector<Real>& at, std::vector<Real>& gradient) { loss.gradient(at, gradient); });
}

}  // namespace

void PgdOptions::bind(Fields& fields) {
  bind_steps(fields, budget, steps, step_size);
}

ContaminationKind pgd_contamination() {
  return {{"pgd", "repeated steps along sign(∂L/∂x), kept within ε of x entry by entry", PgdOptions{},
           PgdOptions{.budget = 0.1, .steps = 3}},
          nullptr,
          {pgd_attack<float>, pgd_attack<double>}};
}

}  // namespace moelab
