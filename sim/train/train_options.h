#pragma once

/// The `train` section of a scenario.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/options.h"
#include "sim/model/model_options.h"
#include "sim/train/optimizer.h"

namespace moelab {

// Options of least-squares fits; see least_squares.h.

/// Maximum likelihood instead of least squares; see sim/train/gaussian_experts.h.
struct LikelihoodOptions {
  bool gate = true;
  bool slope = true;
  std::optional<double> variance = std::nullopt;
  void bind(Fields& fields);
};

/// The training rule "lbfgs".
struct LeastSquaresOptions {
  int memory = 20;                             ///< pairs of steps and gradient changes kept
  std::optional<double> bound = std::nullopt;  ///< largest absolute value of a parameter
  std::optional<LikelihoodOptions> likelihood = std::nullopt;
  void bind(Fields& fields);
};

/// The axis `train.start`: the starts of fits.
struct FitStartAxis {
  using Entry = KindEntry;
  static const std::vector<KindEntry>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "start";
};
using FitStart = OneOf<FitStartAxis>;

/// Starts at the model's own initial weights.
struct ColdStartOptions {
  int tries = 2;
  void bind(Fields& fields);
};
/// Starts at the true measure of the data, with each parameter moved by N(0, perturbation²).
struct WarmStartOptions {
  double perturbation = 0.1;
  int tries = 2;
  void bind(Fields& fields);
};
/// Starts at many places and keeps the lowest minimum. The places alternate: near the true measure, at
/// k-means clusters, and at initial weights of the model.
struct BestStartOptions {
  int starts = 20;
  double perturbation = 0.1;
  int rows = 4000;
  int evaluations = 300;
  int polished = 5;
  void bind(Fields& fields);
};

// `train.until`: rules that end training early. The calling program evaluates the metrics. This file only
// checks and describes the options.

/// A plateau of a metric: the least of its last `records` values is at least (1 − relative) times the least
/// of the earlier values.
struct PlateauOptions {
  std::string metric;
  int records = 5;
  double relative = 0.01;
  void bind(Fields& fields);
};

/// One of three rules, evaluated after every record. A level: the metric is at most `below` or at least
/// `above`. A plateau. A budget of operations: 6 · (parameters that a row reaches) · (rows) per step.
struct UntilOptions {
  std::optional<std::string> metric = std::nullopt;
  std::optional<double> below = std::nullopt;
  std::optional<double> above = std::nullopt;
  std::optional<PlateauOptions> plateau = std::nullopt;
  std::optional<double> flops = std::nullopt;
  void bind(Fields& fields);

  /// The metric that the rule reads; empty for a budget.
  std::string looked_at() const { return plateau ? plateau->metric : metric.value_or(""); }
};

/// Requires exactly one complete rule. Throws InvalidOption at "train.until…".
void check(const UntilOptions& options);

struct TrainOptions {
  enum class Gradient { sample, population };
  enum class Rule { monte_carlo, quasi_monte_carlo };
  enum class Precision { in_float, in_double };
  Gradient gradient = Gradient::sample;
  std::optional<int> points = std::nullopt;   ///< for population gradients; unset: 4096
  std::optional<Rule> rule = std::nullopt;    ///< for population gradients; unset: monte_carlo
  std::optional<bool> redraw = std::nullopt;  ///< for population gradients; unset: true
  TrainingRule optimizer = SgdOptions{};
  std::optional<PerGroup> lr = std::nullopt;
  std::optional<FitStart> start = std::nullopt;  ///< start of fits
  PerGroup weight_decay = 0.0;
  std::optional<double> clip_norm = std::nullopt;  ///< largest norm of the gradient
  ScheduleOptions schedule = ConstantScheduleOptions{};
  std::optional<std::int64_t> batch_size = std::nullopt;
  std::optional<std::int64_t> steps = std::nullopt;
  std::optional<std::int64_t> epochs = std::nullopt;
  std::optional<std::int64_t> record_every = std::nullopt;
  std::optional<UntilOptions> until = std::nullopt;  ///< ends training before its steps are done
  Precision precision = Precision::in_float;

  void bind(Fields& fields);
};

/// Checks combinations of options. Throws InvalidOption at "train.…".
void check(const TrainOptions& options);

/// Optimizer steps: `steps`, or epochs · ⌈n / batch_size⌉.
std::int64_t total_steps(const TrainOptions& options, int train_samples);

/// Steps between records: `record_every`, or a tenth of the run.
std::int64_t record_interval(const TrainOptions& options, std::int64_t steps);

/// The default `skip_below`: soft gatings skip pairs with a smaller gate. Skipped pairs change the output by
/// at most 1e-8 times an expert's output, below float's resolution. For Adam it is 0: Adam divides gradients
/// by their own size, so every pair counts.
double default_skip_below(const TrainOptions& options);

/// Fills in the model's options that depend on training: `skip_below` of soft gatings, and the samples that
/// are routed together.
ModelOptions resolved_for(ModelOptions model, const TrainOptions& train);

}  // namespace moelab
