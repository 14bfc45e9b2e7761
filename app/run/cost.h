#pragma once

/// Estimates time and memory of a run before its cells run.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/run/memory.h"
#include "app/store/store.h"

namespace moelab {

/// The cost of a cell, estimated from its configuration alone.
struct CellCost {
  double operations = 0;      ///< multiplications and additions of training and measuring
  double seconds = 0;         ///< on one thread of a typical machine (see kNominalSpeed)
  double size = 0;            ///< orders cells by size; it has no unit
  double bytes = 0;           ///< peak memory while the cell runs (see memory.h)
  double recorded_bytes = 0;  ///< memory of the cell's results when all of them are read
};

/// Estimates operations, seconds and size. `bytes` and `recorded_bytes` stay 0.
///
/// Operations:
///
///   6 P per training row (2 P forward, 4 P backward) + 2 P per measured row
///
/// P is the number of parameters. For a training row, it counts only the experts that the row reaches under
/// the training gate. The estimate is too low for convolutions, which use each weight many times, and for
/// metrics of row pairs.
///
/// Seconds: the sum of four terms
/// - the operations;
/// - the memory traffic;
/// - the random draws;
/// - the evaluations of fits.
///
/// Memory traffic: per step, the arrays of its passes, the parameters, their gradient and the optimizer's
/// moments; per measured sample, its arrays. `meter` caches the passes of each model.
CellCost estimated_cost(const Cell& cell, PassMeter& meter);
/// Also estimates the memory, which takes longer.
CellCost estimated_cost(const Cell& cell);

struct RunCost {
  std::size_t cells = 0;     ///< cells without a record
  double seconds = 0;        ///< time on the given number of threads
  int learned = 0;           ///< finished cells from which `seconds` was learned
  std::string source;        ///< the basis of `seconds`, for the user: "7 cells done"
  int threads = 0;           ///< threads that have a cell to run
  double cell_bytes = 0;     ///< memory of the largest cell
  double process_bytes = 0;  ///< memory of the program and its plan
  double bytes = 0;          ///< memory of the process: its largest cell on every thread, or all results
};

/// Estimates the cost of a scenario's cells without a record. CellTimes learns their times from the recorded
/// cells.
RunCost run_cost(const Scenario& scenario, const Records& records, int threads);

/// The constants of a typical machine, for one thread: operations per second, bytes per second in float and
/// in double precision, seconds per random draw, seconds per number of the problem and Bayes prediction, and
/// seconds per expert and row of an evaluation that a fit may take at most. Most fits converge long before.
/// The values are fitted to 60 full runs of several builds and machines. The rate in double precision is
/// fitted to one scenario of GELU experts behind a similarity-aware router, and the value of fits to one seed
/// of nine scenarios. Until cells are done (CellTimes), the estimates are usually within a factor of 2.2, and
/// at worst within a factor of 10.
constexpr double kNominalSpeed = 1e11;
constexpr double kNominalBytes = 5e9;
constexpr double kNominalDoubleBytes = 1e9;
constexpr double kNominalDraw = 1e-8;
constexpr double kNominalBayes = 2e-9;
constexpr double kNominalFit = 2e-9;
constexpr double kNominalLikelihood = 3e-8;

// Learned cell times

/// Learns the time of a scenario's cells from the cells that are done.
///
/// A setting is an arm at a sweep point. Its cells differ only in the seed, so they take equally long. If a
/// cell of a setting is recorded, the setting's mean time predicts its other cells. Otherwise the prediction
/// is
///
///   C · exp(m + a_arm + Σ_path b_path,value)
///
/// C is the estimate in seconds (estimated_cost). The effects m, a, b are a least-squares fit to log(mean
/// seconds ÷ C) over the settings with a finished cell, with a small ridge on a and b. An arm or value
/// without data has effect 0. Failed cells are ignored. Diverged cells end early, so they only predict cells
/// of their own setting.
class CellTimes {
 public:
  struct Setting {
    CellCost cost = {};
    const Cell* first = nullptr;  ///< one of the setting's cells
    double seconds = 0;           ///< predicted seconds of a cell on one thread
    int cells = 0, open = 0;      ///< planned cells, and planned cells without a record
    int recorded = 0, done = 0;   ///< cells learned from, and the finished ones among them
    double recorded_seconds = 0, done_seconds = 0;
    std::vector<std::size_t> effects = {};  ///< indices of the effects of its arm and its swept values
  };

  /// Estimates the costs of the cells. If there are very many settings, it estimates an evenly spread subset.
  /// Each other setting gets the estimate of the last estimated setting before it. Keeps pointers to the
  /// scenario's cells.
  explicit CellTimes(const Scenario& scenario);

  /// Learns from a new record of a cell. Ignores failed cells and cells of another plan.
  void learn(const std::string& cell, const std::string& state, double seconds);
  /// The number of cells learned from.
  int learned() const { return learned_; }

  /// Returns the setting of a planned cell, by its id. Throws std::out_of_range for other cells.
  const Setting& of(const Cell& cell) const { return settings_[setting_of_.at(cell.id)]; }
  const std::vector<Setting>& settings() const { return settings_; }

  /// Updates the predictions with everything that has been learned.
  void fit();

 private:
  std::unordered_map<std::string_view, std::size_t> setting_of_;  ///< by cell id
  std::vector<Setting> settings_;
  std::size_t effects_ = 0;
  int learned_ = 0;
};

/// Returns the seconds until all cells are done on `threads` threads. `seconds` holds each cell's time on one
/// thread. The result is the larger of the mean load per thread and the longest cell.
///
/// `partial` is the sum of the shares that running cells have finished. If it is positive, the result is the
/// remaining mean load alone.
double seconds_on_threads(const std::vector<double>& seconds, int threads, double partial = 0);

}  // namespace moelab
