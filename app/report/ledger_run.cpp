#include "app/report/ledger_run.h"

#include <algorithm>

namespace moelab {
namespace {

constexpr std::size_t kIdLetters = 8;

std::vector<LedgerCells> ledger_cells(const std::vector<ReportedCell>& cells) {
  std::vector<LedgerCells> groups;
  const ReportedCell* last = nullptr;
  for (const ReportedCell& cell : cells) {
    if (!last || cell.arm != last->arm || cell.at != last->at || cell.metric != last->metric)
      groups.push_back({cell.arm, cell.at, cell.metric, {}});
    const std::string id = cell.id.substr(0, kIdLetters);
    groups.back().cells.push_back(cell.state == "done" ? id : id + ":" + cell.state);
    last = &cell;
  }
  return groups;
}

}  // namespace

LedgerRun ledger_run(const ReportedRun& run) {
  LedgerRun made{run.name,           run.title,           run.source, run.state, run.command, run.seconds,
                 run.training_share, run.measuring_share, {},         "",        {}};
  for (const auto& [name, cells] : run.builds) made.builds.push_back({name, cells});
  for (const ReportedClaim& claim : run.claims) {
    made.claims.push_back({claim.id, claim.verdict, claim.text, claim.source, claim.reported, claim.origin,
                           claim.statement, claim.p_value, claim.seeds_to_decide, claim.points,
                           ledger_cells(claim.cells)});
  }
  return made;
}

const ReportedPoint* decisive_point(const LedgerClaim& claim) {
  if (claim.points.empty()) return nullptr;
  const auto found = std::find_if(claim.points.begin(), claim.points.end(), [&](const ReportedPoint& point) {
    return claim.verdict != "reproduced" && point.verdict == claim.verdict;
  });
  return found == claim.points.end() ? &claim.points.back() : &*found;
}

}  // namespace moelab
