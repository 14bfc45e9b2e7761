#pragma once

/// Fits with the start "search": starts without knowledge of the truth, until another one does not help.

#include <vector>

#include "sim/train/best_fit.h"

namespace moelab {

/// The basins that the starts of a search ended in. A basin is known by its value, which is better the lower
/// it is.
class Basins {
 public:
  /// Adds the value at which a start ended. Values within `same` of a basin's belong to this basin.
  void add(double value, double same);

  /// How many starts ended in the best basin.
  int times_best() const { return basins_.empty() ? 0 : basins_.front().times; }
  int distinct() const { return static_cast<int>(basins_.size()); }
  /// Whether the best basin and the second best were both found at least `repeats` times. A single basin
  /// needs only itself.
  bool is_settled(int repeats) const;

 private:
  struct Basin {
    double value;
    int times;
  };
  std::vector<Basin> basins_;  ///< the lowest first
};

/// The kinds of starts of a search, which take turns. If a start of one kind is impossible, a random start
/// replaces it.
enum class SearchTurn {
  clusters,    ///< at clusters of x and y
  residuals,   ///< at clusters of x and the residuals of the best fit so far
  random,      ///< at the model's initial weights
  split_merge  ///< at the best fit so far with two components merged and one split
};
inline SearchTurn search_turn(int number) {
  return static_cast<SearchTurn>(number % 4);
}

/// A measure in which one random component is merged with a second one, and a third one is split.
///
/// The merged component has the sum of the weights exp(β0), and the weighted means of the parameters. The
/// halves of the split one share its weight. They move apart by independent N(0, spread²). Needs at least two
/// components.
MixingMeasure split_and_merged(const MixingMeasure& measure, double spread, Engine& engine);

/// Runs the start "search" of fit_least_squares(). `start` has the search's places, rows and polishing.
/// Throws InvalidOption as best_fit().
FitOutcome search_fit(const BestFitSetting& setting, const SearchStartOptions& search, SampleLoss& loss,
                      const TrainCallbacks& callbacks);

/// Runs the start "search" of a likelihood fit. The options must pass check_likelihood_fit().
FitOutcome likelihood_search(const LikelihoodFitSetting& setting, const SearchStartOptions& search,
                             const TrainCallbacks& callbacks);

}  // namespace moelab
