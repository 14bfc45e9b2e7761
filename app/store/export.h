#pragma once

/// The tidy table that figures, scripts and people read.

#include <string>
#include <string_view>
#include <vector>

#include "app/run/results.h"

namespace moelab {

/// Columns and rows; a null stands for an empty field.
struct ExportTable {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;
};

/// One row per planned cell, or with `trace` one per cell, recorded step and, where a model has several,
/// layer (names are then without the layers' endings). Columns: cell, arm, seed, the swept paths, state,
/// (step, layer,) then the metrics that occur or that the plan names: first in the order of `metric_order`,
/// the others after them by name. Depends on the recorded numbers alone, not on when or by how many threads
/// they were made.
ExportTable export_table(const RunResults& results, bool trace, const std::vector<std::string>& metric_order);

/// The same table as CSV by RFC 4180 with "\n" line ends, its texts by the rule of csv_cell; doubles in the
/// shortest form that reads back to the same bits, non-finite ones as nan, inf and -inf.
std::string export_csv(const RunResults& results, bool trace, const std::vector<std::string>& metric_order);

// Tables that people hand in as CSV.

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< as many fields each as there are columns
};

/// Reads CSV by RFC 4180, line ends "\n" or "\r\n", a byte-order mark left out, the apostrophe that csv_cell
/// (plots/gnuplot.h) puts before a text taken away. Throws UserError at "source:line" for a line with more
/// or less fields than the head, a quote that is not closed or stands inside a field, a column without a name
/// or twice, and at "source" for a text without a head.
CsvTable parse_csv(std::string_view text, const std::string& source);

}  // namespace moelab
