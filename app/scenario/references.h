#pragma once

/// What claims and figures of a scenario may refer to.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/stats/claim.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/measured_metrics.h"
#include "app/scenario/scenario.h"

namespace moelab {

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
