#pragma once

/// Searches for the sweep point where a metric's mean crosses a level or another arm's mean. Also contains
/// successive halving and the stopping rules of training.

#include <vector>

#include "analysis/stats/crossing.h"
#include "analysis/stats/result_table.h"
#include "app/run/results.h"
#include "app/run/session.h"
#include "app/scenario/overrides.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Returns the cells of a scenario with their records. A cell without a record is `missing`.
ResultTable recorded_table(const Scenario& scenario, const Records& records);

/// Adds the points that the searches request, given these records. Returns whether points were added. Does
/// nothing if the scenario searches no crossing.
///
/// The points depend only on scenario and records. So a run that was killed, or that several processes share,
/// gets the same points as an undisturbed run.
bool place_points(Scenario& scenario, const Records& records);

/// Calls run_session until its results lead to no new points.
SessionOutcome run_and_search(Scenario& scenario, const SessionOptions& options, const CellRunner& runner);

/// Returns the crossings of a plan as a list of
///
///   {arm, at, path, state: "crosses" | "above" | "below" | "no value" | "open", estimate, interval, bracket,
///    points, note}
///
/// An interval end at the end of the range is null. Empty if the plan searches no crossing.
Json crossings_json(const RunResults& results);

/// Whether a search of the plan still places points.
bool has_open_search(const RunResults& results);

/// Returns a table of the crossings with a caption. Empty if the plan searches no crossing.
Table crossings_table(const RunResults& results);
/// Formats the caption and the table as one text.
std::string crossings_text(const RunResults& results);

/// Says how often intervals of crossings held the truth.
std::string crossing_coverage_text(const CrossingCoverage& coverage);

// Successive halving: many candidates on few seeds, the best candidates on more seeds

/// A stage of successive halving: `candidates` candidates on the seeds 0 … `seeds` − 1 each.
struct Rung {
  int candidates = 0;
  int seeds = 0;
  bool operator==(const Rung&) const = default;
};

/// Returns the rungs. The best third of each rung's candidates, at least one, continues with three times the
/// seeds, until one candidate is left. All candidates have the same seeds (common random numbers).
///
/// Source: Jamieson, Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
/// AISTATS 2016. Here a third replaces a half, and seeds are the resource.
std::vector<Rung> halving_rungs(int candidates);

/// Returns the number of trainings in these rungs. Seeds of the previous rung are not trained again.
int trainings_of(const std::vector<Rung>& rungs);

/// Returns the most candidates that fit into a budget of trainings, or 0 if two candidates do not fit.
int candidates_within(int trainings);

/// Returns the candidates, each with one value per range. One range has an even grid with both ends. Several
/// ranges have points of a Sobol sequence with a random shift from the root seed 1000. All arms get the same
/// candidates.
///
/// No two candidates are equal. Candidates that are equal after rounding are replaced. There are fewer than
/// requested if the ranges have no more values.
std::vector<std::vector<Json>> candidate_values(const std::vector<TuneRange>& ranges, int candidates);

/// The root seed for all choices of tuning.
constexpr std::uint64_t kTuningRoot = 1000;

/// Returns the indices of the `count` smallest scores, best first. Ties keep their order. −∞ is the best
/// score: the logarithm of a metric of 0. NaN means no score and comes last.
std::vector<std::size_t> best_places(const std::vector<double>& scores, int count);

// Stopping rules (`train.until`) and the cost of training

/// Returns the operations of one training step:
///
///   6 P per row of a batch
///
/// P counts the parameters outside the experts, and the parameters of the experts that a row reaches under
/// the training gating. If the gating fixes no number of experts, all experts count. Skipped pairs and
/// smaller last batches count in full.
template <class Real>
double operations_of_step(const Network<Real>& network, const ModelOptions& model, const TrainOptions& train,
                          int train_samples);

/// The stopping rule of one training phase.
class StoppingRule {
 public:
  StoppingRule(const std::optional<UntilOptions>& until, double operations_of_step)
      : until_(until), operations_(operations_of_step) {}

  /// Whether training ends at the last entry of `trace`. The phase's records begin at index `first`. The
  /// phase has done `steps` steps.
  bool is_reached(const std::vector<TraceEntry>& trace, std::size_t first, std::int64_t steps) const;

 private:
  std::optional<UntilOptions> until_;
  double operations_;
};

/// Whether the values no longer fall (see PlateauOptions). Ignores values that are not finite.
bool is_plateau(const std::vector<double>& values, int records, double relative);

}  // namespace moelab
