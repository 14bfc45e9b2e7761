#pragma once

/// The ledger: every claim of several runs in one Markdown table, each number traceable to its cells.

#include <filesystem>

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

}  // namespace moelab
