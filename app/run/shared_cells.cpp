#include "app/run/shared_cells.h"

#include <chrono>
#include <thread>

namespace moelab {

CellRunner leased(Leases& leases, const CellRunner& runner, const Records& lost) {
  return [&](const Cell& cell, const CellProgress& progress) {
    CellResult result;
    result.state = CellResult::State::interrupted;
    if (!leases.take(cell.id, lost.contains(cell.id))) return result;
    result = runner(cell, progress);
    if (result.state == CellResult::State::interrupted) leases.give_back(cell.id);
    return result;
  };
}

Records wait_for_others(const Scenario& scenario, const SessionOptions& options, Leases& leases,
                        const std::function<bool()>& must_stop) {
  constexpr std::chrono::milliseconds kPoll{500}, kStep{50};
  for (;;) {
    Records records = read_records(options.directory, RecordPart::state);
    for (const Cell* cell : missing_cells(scenario, records, options.share)) {
      if (!leases.take(cell->id)) continue;
      leases.give_back(cell->id);
      return records;
    }
    if (missing_cells(scenario, records, options.share).empty()) return records;
    for (auto waited = kStep; waited <= kPoll; waited += kStep) {
      if (must_stop()) return records;
      std::this_thread::sleep_for(kStep);
    }
  }
}

}  // namespace moelab
