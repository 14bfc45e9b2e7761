#pragma once

/// Rules of a scenario that involve more than one field. Shapes (schema.h) check each field first.
///
/// The rules cover:
///   a cell's configuration   sizes, files, metrics, phases, evaluations, convergence, until
///   all cells                distances between means, values in the user's files
///   a searched crossing      its arms and its metric
///   claims                   ids, arms, metrics, sweep points, steps, tuned arms
///   figures                  the References checks for the kinds in plots/kinds
///   labels                   every replaced name exists
///
/// overrides.h checks paths, the sweep and tune. cells.h checks overrides that the sweep or an arm replaces.
/// sim checks the options of one experiment (check() of ExperimentOptions).

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claims.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/errors.h"
#include "app/scenario/json.h"
#include "app/scenario/scenario.h"
#include "plots/kinds/figure_kind.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Checks a name that becomes a file or folder. A name has at most 100 characters: letters, digits, . _ -. It
/// does not start with a dot or a dash.
void check_name(const std::string& name, const std::string& path);

/// Checks one configuration: array sizes fit into memory, options are compatible (check() of
/// ExperimentOptions), metrics can be measured, and no entry is listed twice. Throws InvalidOption at the
/// path in the configuration.
void check_config(const CellOptions& cell);

/// Checks that the names of phases and evaluations are distinct and unambiguous.
void check_phase_names(const CellOptions& cell);

/// Checks each entry of "convergence": its name is valid, and the configuration records its metric.
/// Evaluations must be resolved.
void check_convergence(const CellOptions& cell);

/// Checks "train.until", also in phases: the configuration records its metric. Evaluations must be resolved.
void check_until(const CellOptions& cell);

/// Checks a searched crossing: its arms exist and measure the metric. The metric must have a mean and can lie
/// above or below the level.
void check_crossing(const Scenario& scenario);

/// Checks that some arm measures the objective.
void check_objective(const Scenario& scenario);

/// Checks the claims of an expanded scenario: arms, metrics, sweep points and steps exist and are measured.
void check_claims(const Scenario& scenario, ErrorList& errors);

/// Checks the figures: x, series and `where` are swept and select one value per seed; metrics and arms exist.
void check_figures(const Scenario& scenario);

/// Draws the means of every cell that requires a separation, before any run starts. Throws InvalidOption at
/// "data.separation" if the means cannot be placed.
void check_separation(const Scenario& scenario);

/// Reads the rows that cells take from the user's files. Throws UserError for non-finite entries.
void check_files(const Scenario& scenario);

// Checks that draw a small problem

/// Checks that a model for rows of `data` can read rows of `other`, the data of an evaluation or a phase.
/// Draws small problems of both, unless they differ only in options that do not affect the shape. Throws
/// UserError at `place`.
void check_same_rows(const DataOptions& data, const DataOptions& other, const std::string& place);

/// Checks training against the problem. A quasi-random rule needs a generator that maps uniform variables to
/// rows. The best of several starts needs scalar targets and a loss of single samples. Throws InvalidOption
/// at "train.…".
void check_training_on(const ExperimentOptions& experiment);

// Numbers outside the sweep

/// The paths that expressions of claims and figures use and that have the same number in every cell. Example:
/// data.clusters in "model.experts / data.clusters", if data.clusters is not swept.
std::map<std::string, double> fixed_numbers(const Scenario& scenario);

// Display names

/// Checks that every name in "labels" exists: an arm, a swept path, a swept value ("path=value") or a metric.
/// `variants` are resolved documents: the plain scenario, each profile, and the requested combination. A name
/// may exist in any of them. Throws UserError at the label.
void check_labels(std::span<const Json> variants);

// Measured metrics

/// The metrics of a resolved configuration with resolved evaluations. Reads options, and draws a small
/// problem if a metric needs it.
class MeasuredMetrics {
 public:
  /// `cell` must outlive the object.
  explicit MeasuredMetrics(const CellOptions& cell) : cell_(cell) {}

  /// Checks that the cell measures the metric: its group is chosen, and its evaluation, layer, entry and
  /// inputs exist. Throws UserError at `path`. The message names the arm unless `arm` is empty.
  void check(const std::string& metric, const std::string& path, const std::string& arm = "") const;
  /// All metrics that check() accepts.
  std::vector<std::string> names() const;
  /// What the cell lacks if it measures no metric of the group; empty if it measures one.
  std::string missing_for(const MetricGroup& group) const;

 private:
  /// A test set: the cell's own, or the test set of an evaluation.
  struct Subject;
  const MetricSubject& subject(const std::string& evaluation) const;

  const CellOptions& cell_;
  mutable std::map<std::string, std::shared_ptr<const Subject>> subjects_;
};

/// Whether the metric exists only at the last step, where no meter records it.
bool is_of_end_alone(const std::string& metric);

// References from claims and figures

/// Checks references to arms, metrics, sweep points and steps. Each check throws UserError at `path`.
class References final : public FigureReferences {
 public:
  /// `scenario` must outlive the object.
  explicit References(const Scenario& scenario);

  const ResultTable& table() const override { return table_; }
  const std::vector<Claim>& claims() const override { return scenario_.claims; }

  void check_arm(const std::string& arm, const std::string& path) const override;
  void check_swept(const std::string& name, const std::string& other, const std::string& path) const override;
  void check_metric(const std::string& arm, const std::string& metric,
                    const std::string& path) const override;
  /// Checks that the values of a swept path are numbers.
  void check_numbers(const std::string& swept, const std::string& path) const;
  void check_number(const std::string& name, const std::string& path) const override;
  void check_part(const std::string& arm, const std::string& name, const std::string& path) const override;
  /// Checks that every cell of the arm records the step.
  void check_step(const std::string& arm, const ClaimStep& step, const std::string& path) const;
  void check_metric_at(const std::string& metric, const ClaimStep& step,
                       const std::string& path) const override;
  void check_saved(const std::string& arm, const std::string& arrays, const std::string& path) const override;
  void check_saved_cells(
      const std::vector<std::string>& arms, const SweepPoint& where,
      const std::function<void(const std::string& arm, const MetricSubject&)>& check) const override;
  std::set<int> saved_input_widths(const std::string& arm, const SweepPoint& where) const override;
  std::vector<const SweepPoint*> check_where(const SweepPoint& where, const std::string& path) const override;
  /// Checks that the values of the paths `axes` identify one sweep point of `where`.
  void check_axes(const SweepPoint& where, const std::vector<std::string>& axes,
                  const std::string& path) const;
  void check_sizes(const SweepPoint& where, const std::vector<double>& window, const std::string& along,
                   const std::vector<std::string>& axes, const std::string& path,
                   const std::string& along_path) const override;

 private:
  const Scenario& scenario_;
  ResultTable table_;
  std::map<std::string, std::vector<const CellOptions*>> cells_;  ///< cells of seed 0, by arm
  std::map<const CellOptions*, MeasuredMetrics> metrics_;
  std::map<std::string, std::vector<const MeasuredMetrics*>> measured_;  ///< by arm, without repeats
};

/// Checks that ids are valid names and distinct.
void check_ids(const std::vector<std::string>& ids, const std::string& path);

}  // namespace moelab
