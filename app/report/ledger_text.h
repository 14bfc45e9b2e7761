#pragma once

/// The documents of a ledger. Equal ledgers give equal bytes, in whatever order their runs stand.

#include <filesystem>
#include <string>

#include "app/report/ledger_run.h"

namespace moelab {

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

}  // namespace moelab
