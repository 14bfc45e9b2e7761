#pragma once

/// Reports of runs: the content of an HTML page, and the ledger, which holds results as data.

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/results.h"
#include "plots/report/report.h"

namespace moelab {

/// Returns a report with the state, summary, claims with their cells, figures and provenance of each run. If
/// `checks` is not empty, the report also has the theorem checks in this file, an output of `moelab check
/// --json`. A report without runs has no title. Throws UserError if a directory has no plan, or if the file
/// is no such output.
Report make_report(const std::vector<RunAddress>& runs, const std::filesystem::path& checks);

/// Adds the plan's figures to `run`, and the paths of their SVG files to `run.drawn`.
void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run);

// Ledger: results as data

// A ledger is a folder of JSON files. Pages, tables and other programs read them. It grows run by run.

//   runs/<run>.json    A run: how it was made and its claims, with points as `claims --json` gives them.
//   claims.json        Every claim of every run, with corrected p values and its family.
//   families.json      Claims that test the same words of a work, with their common verdict.
//   checks.json        Theorem checks as `check --json` gives them, without details and curves.
//   figures/<run>.svg  The first figure of the run that is small enough.

// A run lists its builds as objects. All other lists are tables of "columns" and "data". A table has no
// column that is null in every row.

// The points of a run name their claim by its number. claims.json names a family by its row. Numbers have six
// significant digits. They have four in claims.json.

/// A run's entry, and its figures that are drawn.
struct LedgerRun {
  Json entry;
  std::vector<std::filesystem::path> figures;
};

/// Returns the entry of a run:
///
///   {run, title, source, states: {state: count}, command, seconds, processor_seconds,
///    training_share, measuring_share, builds: [{name, cells}], figure, claims: […]}
///
/// `seconds` is elapsed time, and depends on what else the machine does. `processor_seconds` is null if an
/// earlier build recorded cells of the run.
/// A claim has the fields of `claims --json`, without the quotation. The scenario has quotations and notes.
/// `plan` gives the ids of the cells.
///
/// The ledger adds `version` and `work`, the work that the source names. It also lists the points of all
/// claims.
LedgerRun ledger_run(const RunAddress& address);

/// Adds runs to the ledger in `folder`; they replace runs with the same names. If `checks` is a file, it
/// replaces the ledger's checks. Then writes claims.json and families.json from the files of all runs.
/// Processes that write at the same time wait for each other. Equal runs give equal bytes. Returns the
/// written paths.
///
/// Throws EnvironmentError. Throws UserError before it writes anything
/// - if two of the runs have the same name;
/// - if there is neither a run nor a check, and the folder has no runs;
/// - if the file of another run is damaged.
std::vector<std::filesystem::path> write_ledger(std::vector<LedgerRun> runs,
                                                const std::filesystem::path& checks,
                                                const std::filesystem::path& folder);

/// Returns the stem of a run's files. It is the run's name if the name has only lower-case letters, digits, _
/// and -. Otherwise the stem is the name reduced to these characters, with a checksum. Different names have
/// different stems, also on disks that ignore case.
std::string ledger_run_stem(const std::string& run_name);

}  // namespace moelab
