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
  const ExportTable table = export_table(results, arguments.trace, metric_names());
  if (!arguments.out.empty()) replace_file(arguments.out, csv_text(table));
  if (arguments.json) {
    Json answer = {{"columns", table.columns}, {"rows", table.rows}};
    if (!arguments.out.empty()) answer = {{"file", arguments.out.string()}, {"rows", table.rows.size()}};
    std::cout << answer.dump(1) << '\n';
  } else if (arguments.out.empty()) {
    std::cout << csv_text(table);
  }
  return 0;
}

}  // namespace moelab
