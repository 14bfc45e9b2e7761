#pragma once

/// The tidy table of a run's results, for figures, scripts and people. Also reads CSV tables from other
/// programs.

#include <string>
#include <string_view>
#include <vector>

#include "app/run/results.h"

namespace moelab {

/// A table of JSON values. A null is an empty field.
struct ExportTable {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;
};

/// Returns the results as a tidy table.
///
/// - Without `trace`, one row per planned cell. The field of a path that its arm does not sweep is empty.
/// - With `trace`, one row per cell, recorded step and layer. Layers have rows only if a model has several.
///   Metric names then lack the layer suffix.
///
/// Columns: cell, arm, seed, the swept paths, state, with `trace` also step and layer, then the metrics. A
/// metric has a column if it occurs or if the plan names it. Metrics in `metric_order` come first, in that
/// order. The others follow by name. The table depends only on the recorded numbers, not on time or number of
/// threads.
ExportTable export_table(const RunResults& results, bool trace, const std::vector<std::string>& metric_order);

/// Returns the same table as CSV (RFC 4180) with "\n" line ends. Texts are escaped by csv_cell. Doubles have
/// the shortest form that reads back to the same bits. Non-finite doubles are nan, inf and -inf.
std::string export_csv(const RunResults& results, bool trace, const std::vector<std::string>& metric_order);

// CSV input

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each row has as many fields as there are columns
};

/// Parses CSV (RFC 4180) with line ends "\n" or "\r\n". Skips a byte-order mark. Removes the apostrophe that
/// csv_cell (plots/report/table.h) puts before a text.
///
/// Throws UserError
/// - at "source:line" if a line has more or fewer fields than the header;
/// - at "source:line" if a quote is not closed or stands inside a field, or if text follows a quoted field;
/// - at "source:line" if a column other than the first has no name, or the same name as another one;
/// - at "source" if the text has no header, is not UTF-8, or has line ends of "\r" alone.
CsvTable parse_csv(std::string_view text, const std::string& source);

}  // namespace moelab
