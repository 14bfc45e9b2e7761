#pragma once

/// Plots searched crossings over another swept path: a phase boundary.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/crossing.h"
#include "analysis/stats/result_table.h"
#include "app/figures/figure_kind.h"
#include "app/scenario/json.h"
#include "app/scenario/overrides.h"
#include "plots/figure.h"

namespace moelab {

/// Builds a figure of kind "crossing": {id, x, y, x_scale, y_scale, x_label, y_label, title, where, arms,
/// series, power_law, laws}.
///
/// A line connects the crossings of an arm; a `series` path gives one line per value. Each crossing has its
/// 95 % interval, cut at the search range if it is open. Swept paths that x, the series and `where` do not
/// fix become panels. A search without a crossing leaves a gap, and the caption names it.
Figure build_crossing_figure(const Json& description, const FigureSource& source);

// Crossings of a result table

/// The search of one arm at one point of the other swept paths.
struct CrossingColumn {
  std::string arm;
  SweepPoint at;                    ///< without the searched path
  CrossingProgress progress;        ///< in units of the searched path
  std::optional<double> estimate;   ///< the crossing of the lines between the means; set for state `crosses`
  std::optional<double> low, high;  ///< 95 % interval; an end is unset if it reaches the end of the range
  int left_out = 0;                 ///< number of cells without a value, such as diverged cells
  int sign_changes = 0;  ///< sign changes of the means along all points; above 1 if the curve turns
  std::string note;      ///< message for the reader; may be empty
};

/// The columns of all searches, in the order of the table. The value of a seed is the metric minus the level.
/// With a reference arm, its metric replaces the level, seed by seed. A metric that is positive by definition
/// is compared by its logarithm, as in claims and figures.
///
/// A seed has no value if its cell diverged or failed, or if the metric does not apply.
std::vector<CrossingColumn> crossing_columns(const CrossingSearch& search, const ResultTable& table);

/// The values that the searches need with these results (CrossingSearch::placed). Arms without their own
/// search use the values of the searching arm.
std::vector<std::vector<Json>> placed_values(const CrossingSearch& search, const ResultTable& table);

/// Upper bound on the cells that the searches still need in addition to the table.
std::size_t most_further_cells(const CrossingSearch& search, const ResultTable& table);

/// The name of a state: "crosses", "above", "below", "no value" or "open".
std::string to_string(CrossingState state);

// Laws of crossings

/// The value of an expression at a column, with the searched path set to `crossing`.
std::optional<double> value_of_column(const PlottedValue& text, const CrossingColumn& column,
                                      const CrossingSearch& search, double crossing);

/// Describes how the crossings of one arm scale, with a sentence for each of these fields:
///   power_law   swept paths; a product of their powers is fitted (analysis/stats/rates.h)
///   laws        expressions that should be proportional to the crossings
/// Each sentence gives the remaining standard deviation of the logarithm. Empty without these fields. Throws
/// InvalidOption for an invalid expression.
std::string crossing_laws(const Json& figure, const std::vector<const CrossingColumn*>& found,
                          const CrossingSearch& search, const ResultTable& table, const DisplayNames& names);

}  // namespace moelab
