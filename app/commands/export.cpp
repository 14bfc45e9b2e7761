#include "app/run/export.h"

#include <iostream>

#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "app/run/durable_file.h"

namespace moelab {
namespace {

int write_table(const Arguments& arguments) {
  const bool to_file = !arguments.out.empty();
  if (to_file) check_written_file(arguments.out, "--out");
  const RunResults results =
      load_results(run_address(arguments), arguments.trace ? RecordPart::all : RecordPart::metrics);
  print_notes(results);
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
    std::cout << json_text(answer, 1) << '\n';
  }
  return 0;
}

}  // namespace

Verb export_verb() {
  return {"export", "Print the results as CSV, one row per cell",
          "export runs/fig2a-quick --trace --out trace.csv", [](Arguments& arguments) -> VerbCall {
            return {joined(directory_options(arguments),
                           {{{"--trace", &arguments.trace, "one row per cell and recorded step"},
                             {"--out", &arguments.out, "file to write instead of stdout"},
                             json_option(arguments)}}),
                    [&] { return write_table(arguments); }};
          }};
}

}  // namespace moelab
