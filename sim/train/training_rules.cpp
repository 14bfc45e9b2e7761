#include <stdexcept>

#include "sim/train/optimizer.h"

namespace moelab {

// Adding a rule is a new file that defines <name>_rule() and a line here.
// clang-format off
#define MOELAB_TRAINING_RULES(entry) \
  entry(sgd)                         \
  entry(adam)                        \
  entry(adamw)                       \
  entry(lbfgs)
// clang-format on

#define MOELAB_DECLARE(name) TrainingRuleKind name##_rule();
MOELAB_TRAINING_RULES(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<TrainingRuleKind>& rules() {
#define MOELAB_ENTRY(name) name##_rule(),
  static std::vector<TrainingRuleKind> all = {MOELAB_TRAINING_RULES(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return all;
}

}  // namespace

const std::vector<TrainingRuleKind>& TrainingRuleAxis::table() {
  return rules();
}

void add_training_rule_kind(TrainingRuleKind kind) {
  rules().push_back(std::move(kind));
}

template <class Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const TrainingRule& rule, std::size_t count) {
  const auto make = rule.entry().make.of<Real>();
  if (!make) throw std::invalid_argument("'" + rule.chosen() + "' fits whole samples and takes no steps");
  return make(rule.options(), count);
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const TrainingRule&, std::size_t);
template std::unique_ptr<Optimizer<double>> make_optimizer(const TrainingRule&, std::size_t);

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

}  // namespace moelab
