#pragma once

/// Tables that people hand in as CSV.

#include <string>
#include <string_view>
#include <vector>

namespace moelab {

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< as many fields each as there are columns
};

/// Reads CSV by RFC 4180, line ends "\n" or "\r\n", a byte-order mark left out, the apostrophe that csv_cell
/// (plots/csv_cell.h) puts before a text taken away. Throws UserError at "source:line" for a line with more
/// or less fields than the head, a quote that is not closed or stands inside a field, a column without a name
/// or twice, and at "source" for a text without a head.
CsvTable parse_csv(std::string_view text, const std::string& source);

}  // namespace moelab
