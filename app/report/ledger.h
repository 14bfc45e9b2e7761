#pragma once

/// Reports of runs. The ledger lists every claim of several runs in one Markdown document. Each number can be
/// traced to its cells.

#include <filesystem>
#include <optional>
#include <set>
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

// Ledger

/// Adds the report's runs to the ledger `file`; they replace runs with the same names. If the report has
/// checks, they replace the ledger's checks. Processes that write at the same time wait for each other. Equal
/// files give equal bytes. Returns the written paths.
///
/// The function writes in this order:
/// - for each run of the report, a file with the ledger's entry, and the first figure of at most
///   400000 bytes as <run>-<figure>.svg;
/// - from the files of all runs, the ledger and its cells.
///
/// Throws EnvironmentError. Throws UserError before it writes anything
/// - if two runs of the report have the same name;
/// - if there is neither a run nor a check;
/// - if the file of another run is damaged.
std::vector<std::filesystem::path> write_ledger(const Report& report, const std::filesystem::path& file);

// Entries. Numbers are texts, except p values, times and counts.

/// The cells of all seeds that a claim compares, of one arm at one sweep point with one metric.
struct LedgerCells {
  std::string arm, at, metric;
  /// Prefixes of cell ids, as `reproduce` accepts them. A cell that is not done has its state: "0123abcd",
  /// "4567cdef:failed".
  std::vector<std::string> cells;
};

/// A claim, with the members of ReportedClaim.
struct LedgerClaim {
  std::string id, verdict, text, source, reported, origin, statement;
  std::optional<double> p_value;
  std::optional<int> seeds_to_decide;
  std::vector<ReportedPoint> points;
  std::vector<LedgerCells> cells;
};

/// A build of the program, and the number of a run's cells that it recorded.
struct LedgerBuild {
  std::string name;
  int cells = 0;
};

struct LedgerRun {
  std::string name, title, source, state, command;
  double seconds = 0;  ///< sum of the wall times of its cells
  std::optional<double> training_share, measuring_share;
  std::vector<LedgerBuild> builds;  ///< by name
  std::string figure;               ///< copy of a figure next to the ledger; empty if there is none
  std::vector<LedgerClaim> claims;
};

/// Makes the entry of a reported run, without a figure.
LedgerRun ledger_run(const ReportedRun& run);

/// Returns the point that represents a claim on a single line. It is the last point of a reproduced claim,
/// and otherwise the first point with the claim's verdict. Null without points.
const ReportedPoint* decisive_point(const LedgerClaim& claim);

// Files. A ledger grows run by run. Next to LEDGER.md are the folder LEDGER.runs, with a file for each run,
// and LEDGER.checks.json. Each file is sealed (app/store/durable_file.h).

/// Returns the stem of a run's files. It is the run's name if the name has only lower-case letters, digits, _
/// and -. Otherwise the stem is the name reduced to these characters, with a checksum. Different names have
/// different stems, also on disks that ignore case.
std::string ledger_run_stem(const std::string& run_name);

/// Returns the content of a run's file. Bytes that are not UTF-8 become U+FFFD.
std::string ledger_run_text(const LedgerRun& run);

/// Reads the runs of all files, in the order of the file names. Empty without the folder. Skips files with
/// the stems `but`. Throws UserError for a file that
/// - is damaged;
/// - does not belong to a ledger;
/// - has another version; or
/// - is not named after its run.
std::vector<LedgerRun> read_ledger_runs(const std::filesystem::path& ledger,
                                        const std::set<std::string>& but);

}  // namespace moelab
