#pragma once

/// What running cells costs, told before they run.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/store/store.h"

namespace moelab {

/// A cell's estimate from its configuration alone.
struct CellCost {
  double operations = 0;      ///< multiplications and additions of training and measuring
  double seconds = 0;         ///< of one thread of a usual machine, from the constants below
  double bytes = 0;           ///< memory while it runs, at its peak; see memory.h
  double recorded_bytes = 0;  ///< of its results when all are read
};

/// Operations: 6 P for each training row (2 P forwards, 4 P backwards) and 2 P for each measured one, with P
/// the parameters, those of the experts that a row reaches under the training gate. Convolutions, which use a
/// weight many times, and metrics of row pairs cost more than that. Seconds: the operations, the bytes that
/// pass by, the draws, and what fits evaluate. Bytes are what the passes of a batch leave and the parameters
/// with their gradient and moments (CellMemory), once for every step, and for a measured row as many as for
/// one of a batch.
CellCost estimated_cost(const Cell& cell);

struct RunCost {
  std::size_t cells = 0;     ///< without a record
  double seconds = 0;        ///< on the given threads
  int learned = 0;           ///< cells done that `seconds` was learned from
  std::string source;        ///< what `seconds` comes from, for people: "7 cells done"
  int threads = 0;           ///< that have a cell to run
  double cell_bytes = 0;     ///< of the largest cell
  double process_bytes = 0;  ///< of the program and its plan
  double bytes = 0;          ///< of the process: its largest cell on every thread, or all results
};

/// The cost of the cells of a scenario that have no record, their times as CellTimes learns them from those
/// that have one.
RunCost run_cost(const Scenario& scenario, const Records& records, int threads);

/// A usual machine: operations and bytes a second of one thread, and the seconds of a number that is drawn
/// and of an expert at a row in an evaluation of a fit, for which half of those allowed are needed. They are
/// those that explain the times of 60 full runs best, of several builds and machines: to a factor of 2.2, as
/// a rule, 10 at worst, until cells are done (CellTimes).
constexpr double kNominalSpeed = 1e11;
constexpr double kNominalBytes = 5e9;
constexpr double kNominalDraw = 1e-8;
constexpr double kNominalFit = 3e-8;

// How long the cells of a scenario take, learned from those that are done.

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
