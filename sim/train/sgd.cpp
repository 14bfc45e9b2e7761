#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/optimizer_steps.h"
#include "sim/train/optimizer.h"

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

}  // namespace moelab
