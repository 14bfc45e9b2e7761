#pragma once

/// Runs one cell: problem → data → training → metrics.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/scenario.h"
#include "sim/base/arrays.h"
#include "sim/data/problem.h"

namespace moelab {

struct CellOptions;

/// An array for the file cells/<id>/<name>.npy.
struct SavedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;        ///< row-major; used when `labels` is empty
  std::vector<std::int64_t> labels;  ///< integer arrays
};

/// The processor seconds of a cell's thread. Other work on the machine does not change them. What is neither
/// training nor measuring is drawing the problem.
struct TimeSpent {
  double total = 0;
  double training = 0;   ///< training steps or fits, and drawing the training data
  double measuring = 0;  ///< drawing the test data, records, arrays
};

/// The result of a cell. Apart from the times, two runs of one cell give bit-identical results.
struct CellResult {
  enum class State { done, diverged, failed, interrupted };
  State state = State::done;
  std::string message;            ///< the reason if the cell diverged or failed
  MetricValues metrics;           ///< at the last step
  std::vector<TraceEntry> trace;  ///< at step 0, at every recorded step and at the last one
  std::vector<SavedArray> arrays;
  TimeSpent spent = {};
};

/// Callback of a running cell. The argument is the share of work done, in [0, 1]. It returns true to stop the
/// cell.
using CellProgress = std::function<bool(double)>;

/// Runs the cell on the calling thread. The result's state is
/// - `failed` if an InvalidOption is thrown, for example if a c-separation cannot be reached;
/// - `interrupted` if `progress` returns true;
/// - `diverged` if parameters or a batch's loss are not finite;
/// - `diverged` if at the end predictions or losses on the cell's own data are not finite
///   (analysis/metrics/measured_data.h).
///
/// A record or an evaluation that is not finite has no metrics. It does not change the state.
CellResult run_cell(const Cell& cell, const CellProgress& progress);
/// Runs a cell from options that a program built (see app/scenario/cells.h).
CellResult run_experiment(const CellOptions& cell, const CellProgress& progress);

// The data that a cell draws

/// The data of a cell that a phase trains and tests on.
struct SampledSets {
  std::string prefix;  ///< "<phase>." of a phase before the last; empty otherwise, as for metrics
  Layout layout;
  std::optional<Dataset> train;  ///< none where every step draws fresh points
  Dataset test;                  ///< contaminated as data.contamination says, unless by an attack
  std::string attack;            ///< the contamination that needs the trained model; empty for none
};

/// The sets of every phase, the last phase at the end. A cell without phases has one entry.
std::vector<SampledSets> sampled_sets(const Cell& cell);
/// The sets of the last phase.
SampledSets last_sampled_sets(const Cell& cell);

// Divergence hint

/// Returns advice for a run in which every cell diverged: "every cell diverged; try a learning rate ten times
/// smaller (the largest here is train.lr.router = 10), then smaller inputs and targets …". It includes the
/// largest variance of the cells' labels, computed from the losses of their first records. It omits the
/// variance if `table` has no such losses.
std::string divergence_hint(const Scenario& scenario, const ResultTable& table);

}  // namespace moelab
