#pragma once

/// What crossings grow with: what a figure of them says of laws that it is given.

#include <optional>
#include <string>
#include <vector>

#include "app/figures/crossing_columns.h"
#include "app/figures/display_names.h"
#include "app/figures/plotted_value.h"
#include "app/json/json.h"

namespace moelab {

/// The value of a text at a column, where the searched path has the value `crossing`.
std::optional<double> value_of_column(const PlottedValue& text, const CrossingColumn& column,
                                      const CrossingSearch& search, double crossing);

/// Of the crossings of one arm, a sentence for each of the figure's fields: "power_law", swept paths of which
/// a product of powers is fitted (analysis/stats/power_law.h), and "laws", expressions that are held to be
/// proportional to the crossings, each with the standard deviation that is left in the logarithm. Empty
/// without the fields. Throws InvalidOption for an expression that is none.
std::string crossing_laws(const Json& figure, const std::vector<const CrossingColumn*>& found,
                          const CrossingSearch& search, const ResultTable& table, const DisplayNames& names);

}  // namespace moelab
