#pragma once

/// Runs one cell: problem → data → training → metrics.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/scenario.h"
#include "sim/base/arrays.h"

namespace moelab {

struct CellOptions;

/// An array to be written as cells/<id>/<name>.npy.
struct SavedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;        ///< row-major; used when `labels` is empty
  std::vector<std::int64_t> labels;  ///< integer arrays
};

/// Seconds that a cell takes for its two kinds of work; what is left of its time is drawing its problem.
struct TimeSpent {
  double training = 0;   ///< steps, or a fit, and drawing what they train on
  double measuring = 0;  ///< drawing what is measured on, records, arrays
};

/// What a cell leaves behind. But for its times, two runs of one cell give equal results to the last bit.
struct CellResult {
  enum class State { done, diverged, failed, interrupted };
  State state = State::done;
  std::string message;            ///< why it diverged or failed
  MetricValues metrics;           ///< at the last step
  std::vector<TraceEntry> trace;  ///< at step 0, at every recorded step and at the last one
  std::vector<SavedArray> arrays;
  TimeSpent spent = {};
};

/// Called now and then from the running cell with the share done in [0, 1]; returns true to abandon it.
using CellProgress = std::function<bool(double)>;

/// Runs the cell on the calling thread. An InvalidOption (a c-separation that cannot be reached, say) becomes
/// the state `failed`; an abandoned cell is `interrupted`. `diverged` is a cell of which parameters, a
/// batch's loss, or at the end predictions or losses on its own data are not finite
/// (analysis/metrics/measured_data.h). A record or an evaluation that is not finite has no metrics, and that
/// is all.
CellResult run_cell(const Cell& cell, const CellProgress& progress);
/// The same for options that a program wrote, see app/scenario/cells.h.
CellResult run_experiment(const CellOptions& cell, const CellProgress& progress);

// What to try when training diverged in every cell.

/// "every cell diverged; try a smaller learning rate: the largest is train.lr.router = 10; …" for a run whose
/// cells are all diverged. The labels' variance is that of the largest among the cells, from the losses of
/// their first step; where `table` holds none, nothing is said of it.
std::string divergence_hint(const Scenario& scenario, const ResultTable& table);

}  // namespace moelab
