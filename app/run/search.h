#pragma once

/// Runs of a scenario whose sweep searches a crossing: points placed by what is recorded, until none is
/// missing.

#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/results.h"
#include "app/run/session.h"
#include "app/scenario/overrides.h"
#include "sim/train/experiment.h"

namespace moelab {

/// The cells of a scenario that searches a crossing, with what is recorded of them.
ResultTable recorded_table(const Scenario& scenario, const Records& records);

/// Gives the scenario the points that the searches ask for, as far as these records tell; whether it had not
/// all of them before. The points are a function of scenario and records alone, so a run that was killed, or
/// shared by several processes, has those of an undisturbed one. Nothing where the scenario searches none.
bool place_points(Scenario& scenario, const Records& records);

/// run_session, again and again while it makes the searches ask for further points.
SessionOutcome run_and_search(Scenario& scenario, const SessionOptions& options, const CellRunner& runner);

/// The searches of a plan: what its crossings are, {arm, at, state: "crosses" | "above" | "below" | "no
/// value" | "open", estimate, interval, bracket, points, note}; an end of an interval that reaches the end of
/// the range is null. Empty where the plan searches none.
Json crossings_json(const RunResults& results);

/// A table of them for people, and what it is of; empty where the plan searches none.
std::vector<std::vector<std::string>> crossings_table(const RunResults& results);
std::string crossings_caption(const RunResults& results);
/// Both as one text.
std::string crossings_text(const RunResults& results);

// Successive halving: many candidates on few seeds, the better ones on more.

/// So many candidates on the seeds 0 … seeds − 1 each.
struct Rung {
  int candidates = 0;
  int seeds = 0;
  bool operator==(const Rung&) const = default;
};

/// Of each rung a third, at least one, of the candidates go on with three times the seeds, until one is left
/// (Jamieson, Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS
/// 2016, with a third in place of a half and seeds as the resource). All candidates have the same seeds, so
/// that they are compared on common random numbers.
std::vector<Rung> halving_rungs(int candidates);

/// Trainings of these rungs: seeds that a candidate had on the rung before are not trained again.
int trainings_of(const std::vector<Rung>& rungs);

/// The most candidates that a budget of trainings suffices for; 0 where it does not for two.
int candidates_within(int trainings);

/// Candidate by candidate, a value for each range: an even grid with both ends for one range, else points of
/// a Sobol sequence under a random shift of the root seed 1000. The same for every arm. No two are equal:
/// those that rounding makes equal are replaced, and there are fewer than asked for where the ranges have no
/// more.
std::vector<std::vector<Json>> candidate_values(const std::vector<TuneRange>& ranges, int candidates);

/// The root seed of everything that is chosen.
constexpr std::uint64_t kTuningRoot = 1000;

/// Places of the `count` least scores, the best first; of equal ones the first. −∞ is the best, the logarithm
/// of a metric of 0; NaN, which stands for none, comes last.
std::vector<std::size_t> best_places(const std::vector<double>& scores, int count);

// When a training has come as far as `train.until` asks for, and what it has cost.

/// Operations of one training step: 6 P for each row of a batch, P the parameters outside of the experts and
/// those of the experts that a row reaches under the training gating (all, where that fixes no number).
/// Skipped pairs and smaller last batches count as if they were whole.
template <class Real>
double operations_of_step(const Network<Real>& network, const ModelOptions& model, const TrainOptions& train,
                          int train_samples);

/// The rule of one phase of training.
class StoppingRule {
 public:
  StoppingRule(const std::optional<UntilOptions>& until, double operations_of_step)
      : until_(until), operations_(operations_of_step) {}

  /// Whether training ends at the last entry of `trace`, the records of this phase from its place `first` on;
  /// `steps` are those that the phase has done.
  bool is_reached(const std::vector<TraceEntry>& trace, std::size_t first, std::int64_t steps) const;

 private:
  std::optional<UntilOptions> until_;
  double operations_;
};

/// Whether values no longer fall, see PlateauOptions; values that are not finite are left out.
bool is_plateau(const std::vector<double>& values, int records, double relative);

}  // namespace moelab
