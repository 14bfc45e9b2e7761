#pragma once

/// How long the cells of a scenario take, learned from those that are done.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/run/cost.h"

namespace moelab {

/// The cells of an arm at a sweep point, a setting, differ in their seeds alone and take equally long: with
/// one of them recorded, its mean time is that of the others. A setting of which none is recorded takes
/// C · exp(m + a_arm + Σ_path b_path,value), C its estimated seconds. The effects m, a, b are fitted to the
/// logarithms of (mean seconds ÷ C) over the settings with a cell done, by least squares with a small ridge
/// on a and b: what was seen nowhere has effect 0, so that C's own ratio stands. Cells that failed tell
/// nothing; diverged ones, which end early, tell of their like alone.
class CellTimes {
 public:
  struct Setting {
    CellCost cost = {};
    double seconds = 0;          ///< what a cell of it takes on one thread
    int cells = 0, open = 0;     ///< planned; of these without a record
    int recorded = 0, done = 0;  ///< those learned from; of these done
    double recorded_seconds = 0, done_seconds = 0;
    std::vector<std::size_t> effects = {};  ///< places of its arm and its swept values
  };

  /// Estimates the cells' costs: of very many settings a part, evenly spread, with the others as the last one
  /// looked at before them. The scenario's cells stay where they are.
  explicit CellTimes(const Scenario& scenario);

  /// The record of a cell without one so far; one that failed teaches nothing, and one of another plan is
  /// passed over.
  void learn(const std::string& cell, const std::string& state, double seconds);
  /// The number of cells learned from.
  int learned() const { return learned_; }

  /// The setting of a planned cell, by its id. Throws std::out_of_range for another.
  const Setting& of(const Cell& cell) const { return settings_[setting_of_.at(cell.id)]; }
  const std::vector<Setting>& settings() const { return settings_; }

  /// Fits anew to what has been learned.
  void fit();

 private:
  std::unordered_map<std::string_view, std::size_t> setting_of_;  ///< by cell id
  std::vector<Setting> settings_;
  std::size_t effects_ = 0;
  int learned_ = 0;
};

/// Seconds until cells that take `seconds` each on one thread are done on so many threads: the threads' mean
/// load or the longest cell, whichever is more. With `partial` of the cells (their running shares, added up)
/// behind them, the load alone.
double seconds_on_threads(const std::vector<double>& seconds, int threads, double partial = 0);

}  // namespace moelab
