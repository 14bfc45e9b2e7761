#pragma once

/// Checks that look at more than one field, after every field has been checked by its shape.

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claims.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/scenario/scenario.h"
#include "sim/train/experiment.h"

namespace moelab {

/// A name that becomes a file or folder: letters, digits, . _ -, at most 100 of them, not led by a dot or
/// dash.
void check_name(const std::string& name, const std::string& path);

/// One resolved configuration, and what was read of it: no array beyond all memory, options that go together
/// (see check() of ExperimentOptions), metrics that can be taken, nothing listed twice. Throws InvalidOption
/// at the path in the configuration.
void check_config(const Json& config, const ExperimentOptions& experiment);

/// Each entry of "convergence" looks at a metric that the configuration, whose evaluations are resolved,
/// records, and has a name that is one.
void check_convergence(const Json& config);

/// "train.until", of a phase too, looks at a metric that the configuration, whose evaluations are resolved,
/// records.
void check_until(const Json& config);

/// A searched crossing: the arms exist and measure the metric, which has a mean and may lie on either side of
/// the level.
void check_crossing(const Scenario& scenario);

/// The claims of an expanded scenario: arms, metrics, sweep points and steps exist and are measured.
void check_claims(const Scenario& scenario);

/// The figures: x, series and `where` are swept and single out one value per seed; metrics and arms exist.
void check_figures(const Scenario& scenario);

/// Draws the means of every cell that requires a separation. Throws InvalidOption at "data.separation" where
/// no place is found, before anything runs.
void check_separation(const Scenario& scenario);

/// Reads the rows that cells take from the user's files. Throws UserError for entries that are not finite.
void check_files(const Scenario& scenario);

// What cannot be told before a problem is drawn: the shape of its rows, maps from uniform variables.

/// A model that reads rows of `data` can read those of `other`, of an evaluation or a phase: small problems
/// are drawn of both, unless they differ in what has no part in the shape alone. Throws UserError at `place`.
void check_same_rows(const Json& data, const Json& other, const std::string& place);

/// A quasi-random rule has a generator with a map from uniform variables, the best of several starts targets
/// of one number. `data` are those of the configuration. Throws InvalidOption at "train.…".
void check_training_on(const Json& data, const TrainOptions& train);

// Numbers of a scenario that expressions of its claims and figures may name though they are not swept, such
// as data.clusters in "model.experts / data.clusters".

/// The paths that expressions name and at which every cell has the same number, with that number.
std::map<std::string, double> fixed_numbers(const Scenario& scenario);

// Display names ("labels").

/// Every name that "labels" replaces is an arm, a swept path or one of its values ("path=value"), or a
/// metric, in one of the scenario's `variants`, resolved documents: as it stands, by its profiles, as it was
/// asked for. Throws UserError at the label.
void check_labels(std::span<const Json> variants);

// Which metrics a cell measures.

/// The metrics of a resolved configuration, evaluations resolved too. Options are read, and a small problem
/// is drawn, where a metric asks for them.
class MeasuredMetrics {
 public:
  explicit MeasuredMetrics(CellConfig config) : config_(std::move(config)) {}

  /// The cell measures the metric: its group is chosen, the evaluation, the layer and the entry are there,
  /// and so is what the metric is taken of. Throws UserError at `path`, which names the
  /// arm unless it is empty.
  void check(const std::string& metric, const std::string& path, const std::string& arm = "") const;
  /// All that check() accepts.
  std::vector<std::string> names() const;

 private:
  /// A test set: the cell's own, or one of its evaluations.
  struct Subject;
  const MetricSubject& subject(const std::string& evaluation) const;

  CellConfig config_;
  mutable std::map<std::string, std::shared_ptr<const Subject>> subjects_;
};

/// Whether the metric is known at the last step alone: no meter takes it.
bool is_of_end_alone(const std::string& metric);

// What claims and figures of a scenario may refer to.

/// Each check throws UserError at `path`.
class References {
 public:
  /// `scenario` outlives the object.
  explicit References(const Scenario& scenario);

  /// A table without results: the arms, and one row for each sweep point.
  const ResultTable& table() const { return table_; }
  /// The scenario's claims.
  const Json& claims() const { return claims_; }

  void check_arm(const std::string& arm, const std::string& path) const;
  /// A swept path, or `other` unless that is empty.
  void check_swept(const std::string& name, const std::string& other, const std::string& path) const;
  /// The arm measures it.
  void check_metric(const std::string& arm, const std::string& metric, const std::string& path) const;
  /// The values of a swept path are numbers.
  void check_numbers(const std::string& swept, const std::string& path) const;
  /// A swept path of numbers, or one at which all cells have one number.
  void check_number(const std::string& name, const std::string& path) const;
  /// A name in an expression: a metric that the arm measures, or such a path.
  void check_part(const std::string& arm, const std::string& name, const std::string& path) const;
  /// The run of every cell of the arm records that step.
  void check_step(const std::string& arm, const ClaimStep& step, const std::string& path) const;
  /// The metric has a value at that step: at the start nothing is held against a step before, and some
  /// metrics are of the end alone.
  void check_metric_at(const std::string& metric, const ClaimStep& step, const std::string& path) const;
  /// Every cell of the arm saves these arrays, "routing" or "weights", and has a routing.
  void check_saved(const std::string& arm, const std::string& arrays, const std::string& path) const;
  /// The numbers of columns of the test inputs that the arm's cells at `where` save, each once. Small
  /// problems are drawn for them.
  std::set<int> saved_input_widths(const std::string& arm, const SweepPoint& where) const;
  /// The sweep points at the `where` of the part of a scenario at `path`: swept paths, and at least one
  /// point.
  std::vector<const SweepPoint*> check_where(const SweepPoint& where, const std::string& path) const;
  /// Every point of a figure or regression, told by `axes`, belongs to one sweep point of `where`.
  void check_axes(const SweepPoint& where, const std::vector<std::string>& axes,
                  const std::string& path) const;
  /// Along the path n is a number above 1, of which there are three or more in the window of `part` (a claim
  /// or a figure); one sweep point of its `where` for each point that `axes` tell.
  void check_sizes(const Json& part, const std::string& along, const std::vector<std::string>& axes,
                   const std::string& path, const std::string& along_path) const;

 private:
  ResultTable table_;
  const Json& claims_;
  std::map<std::string, std::vector<const CellConfig*>> configs_;
  std::map<std::vector<const Json*>, MeasuredMetrics> metrics_;          ///< by the configurations' parts
  std::map<std::string, std::vector<const MeasuredMetrics*>> measured_;  ///< of each arm, each once
};

/// The sweep points that a figure or a claim on a rate is restricted to; none of that without "where".
SweepPoint where_of(const Json& part);

/// Ids are names, and distinct.
void check_ids(const Json& parts, const std::string& path);

}  // namespace moelab
