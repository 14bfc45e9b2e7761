#pragma once

/// The ledger lists every claim of several runs in one Markdown document. Each number can be traced to its
/// cells.

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plots/report/report.h"

namespace moelab {

/// Adds the report's runs to the ledger `file`; they replace runs with the same names. If the report has
/// checks, they replace the ledger's checks. Processes that write at the same time wait for each other. Equal
/// files give equal bytes. Returns the written paths.
///
/// The function writes in this order:
/// - for each run of the report, a file with the ledger's entry, and the first figure of at most
///   kLargestFigure bytes as <run>-<figure>.svg;
/// - from the files of all runs, the ledger and its cells.
///
/// Throws EnvironmentError. Throws UserError before it writes anything
/// - if two runs of the report have the same name;
/// - if there is neither a run nor a check;
/// - if the file of another run is damaged.
std::vector<std::filesystem::path> write_ledger(const Report& report, const std::filesystem::path& file);

constexpr std::uintmax_t kLargestFigure = 400000;

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

/// The data of a ledger.
struct Ledger {
  std::vector<LedgerRun> runs;
  std::vector<ReportedCheck> checks;
};

/// Makes the entry of a reported run, without a figure.
LedgerRun ledger_run(const ReportedRun& run);

/// Returns the point that represents a claim on a single line. It is the last point of a reproduced claim,
/// and otherwise the first point with the claim's verdict. Null without points.
const ReportedPoint* decisive_point(const LedgerClaim& claim);

// Files. A ledger grows run by run. Next to LEDGER.md are the folder LEDGER.runs, with a file for each run,
// and LEDGER.checks.json. Each file is sealed (app/store/durable_file.h).

std::filesystem::path ledger_runs_folder(const std::filesystem::path& ledger);
std::filesystem::path ledger_checks_file(const std::filesystem::path& ledger);

/// Returns the stem of a run's files. It is the run's name if the name has only lower-case letters, digits, _
/// and -. Otherwise the stem is the name reduced to these characters, with a checksum. Different names have
/// different stems, also on disks that ignore case.
std::string ledger_run_stem(const std::string& run_name);

/// Return the contents of the files. Bytes that are not UTF-8 become U+FFFD.
std::string ledger_run_text(const LedgerRun& run);
std::string ledger_checks_text(const std::vector<ReportedCheck>& checks);

/// Returns the run as its file will be read.
LedgerRun as_read(const LedgerRun& run);

/// Reads the runs of all files, in the order of the file names. Empty without the folder. Skips files with
/// the stems `but`. Throws UserError for a file that
/// - is damaged;
/// - does not belong to a ledger;
/// - has another version; or
/// - is not named after its run.
std::vector<LedgerRun> read_ledger_runs(const std::filesystem::path& ledger,
                                        const std::set<std::string>& but);
/// Reads the checks. Empty without the file. Throws UserError as read_ledger_runs does.
std::vector<ReportedCheck> read_ledger_checks(const std::filesystem::path& ledger);

// Documents. They do not depend on the order of the runs.

/// Returns <stem>.cells.csv next to a ledger.
std::filesystem::path ledger_cells_file(const std::filesystem::path& ledger);

/// Returns the Markdown document for `file`:
/// - the builds that made the runs;
/// - the counts of claims by source and origin;
/// - p values corrected for the number of claims;
/// - for each work, its runs with command, time, build, figure and a table of claims;
/// - theorem checks, if there are any.
///
/// Works are sorted by name, and so are the runs of a work. Runs without a source come last.
std::string ledger_text(const Ledger& ledger, const std::filesystem::path& file);

/// Returns CSV with a line for each claim, arm and sweep point. The line has the cells of all seeds. A cell
/// that is not done has its state.
std::string ledger_cells_csv(const Ledger& ledger);

// Works: the papers and talks that the sources of runs name

struct LedgerWork {
  std::string name;  ///< the start of its runs' sources, up to a year or "(slides)"
  std::vector<const LedgerRun*> runs;
};

/// Returns the works and their runs, sorted by name. Runs without a source come last.
std::vector<LedgerWork> runs_by_work(const Ledger& ledger);

}  // namespace moelab
