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

/// Searches until another start does not help, without knowledge of the truth; see fit_least_squares().
struct SearchStartOptions {
  int starts = 60;
  int repeats = 3;
  int rows = 2000;
  int evaluations = 150;
  int polished = 3;
  int oracle = 2;
  double perturbation = 0.1;
  void bind(Fields& fields);
};

/// The places, rows and polishing of a fit from many starts, "best" or "search"; empty for other starts.
std::optional<BestStartOptions> many_starts(const std::optional<FitStart>& start);

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

/// A rise of a metric: a value that is no new least one, and is at most `below` or exceeds the least value by
/// more than `by` (the code of Chen et al. 2022).
struct RiseOptions {
  std::string metric;
  double below = 0;
  double by = 0;
  void bind(Fields& fields);
};

/// One of four rules, evaluated after every record. A level: the metric is at most `below` or at least
/// `above`. A plateau. A rise. A budget of operations: 6 · (parameters that a row reaches) · (rows) per step.
struct UntilOptions {
  std::optional<std::string> metric = std::nullopt;
  std::optional<double> below = std::nullopt;
  std::optional<double> above = std::nullopt;
  std::optional<PlateauOptions> plateau = std::nullopt;
  std::optional<RiseOptions> rise = std::nullopt;
  std::optional<double> flops = std::nullopt;
  void bind(Fields& fields);

  /// The metric that the rule reads; empty for a budget.
  std::string looked_at() const {
    return plateau ? plateau->metric : rise ? rise->metric : metric.value_or("");
  }
  /// The field that names it.
  const char* place() const { return plateau ? "plateau.metric" : rise ? "rise.metric" : "metric"; }
};

/// Requires exactly one complete rule. Throws InvalidOption at "train.until…".
void check(const UntilOptions& options);

/// `train.rounds`: tasks in sequence. Each round trains on samples of one true cluster, the round's task.
struct RoundOptions {
  enum class Order { uniform, cycle, shuffled };
  std::int64_t steps = 1;  ///< optimizer steps of a round
  Order order = Order::uniform;
  void bind(Fields& fields);
};

struct TrainOptions {
  enum class Gradient { sample, population };
  enum class Rule { monte_carlo, quasi_monte_carlo };
  enum class Precision { in_float, in_double };
  /// What the gradient of each expert is divided by: nothing, its norm, or the sum of the norms of its
  /// arrays.
  enum class ExpertNorm { none, whole, parts };
  Gradient gradient = Gradient::sample;
  std::optional<int> points = std::nullopt;   ///< for population gradients; unset: 4096
  std::optional<Rule> rule = std::nullopt;    ///< for population gradients; unset: monte_carlo
  std::optional<bool> redraw = std::nullopt;  ///< for population gradients; unset: true
  TrainingRule optimizer = SgdOptions{};
  std::optional<PerGroup> lr = std::nullopt;
  std::optional<FitStart> start = std::nullopt;  ///< start of fits
  PerGroup weight_decay = 0.0;
  std::optional<double> clip_norm = std::nullopt;  ///< largest norm of the gradient
  ExpertNorm expert_norm = ExpertNorm::none;
  ScheduleOptions schedule = ConstantScheduleOptions{};
  std::optional<std::int64_t> batch_size = std::nullopt;
  std::optional<std::int64_t> steps = std::nullopt;
  std::optional<std::int64_t> epochs = std::nullopt;
  std::optional<std::int64_t> record_every = std::nullopt;
  std::optional<UntilOptions> until = std::nullopt;   ///< ends training before its steps are done
  std::optional<RoundOptions> rounds = std::nullopt;  ///< unset: every batch has samples of all clusters
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
