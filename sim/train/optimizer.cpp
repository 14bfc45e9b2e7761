#include "sim/train/optimizer.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

template <class Real>
class Sgd final : public Optimizer<Real> {
 public:
  Sgd(double momentum, std::size_t count) : momentum_(momentum), velocity_(count) {}

  void step(double learning_rate, double weight_decay, const Real* gradient, Real* parameters) override {
    step_part(learning_rate, weight_decay, gradient, parameters, 0, velocity_.size());
  }
  bool can_defer() const override { return true; }
  void step_part(double learning_rate, double weight_decay, const Real* gradient, Real* parameters,
                 std::size_t begin, std::size_t count) override {
    kernels::sgd_step(rule(learning_rate, weight_decay), gradient + begin, velocity_.data() + begin,
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
  Adam(const Json& spec, std::size_t count)
      : beta1_(spec.at("beta1")),
        beta2_(spec.at("beta2")),
        epsilon_(spec.at("epsilon")),
        decoupled_(spec.at("kind") == "adamw"),
        first_(count),
        second_(count) {}

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
  double beta1_;
  double beta2_;
  double epsilon_;
  bool decoupled_;
  double power1_ = 1.0;  // β1^t
  double power2_ = 1.0;  // β2^t
  AlignedVector<Real> first_;
  AlignedVector<Real> second_;
};

std::vector<Field> adam_fields() {
  Shape below_one = Shape::real_at_least(0);
  below_one.maximum = 1 - 1e-12;
  return {{"beta1", below_one, "decay of the first moment", 0.9},
          {"beta2", below_one, "decay of the second moment", 0.999},
          {"epsilon", Shape::positive_real(), "added to the root of the second moment", 1e-8}};
}

}  // namespace

std::vector<Kind> optimizer_kinds() {
  Shape momentum = Shape::real_at_least(0);
  momentum.maximum = 1 - 1e-12;
  return {{"sgd",
           "v ← momentum v + g + λ w, w ← w − η v",
           {{"momentum", momentum, "0 is plain gradient descent", 0.0}}},
          {"adam", "Kingma, Ba 2015; weight decay λ is added to the gradient", adam_fields()},
          {"adamw", "Loshchilov, Hutter 2019; weight decay is decoupled, w ← w − η λ w", adam_fields()},
          least_squares_kind()};
}

std::vector<Kind> schedule_kinds() {
  return {{"constant", "the learning rate as given", {}},
          {"step",
           "multiplied by `factor` every `every` steps",
           {{"every", Shape::count(1, 1e12), "steps"}, {"factor", Shape::positive_real(), "factor", 0.1}}},
          {"cosine",
           "from the full rate to `final` of it along half a cosine",
           {{"final", Shape::fraction(), "share of the rate that is left at the end", 0.0}}}};
}

bool rescales_gradients(const Json& optimizer_spec) {
  return optimizer_spec.at("kind") != "sgd";
}

double schedule_factor(const Json& spec, std::int64_t step, std::int64_t total) {
  const std::string kind = spec.at("kind");
  if (kind == "step") {
    return std::pow(spec.at("factor").get<double>(),
                    static_cast<double>(step / spec.at("every").get<std::int64_t>()));
  }
  if (kind == "cosine") {
    const double final_share = spec.at("final");
    const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(total);
    return final_share + (1.0 - final_share) * 0.5 * (1.0 + std::cos(angle));
  }
  return 1.0;
}

template <class Real>
void Optimizer<Real>::step_part(double, double, const Real*, Real*, std::size_t, std::size_t) {
  throw std::logic_error("this optimizer cannot defer");
}

template <class Real>
void Optimizer<Real>::idle_steps(const Real*, int, double, Real*, std::size_t, std::size_t) {
  throw std::logic_error("this optimizer cannot defer");
}

template class Optimizer<float>;
template class Optimizer<double>;

template <class Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const Json& spec, std::size_t count) {
  if (spec.at("kind") == "lbfgs") throw std::logic_error("lbfgs fits whole samples, see least_squares.h");
  if (spec.at("kind") == "sgd") return std::make_unique<Sgd<Real>>(spec.at("momentum").get<double>(), count);
  return std::make_unique<Adam<Real>>(spec, count);
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const Json&, std::size_t);
template std::unique_ptr<Optimizer<double>> make_optimizer(const Json&, std::size_t);

}  // namespace moelab
