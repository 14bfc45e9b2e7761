#pragma once

/// The axis of training rules. Optimizers follow a gradient step by step. Fits use a whole training set at
/// once (see least_squares.h).

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
  /// One update of the group with the given learning rate and weight decay. The rules equal PyTorch's SGD,
  /// Adam and AdamW.
  virtual void step(double learning_rate, double weight_decay, const Real* gradient, Real* parameters) = 0;

  /// Whether a part of the group can be updated separately, with its zero-gradient steps deferred and applied
  /// together, with bit-identical results. Callers may then use step_part() and idle_steps() instead of
  /// step().
  virtual bool can_defer() const { return false; }
  /// One update of the entries [begin, begin + count) of the group, with their gradient. `parameters` are the
  /// parameters of the whole group, as in idle_steps().
  virtual void step_part(double learning_rate, double weight_decay, const Real* gradient, Real* parameters,
                         std::size_t begin, std::size_t count);
  /// `steps` updates of the entries [begin, begin + count) with a zero gradient, at rates[0], rates[1], …
  virtual void idle_steps(const Real* rates, int steps, double weight_decay, Real* parameters,
                          std::size_t begin, std::size_t count);
};

template <class Real>
using MakeOptimizer = std::unique_ptr<Optimizer<Real>>(const AnyOptions&, std::size_t count);

struct TrainingRuleKind : KindEntry {
  /// An optimizer for `count` parameters (a multiple of kernels::kPadding); null for fits.
  PerPrecision<MakeOptimizer> make = {};
  /// Whether updates rescale the gradient. Skipping pairs with tiny gates is then not harmless.
  bool rescales_gradients = true;
  /// Doubles that a library allocates for so many parameters after so many steps, outside moelab's own count.
  /// Null: none.
  double (*library_numbers)(const AnyOptions&, double parameters, double steps) = nullptr;
};

/// The table of training rules. A new rule is one file and one line in trainer.cpp.
struct TrainingRuleAxis {
  using Entry = TrainingRuleKind;
  static const std::vector<TrainingRuleKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "optimizer";
};
using TrainingRule = OneOf<TrainingRuleAxis>;

/// The entry of an optimizer class `Made<Real>` whose constructor takes (Options, count).
template <class Options, template <class> class Made>
TrainingRuleKind optimizer_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_from<Optimizer<float>, Options, Made<float>, std::size_t>,
           make_from<Optimizer<double>, Options, Made<double>, std::size_t>}};
}

template <class Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const TrainingRule& rule, std::size_t count);

/// Stochastic gradient descent: v ← momentum v + g + λ w, w ← w − η v.
struct SgdOptions {
  double momentum = 0.0;
  bool operator==(const SgdOptions&) const = default;
  void bind(Fields& fields);
};
/// Adam (Kingma, Ba 2015). Weight decay is added to the gradient.
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool operator==(const AdamOptions&) const = default;
  void bind(Fields& fields);
};
/// AdamW (Loshchilov, Hutter 2019). Weight decay is decoupled.
struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool operator==(const AdamWOptions&) const = default;
  void bind(Fields& fields);
};

// Learning-rate schedules.

struct ScheduleKind : KindEntry {
  /// The factor on the learning rate at `step` of `total` (0-based).
  double (*factor)(const AnyOptions& options, std::int64_t step, std::int64_t total) = nullptr;
};

/// The table of schedules. A new schedule is one file and one line in optimizer.cpp.
struct ScheduleAxis {
  using Entry = ScheduleKind;
  static const std::vector<ScheduleKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "schedule";
};
using ScheduleOptions = OneOf<ScheduleAxis>;

/// A chosen schedule. It looks up the function once.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options)
      : options_(options.options()), factor_(options.entry().factor) {}
  double factor(std::int64_t step, std::int64_t total) const { return factor_(options_, step, total); }

 private:
  AnyOptions options_;
  double (*factor_)(const AnyOptions&, std::int64_t, std::int64_t);
};

/// Constant schedule: factor 1.
struct ConstantScheduleOptions {
  void bind(Fields& /*fields*/) {}
};
/// Step schedule: factor^⌊step / every⌋.
struct StepScheduleOptions {
  std::int64_t every = 1;
  double factor = 0.1;
  void bind(Fields& fields);
};
/// Cosine schedule with warm-up over w = `warmup_steps` steps. The factor is (step + 1) / w in the first w
/// steps. Afterwards it is final + (1 − final) (1 + cos(π (step − w) / (total − w))) / 2.
struct CosineScheduleOptions {
  double final_share = 0.0;
  std::int64_t warmup_steps = 0;
  void bind(Fields& fields);
};

}  // namespace moelab
