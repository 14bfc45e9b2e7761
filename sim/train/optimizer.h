#pragma once

/// The axis of training rules: optimizers, which take a gradient step by step, and fits, which take a whole
/// training set at once (see least_squares.h).

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"

namespace moelab {

/// An update rule with its state, for one contiguous group of parameters.
template <class Real>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update of the group with the given rate and weight decay. Same rules as PyTorch's SGD, Adam and
  /// AdamW.
  virtual void step(double learning_rate, double weight_decay, const Real* gradient, Real* parameters) = 0;

  /// Whether a part of the group may be updated on its own, and its zero-gradient steps later and all at
  /// once, to the same bits: then step_part and idle_steps may be called in place of step.
  virtual bool can_defer() const { return false; }
  /// One update of the entries [begin, begin + count) of the group, whose gradient is given; `parameters` are
  /// the group's, as in idle_steps.
  virtual void step_part(double learning_rate, double weight_decay, const Real* gradient, Real* parameters,
                         std::size_t begin, std::size_t count);
  /// `steps` updates of those entries with a zero gradient, at rates[0], rates[1], …
  virtual void idle_steps(const Real* rates, int steps, double weight_decay, Real* parameters,
                          std::size_t begin, std::size_t count);
};

template <class Real>
using MakeOptimizer = std::unique_ptr<Optimizer<Real>>(const AnyOptions&, std::size_t count);

struct TrainingRuleKind : KindEntry {
  /// An optimizer for `count` parameters (a multiple of kernels::kPadding); null for fits.
  PerPrecision<MakeOptimizer> make = {};
  /// Whether updates do not follow the gradient's size, so that tiny gates are not harmless to skip.
  bool rescales_gradients = true;
};

/// The table: adding a rule is a new file and a line in training_rules.cpp.
struct TrainingRuleAxis {
  using Entry = TrainingRuleKind;
  static const std::vector<TrainingRuleKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "optimizer";
};
using TrainingRule = OneOf<TrainingRuleAxis>;
void add_training_rule_kind(TrainingRuleKind kind);

/// The entry of an optimizer class `Made<Real>` that is made from (Options, count).
template <class Options, template <class> class Made>
TrainingRuleKind optimizer_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_from<Optimizer<float>, Options, Made<float>, std::size_t>,
           make_from<Optimizer<double>, Options, Made<double>, std::size_t>}};
}

template <class Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const TrainingRule& rule, std::size_t count);

/// v ← momentum v + g + λ w, w ← w − η v.
struct SgdOptions {
  double momentum = 0.0;
  void bind(Fields& fields);
};
/// Kingma, Ba 2015; weight decay is added to the gradient.
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  void bind(Fields& fields);
};
/// Loshchilov, Hutter 2019; weight decay is decoupled.
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  void bind(Fields& fields);
};

// The axis of learning-rate schedules.

struct ScheduleKind : KindEntry {
  /// The factor on the learning rate at `step` of `total` (0-based).
  double (*factor)(const AnyOptions& options, std::int64_t step, std::int64_t total) = nullptr;
};

/// The table: adding a schedule is a new file and a line in schedules.cpp.
struct ScheduleAxis {
  using Entry = ScheduleKind;
  static const std::vector<ScheduleKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "schedule";
};
using ScheduleOptions = OneOf<ScheduleAxis>;
void add_schedule_kind(ScheduleKind kind);

/// A chosen schedule, looked up once.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options)
      : options_(options.options()), factor_(options.entry().factor) {}
  double factor(std::int64_t step, std::int64_t total) const { return factor_(options_, step, total); }

 private:
  AnyOptions options_;
  double (*factor_)(const AnyOptions&, std::int64_t, std::int64_t);
};

/// Factor 1.
struct ConstantScheduleOptions {
  void bind(Fields& /*fields*/) {}
};
/// factor^⌊step / every⌋.
struct StepScheduleOptions {
  std::int64_t every = 1;
  double factor = 0.1;
  void bind(Fields& fields);
};
/// (step + 1) / w for the first w = `warmup_steps`, then final + (1 − final) (1 + cos(π (step − w) / (total −
/// w))) / 2.
struct CosineScheduleOptions {
  double final_share = 0.0;
  std::int64_t warmup_steps = 0;
  void bind(Fields& fields);
};

}  // namespace moelab
