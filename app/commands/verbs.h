#pragma once

/// The verbs of the program, one source file each. They answer on stdout, warn on stderr, return the exit
/// status (0 done, 1 a cell failed or a check's verdict is not the expected one, 130 interrupted) and throw
/// UserError (2) or EnvironmentError (3).

#include "app/commands/arguments.h"

namespace moelab {

/// Runs the missing cells, then judges the claims and draws the figures.
int run_run_command(const Arguments& arguments);
/// Says what `run` would do. Writes nothing.
int run_plan_command(const Arguments& arguments);
/// Writes a scenario to start from, and beside it the JSON Schema that it names; refuses a file that exists.
int run_new_command(const Arguments& arguments);
/// Checks a scenario.
int run_validate_command(const Arguments& arguments);
/// Prints the JSON Schema of scenario files.
int run_schema_command();
/// Writes the documents that are made from the program's tables.
int run_docs_command(const Arguments& arguments);
/// Lists the parts that scenarios are made of, with their fields.
int run_list_command(const Arguments& arguments);
/// Prints the table of results as CSV.
int run_export_command(const Arguments& arguments);
/// Counts the cells of a run directory by state.
int run_status_command(const Arguments& arguments);
/// Puts several run directories side by side: the main metric by arm and sweep point, and the verdicts.
int run_compare_command(const Arguments& arguments);
/// Writes runs as one HTML file that opens from disk.
int run_report_command(const Arguments& arguments);
/// Runs one recorded cell again and compares its numbers and arrays to the last bit; 1 when they differ.
int run_reproduce_command(const Arguments& arguments);
/// Reads every record and every array of a run directory; 1 when one is damaged.
int run_verify_command(const Arguments& arguments);
/// Writes an array job for Slurm, and submits it where asked to.
int run_slurm_command(const Arguments& arguments);
/// Writes the data that a cell draws.
int run_sample_command(const Arguments& arguments);
/// Runs theorem checks and compares their verdicts with the expected ones.
int run_check_command(const Arguments& arguments);

}  // namespace moelab
