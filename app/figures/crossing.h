#pragma once

/// Searched crossings drawn over another swept path: a phase boundary.

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

/// One figure of plan["figures"] of kind "crossing": {id, x, y, x_scale, y_scale, x_label, y_label, title,
/// where, arms, series, power_law, laws}. A line is an arm's crossings, at one value of the series if that is
/// a path, each with its 95 % interval, which ends at the range where it is open. Swept paths that x, the
/// series and `where` do not settle make panels. A search that found none leaves a gap, which the caption
/// tells.
Figure build_crossing_figure(const Json& description, const FigureSource& source);

// The searched crossings of a result table: how far each is, and where it lies.

/// A search of one arm at one point of the other swept paths.
struct CrossingColumn {
  std::string arm;
  SweepPoint at;                    ///< without the searched path
  CrossingProgress progress;        ///< in values of the path
  std::optional<double> estimate;   ///< where the lines between the means cross; of `crosses` alone
  std::optional<double> low, high;  ///< of its 95 % interval; none where that reaches the end of the range
  int left_out = 0;                 ///< cells without a value, such as those that diverged
  int sign_changes = 0;             ///< of the means along all points: more than 1 where the curve turns
  std::string note;                 ///< what has to be said of it for people; may be empty
};

/// In the order of the table. A point's values are those of the metric minus the level (or minus those of the
/// arm that it is held against, seed by seed), or of their logarithms where the metric is positive by
/// definition, as claims and figures average it. A seed has none where its cell diverged or failed, or the
/// metric does not apply.
std::vector<CrossingColumn> crossing_columns(const CrossingSearch& search, const ResultTable& table);

/// The values that the searches need, given these results (CrossingSearch::placed): for arms that have no
/// search of their own those of the arm that has.
std::vector<std::vector<Json>> placed_values(const CrossingSearch& search, const ResultTable& table);

/// How many more cells the searches can come to need, beyond those of the table.
std::size_t most_further_cells(const CrossingSearch& search, const ResultTable& table);

/// "crosses", "above", "below", "no value" or "open".
std::string to_string(CrossingState state);

// What crossings grow with: what a figure of them says of laws that it is given.

/// The value of a text at a column, where the searched path has the value `crossing`.
std::optional<double> value_of_column(const PlottedValue& text, const CrossingColumn& column,
                                      const CrossingSearch& search, double crossing);

/// Of the crossings of one arm, a sentence for each of the figure's fields: "power_law", swept paths of which
/// a product of powers is fitted (analysis/stats/rates.h), and "laws", expressions that are held to be
/// proportional to the crossings, each with the standard deviation that is left in the logarithm. Empty
/// without the fields. Throws InvalidOption for an expression that is none.
std::string crossing_laws(const Json& figure, const std::vector<const CrossingColumn*>& found,
                          const CrossingSearch& search, const ResultTable& table, const DisplayNames& names);

}  // namespace moelab
