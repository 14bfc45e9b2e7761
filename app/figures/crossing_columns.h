#pragma once

/// The searched crossings of a result table: how far each is, and where it lies.

#include <string>
#include <vector>

#include "analysis/stats/crossing.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/crossing_search.h"

namespace moelab {

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

}  // namespace moelab
