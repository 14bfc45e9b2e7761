#pragma once

/// `train` of a scenario.

#include <cstdint>
#include <optional>

#include "sim/base/options.h"
#include "sim/model/model_options.h"
#include "sim/train/least_squares_options.h"
#include "sim/train/optimizer.h"
#include "sim/train/schedule.h"
#include "sim/train/until.h"

namespace moelab {

struct TrainOptions {
  enum class Gradient { sample, population };
  enum class Rule { monte_carlo, quasi_monte_carlo };
  enum class Precision { in_float, in_double };
  Gradient gradient = Gradient::sample;
  std::optional<int> points = std::nullopt;   ///< of population gradients; 4096
  std::optional<Rule> rule = std::nullopt;    ///< of population gradients; monte_carlo
  std::optional<bool> redraw = std::nullopt;  ///< of population gradients; true
  TrainingRule optimizer = SgdOptions{};
  std::optional<PerGroup> lr = std::nullopt;
  std::optional<FitStart> start = std::nullopt;  ///< of fits: where they begin
  PerGroup weight_decay = 0.0;
  std::optional<double> clip_norm = std::nullopt;  ///< most of the gradient's norm
  ScheduleOptions schedule = ConstantScheduleOptions{};
  std::optional<std::int64_t> batch_size = std::nullopt;
  std::optional<std::int64_t> steps = std::nullopt;
  std::optional<std::int64_t> epochs = std::nullopt;
  std::optional<std::int64_t> record_every = std::nullopt;
  std::optional<UntilOptions> until = std::nullopt;  ///< ends training before its steps are done
  Precision precision = Precision::in_float;

  void bind(Fields& fields);
};

/// What does not go together. Throws InvalidOption at "train.…".
void check(const TrainOptions& options);

/// Optimizer steps: `steps`, or epochs · ⌈n / batch_size⌉.
std::int64_t total_steps(const TrainOptions& options, int train_samples);

/// Steps between records: `record_every`, or a tenth of the run.
std::int64_t record_interval(const TrainOptions& options, std::int64_t steps);

/// Pairs with a smaller gate are skipped by soft gatings unless the options say otherwise: they move the
/// output by at most 1e-8 of an expert's, below float's resolution. Adam divides gradients by their own size,
/// so there every pair counts.
double default_skip_below(const TrainOptions& options);

/// The model's options with what depends on how it is trained filled in: `skip_below` of soft gatings, and
/// the samples that are routed together.
ModelOptions resolved_for(ModelOptions model, const TrainOptions& train);

}  // namespace moelab
