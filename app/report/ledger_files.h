#pragma once

/// The files that a ledger is made from, so that it grows run by run: beside LEDGER.md the folder LEDGER.runs
/// with a file for each run, and LEDGER.checks.json. They carry the checksum of their text (app/run/seal.h).

#include <filesystem>
#include <set>
#include <string>

#include "app/report/ledger_run.h"

namespace moelab {

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

}  // namespace moelab
