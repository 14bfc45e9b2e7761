#pragma once

/// Which cells a line shows, and in which panel it stands.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/figures/display_names.h"
#include "app/figures/plotted_value.h"
#include "app/json/json.h"

namespace moelab {

/// More panels for swept paths that a figure does not name are refused.
inline constexpr std::size_t kMostFacets = 12;

/// The rows of one arm at one value of the series path (none where arms are the series) in one panel.
struct LineGroup {
  std::string arm;
  std::optional<SweepValue> value;
  SweepPoint facet;
  std::vector<const ResultRow*> rows;
};

/// The swept paths that x, the series and `where` do not settle, of those that vary together the first: none
/// where x is a metric, along which a line goes through all points of the sweep. `searched`, whose values are
/// each point's own, is not looked at.
std::vector<std::string> facet_paths(const Json& figure, const ResultTable& table,
                                     const std::string& searched = "");

/// Of a figure with `x`, `series`, `where` and `arms`.
std::vector<LineGroup> line_groups(const Json& figure, const ResultTable& table);

/// The coordinates of the panels: values of the swept paths that x, series and `where` do not settle, of
/// those that vary together the first. One without coordinates where there are none.
std::vector<SweepPoint> line_facets(const Json& figure, const ResultTable& table);

/// The places of the x axis: numbers, or names when a swept value is not a number. Of metrics their means
/// over the seeds of a point, geometric if positive.
class Horizontal {
 public:
  Horizontal(const std::string& text, const std::vector<LineGroup>& groups, const ResultTable& table,
             const DisplayNames& names);
  const std::vector<std::string>& categories() const { return categories_; }
  bool is_measured() const { return is_measured_; }
  /// What tells points apart that stand at the same x: of metrics the row's arm and point, else nothing.
  std::string point_of(const ResultRow& row) const;
  /// (x, metrics) of a row: one pair for swept paths, one for every recorded step.
  std::vector<std::pair<double, const MetricValues*>> places(const ResultRow& row) const;

 private:
  /// Places the seeds of each point at the mean of their values.
  void add_means(const std::vector<LineGroup>& groups);

  PlottedValue x_;
  bool is_measured_;
  std::map<std::string, double> means_;  ///< by point_of
  std::vector<SweepValue> values_;
  std::vector<std::string> categories_;
};

}  // namespace moelab
