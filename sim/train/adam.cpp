#include <cmath>

#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/optimizer_steps.h"
#include "sim/train/optimizer.h"

namespace moelab {
namespace {

template <class Real>
class Adam final : public Optimizer<Real> {
 public:
  Adam(const AdamOptions& options, std::size_t count)
      : Adam(options.beta1, options.beta2, options.epsilon, false, count) {}
  Adam(const AdamWOptions& options, std::size_t count)
      : Adam(options.beta1, options.beta2, options.epsilon, true, count) {}

  void step(double learning_rate, double weight_decay, const Real* gradient, Real* parameters) override {
    power1_ *= beta1_;
    power2_ *= beta2_;
    kernels::AdamStep<Real> step;
    step.learning_rate = static_cast<Real>(learning_rate);
    step.beta1 = static_cast<Real>(beta1_);
    step.beta2 = static_cast<Real>(beta2_);
    step.epsilon = static_cast<Real>(epsilon_);
    step.weight_decay = static_cast<Real>(weight_decay);
    step.decoupled = decoupled_;
    step.step_size = static_cast<Real>(learning_rate / (1.0 - power1_));
    step.second_moment_scale = static_cast<Real>(1.0 / std::sqrt(1.0 - power2_));
    kernels::adam_step(step, gradient, first_.data(), second_.data(), parameters, first_.size());
  }

 private:
  Adam(double beta1, double beta2, double epsilon, bool decoupled, std::size_t count)
      : beta1_(beta1),
        beta2_(beta2),
        epsilon_(epsilon),
        decoupled_(decoupled),
        first_(count),
        second_(count) {}

  double beta1_;
  double beta2_;
  double epsilon_;
  bool decoupled_;
  double power1_ = 1.0;  // β1^t
  double power2_ = 1.0;  // β2^t
  AlignedVector<Real> first_;
  AlignedVector<Real> second_;
};

void bind_moments(Fields& fields, double& beta1, double& beta2, double& epsilon) {
  const Range below_one = between(0, 1 - 1e-12);
  fields.add("beta1", beta1, below_one, "decay of the first moment");
  fields.add("beta2", beta2, below_one, "decay of the second moment");
  fields.add("epsilon", epsilon, positive(), "added to the root of the second moment");
}

}  // namespace

void AdamOptions::bind(Fields& fields) {
  bind_moments(fields, beta1, beta2, epsilon);
}
void AdamWOptions::bind(Fields& fields) {
  bind_moments(fields, beta1, beta2, epsilon);
}

TrainingRuleKind adam_rule() {
  return optimizer_kind<AdamOptions, Adam>("adam",
                                           "Kingma, Ba 2015; weight decay λ is added to the gradient");
}
TrainingRuleKind adamw_rule() {
  return optimizer_kind<AdamWOptions, Adam>(
      "adamw", "Loshchilov, Hutter 2019; weight decay is decoupled, w ← w − η λ w");
}

}  // namespace moelab
