#pragma once

/// Searched crossings of a result table: how far each search is, and where its curve crosses.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/crossing.h"
#include "analysis/stats/result_table.h"

namespace moelab {

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
std::vector<CrossingColumn> crossing_columns(const CrossingRule& search, const ResultTable& table);

/// The ascending values that the searches need with these results, for each arm and point of the other paths.
/// Arms without their own search use the values of the searching arm.
std::vector<std::vector<double>> placed_values(const CrossingRule& search, const ResultTable& table);

/// Upper bound on the cells that the searches still need in addition to the table.
std::size_t most_further_cells(const CrossingRule& search, const ResultTable& table);

/// The name of a state: "crosses", "above", "below", "no value" or "open".
std::string to_string(CrossingState state);

}  // namespace moelab
