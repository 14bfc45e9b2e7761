#include "sim/train/optimizer.h"

#include <cmath>
#include <numbers>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

template <class Real>
class Sgd final : public Optimizer<Real> {
 public:
  Sgd(const SgdOptions& options, std::size_t count) : momentum_(options.momentum), velocity_(count) {}

  void step(double learning_rate, double weight_decay, const Real* gradient, Real* parameters) override {
    step_part(learning_rate, weight_decay, gradient, parameters, 0, velocity_.size());
  }
  bool can_defer() const override { return true; }
  void step_part(double learning_rate, double weight_decay, const Real* gradient, Real* parameters,
                 std::size_t begin, std::size_t count) override {
    kernels::sgd_step(rule(learning_rate, weight_decay), gradient, velocity_.data() + begin,
                      parameters + begin, count);
  }
  void idle_steps(const Real* rates, int steps, double weight_decay, Real* parameters, std::size_t begin,
                  std::size_t count) override {
    kernels::sgd_idle_steps(rule(0, weight_decay), rates, steps, velocity_.data() + begin, parameters + begin,
                            count);
  }

 private:
  kernels::SgdStep<Real> rule(double learning_rate, double weight_decay) const {
    return {static_cast<Real>(learning_rate), static_cast<Real>(momentum_), static_cast<Real>(weight_decay)};
  }

  double momentum_;
  AlignedVector<Real> velocity_;
};

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

void SgdOptions::bind(Fields& fields) {
  fields.add("momentum", momentum, between(0, 1 - 1e-12), "0 is plain gradient descent");
}

TrainingRuleKind sgd_rule() {
  TrainingRuleKind kind =
      optimizer_kind<SgdOptions, Sgd>("sgd", "v ← momentum v + g + λ w, w ← w − η v", {.momentum = 0.9});
  kind.rescales_gradients = false;
  return kind;
}

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

// To add a schedule, write a new file that defines <name>_schedule() and add a line here.
// clang-format off
#define MOELAB_SCHEDULES(entry) \
  entry(constant_schedule)      \
  entry(step_schedule)          \
  entry(cosine_schedule)
// clang-format on

MOELAB_TABLE(ScheduleAxis, MOELAB_SCHEDULES)

ScheduleKind constant_schedule() {
  return {{"constant", "the learning rate as given", ConstantScheduleOptions{}, ConstantScheduleOptions{}},
          [](const AnyOptions&, std::int64_t, std::int64_t) { return 1.0; }};
}

void CosineScheduleOptions::bind(Fields& fields) {
  fields.add("final", final_share, fraction(), "share of the rate that is left at the end");
  fields.add("warmup_steps", warmup_steps, between(0, 1e12),
             "steps in which the rate grows from near 0, in a line");
}

ScheduleKind cosine_schedule() {
  return {
      {"cosine", "from the full rate, after a warm-up if there is one, to `final` of it along half a cosine",
       CosineScheduleOptions{}, CosineScheduleOptions{.final_share = 0.2}},
      [](const AnyOptions& options, std::int64_t step, std::int64_t total) {
        const auto& [final_share, warmup] = options.get<CosineScheduleOptions>();
        if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
        const double angle =
            std::numbers::pi * static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
        return final_share + (1.0 - final_share) * 0.5 * (1.0 + std::cos(angle));
      }};
}

void StepScheduleOptions::bind(Fields& fields) {
  fields.required().add("every", every, between(1, 1e12), "steps");
  fields.add("factor", factor, positive(), "factor");
}

ScheduleKind step_schedule() {
  return {{"step", "multiplied by `factor` every `every` steps", StepScheduleOptions{},
           StepScheduleOptions{.every = 10, .factor = 0.5}},
          [](const AnyOptions& options, std::int64_t step, std::int64_t) {
            const StepScheduleOptions& own = options.get<StepScheduleOptions>();
            const std::int64_t falls = step / own.every;
            return std::pow(own.factor, static_cast<double>(falls));
          }};
}

}  // namespace moelab
