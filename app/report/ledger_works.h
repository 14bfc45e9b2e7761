#pragma once

/// The works that the runs of a ledger are about.

#include <string>
#include <vector>

#include "app/report/ledger_run.h"

namespace moelab {

struct LedgerWork {
  std::string name;  ///< what the sources of its runs begin with, up to a year or "(slides)"
  std::vector<const LedgerRun*> runs;
};

/// Works and the runs of each in the order of their names; last the runs without a source.
std::vector<LedgerWork> runs_by_work(const Ledger& ledger);

}  // namespace moelab
