#pragma once

/// Successive halving: many candidates on few seeds, the better ones on more.

#include <vector>

#include "app/scenario/tune_ranges.h"

namespace moelab {

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

}  // namespace moelab
