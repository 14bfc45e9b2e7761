#include "sim/data/contamination/spsa.h"

#include "sim/data/contamination/contamination.h"
#include "sim/data/contamination/gradient_attack.h"

namespace moelab {
namespace {

/// Proportional to the estimate of the gradient.
template <class Real>
void estimate_gradient(const SpsaOptions& options, AttackedLoss<Real>& loss, Engine& engine, int samples,
                       const std::vector<Real>& x, std::vector<Real>& gradient) {
  const Real difference = static_cast<Real>(options.difference);
  gradient.assign(x.size(), Real(0));
  std::vector<Real> signs(x.size()), moved(x.size());
  for (int direction = 0; direction < options.directions; ++direction) {
    for (Real& sign : signs) sign = draw_uniform(engine) < 0.5 ? Real(-1) : Real(1);
    std::vector<double> slopes(static_cast<std::size_t>(samples), 0.0);
    for (const Real side : {Real(1), Real(-1)}) {
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = x[i] + side * difference * signs[i];
      loss.add_losses(moved, static_cast<double>(side), slopes);
    }
    const std::size_t width = x.size() / slopes.size();
    for (std::size_t i = 0; i < signs.size(); ++i) {
      gradient[i] += static_cast<Real>(slopes[i / width]) * signs[i];
    }
  }
}

template <class Real>
void spsa_attack(const AnyOptions& any, AttackedLoss<Real>& loss, Engine& engine, int samples,
                 std::vector<Real>& x) {
  const SpsaOptions& options = any.get<SpsaOptions>();
  const double step_size = options.step_size.value_or(default_step_size(options.budget, options.steps));
  ascend(x, options.budget, options.steps, step_size,
         [&](const std::vector<Real>& at, std::vector<Real>& gradient) {
           estimate_gradient(options, loss, engine, samples, at, gradient);
         });
}

}  // namespace

void SpsaOptions::bind(Fields& fields) {
  bind_steps(fields, budget, steps, step_size);
  fields.add("directions", directions, between(1, 1e6), "random directions of a gradient estimate");
  fields.add("difference", difference, positive(), "half of the distance of the two losses");
}

ContaminationKind spsa_contamination() {
  return {{"spsa", "pgd with gradients estimated from losses along random signs", SpsaOptions{},
           SpsaOptions{.budget = 0.1, .steps = 2, .directions = 4}},
          nullptr,
          {spsa_attack<float>, spsa_attack<double>}};
}

}  // namespace moelab
