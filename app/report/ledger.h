#pragma once

/// The ledger: every claim of several runs in one Markdown table, each number traceable to its cells.

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plots/report.h"

namespace moelab {

/// Puts the report's runs into the ledger `file`, in place of runs of the same names, beside the others that
/// it has; the report's checks in place of its own, where there are some. Writes for each run given a file of
/// what the ledger says of it (ledger_files.h) and a copy of its first figure of at most kLargestFigure
/// bytes, <run>-<figure>.svg; then, from the files of all runs, the ledger and its cells (ledger_text.h). Of
/// processes that do so at a time each waits for the others. Equal files give equal bytes.
/// Returns what was written. Throws UserError, before anything is written, where two of the report's runs
/// have one name, where there is neither a run nor a check, and where a file of another run is damaged;
/// EnvironmentError.
std::vector<std::filesystem::path> write_ledger(const Report& report, const std::filesystem::path& file);

constexpr std::uintmax_t kLargestFigure = 400000;

// What a ledger says of a run, every number but p values, times and counts already a text.

/// The cells of all seeds behind a claim, of one arm at one sweep point with one metric.
struct LedgerCells {
  std::string arm, at, metric;
  /// Beginnings of ids, which `reproduce` takes; of cells that are not done with their state: "0123abcd",
  /// "4567cdef:failed".
  std::vector<std::string> cells;
};

/// A claim; the members are those of ReportedClaim.
struct LedgerClaim {
  std::string id, verdict, text, source, reported, origin, statement;
  std::optional<double> p_value;
  std::optional<int> seeds_to_decide;
  std::vector<ReportedPoint> points;
  std::vector<LedgerCells> cells;
};

/// A build of the program, and how many of a run's cells it recorded.
struct LedgerBuild {
  std::string name;
  int cells = 0;
};

struct LedgerRun {
  std::string name, title, source, state, command;
  double seconds = 0;  ///< time of its cells, one after another, as the clock had it
  std::optional<double> training_share, measuring_share;
  std::vector<LedgerBuild> builds;  ///< by name
  std::string figure;               ///< the copy of a figure beside the ledger; empty without one
  std::vector<LedgerClaim> claims;
};

/// All that a ledger is made from.
struct Ledger {
  std::vector<LedgerRun> runs;
  std::vector<ReportedCheck> checks;
};

/// What a ledger says of a reported run, without a figure.
LedgerRun ledger_run(const ReportedRun& run);

/// The point of a claim that a single line can show: the last of a reproduced claim, or else the first that
/// bears the claim's verdict. Null without points.
const ReportedPoint* decisive_point(const LedgerClaim& claim);

// The files that a ledger is made from, so that it grows run by run: beside LEDGER.md the folder LEDGER.runs
// with a file for each run, and LEDGER.checks.json. They carry the checksum of their text
// (app/store/durable_file.h).

std::filesystem::path ledger_runs_folder(const std::filesystem::path& ledger);
std::filesystem::path ledger_checks_file(const std::filesystem::path& ledger);

/// What the files of a run are called: its name where that has small letters, digits, _ and - alone; what is
/// left of it, cut, with a checksum otherwise. Runs of different names have different ones, on disks that do
/// not tell small letters from capitals, too.
std::string ledger_run_stem(const std::string& run_name);

/// The texts of the files. Bytes that are not UTF-8 become U+FFFD.
std::string ledger_run_text(const LedgerRun& run);
std::string ledger_checks_text(const std::vector<ReportedCheck>& checks);

/// The run that a file's text will be read as.
LedgerRun as_read(const LedgerRun& run);

/// The runs of all files, by the files' names, but for those with the stems `but`, which may be damaged; none
/// where there is no folder. Throws UserError for a file that is damaged, not of a ledger, of another
/// version, or not called like its run.
std::vector<LedgerRun> read_ledger_runs(const std::filesystem::path& ledger,
                                        const std::set<std::string>& but);
/// The checks; none where there is no file. Throws UserError likewise.
std::vector<ReportedCheck> read_ledger_checks(const std::filesystem::path& ledger);

// The documents of a ledger. Equal ledgers give equal bytes, in whatever order their runs stand.

/// <stem>.cells.csv beside a ledger.
std::filesystem::path ledger_cells_file(const std::filesystem::path& ledger);

/// Markdown: how many builds made the runs, counts by source and by whose claims they are, p values corrected
/// for the number of claims, for each source its runs with command, time, build, figure and a table of
/// claims, theorem checks where there are some. `file` is where it will stand. Works are in the order of
/// their names, those without a source last; the runs of a work in the order of theirs.
std::string ledger_text(const Ledger& ledger, const std::filesystem::path& file);

/// A line for each claim, arm and sweep point: the cells of all seeds, those that are not done with their
/// state.
std::string ledger_cells_csv(const Ledger& ledger);

// The works that the runs of a ledger are about.

struct LedgerWork {
  std::string name;  ///< what the sources of its runs begin with, up to a year or "(slides)"
  std::vector<const LedgerRun*> runs;
};

/// Works and the runs of each in the order of their names; last the runs without a source.
std::vector<LedgerWork> runs_by_work(const Ledger& ledger);

}  // namespace moelab
