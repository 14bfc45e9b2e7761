#pragma once

/// What a ledger says of a run, every number but p values, times and counts already a text.

#include <optional>
#include <string>
#include <vector>

#include "plots/report.h"

namespace moelab {

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

}  // namespace moelab
