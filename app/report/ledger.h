#pragma once

/// The ledger: every claim of several runs in one Markdown table, each number traceable to its cells.

#include <filesystem>

#include "plots/report.h"

namespace moelab {

/// Writes `file` (Markdown: counts by source and by whose claims they are, p values corrected for the number
/// of claims, for each source its runs with command, time, figure and a table of claims, theorem checks where
/// the report has them), beside it <stem>.cells.csv with the cells behind every claim, and of each run a copy
/// of the first figure of at most kLargestFigure bytes, <run>-<figure>.svg. Equal reports give equal bytes.
/// Returns what was written. Throws EnvironmentError.
std::vector<std::filesystem::path> write_ledger(const Report& report, const std::filesystem::path& file);

/// The point of a claim that a single line can show: the last of a reproduced claim, or else the first that
/// bears the claim's verdict. Null without points.
const ReportedPoint* decisive_point(const ReportedClaim& claim);

constexpr std::uintmax_t kLargestFigure = 200000;

}  // namespace moelab
