#include "app/run/export.h"

#include <fmt/format.h>

#include <iostream>

#include "app/commands/verbs.h"
#include "app/run/durable_file.h"
#include "app/run/metric_groups.h"

namespace moelab {

int run_export_command(const Arguments& arguments) {
  const RunResults results =
      load_results(arguments.directory, arguments.trace ? RecordPart::all : RecordPart::metrics);
  warn_of_builds(results);
  const bool to_file = !arguments.out.empty();
  if (to_file || !arguments.json) {
    const std::string csv = export_csv(results, arguments.trace, metric_names());
    if (to_file) {
      replace_file(arguments.out, csv);
    } else {
      std::cout << csv;
    }
  }
  if (arguments.json) {
    const ExportTable table = export_table(results, arguments.trace, metric_names());
    Json answer = {{"columns", table.columns}, {"rows", table.rows}};
    if (to_file) answer = {{"file", arguments.out.string()}, {"rows", table.rows.size()}};
    std::cout << answer.dump(1) << '\n';
  }
  return 0;
}

}  // namespace moelab
