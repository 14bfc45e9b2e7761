#pragma once

/// What running cells costs, told before they run.

#include <string>

#include "app/run/store.h"

namespace moelab {

/// A cell's estimate from its configuration alone.
struct CellCost {
  double operations = 0;  ///< multiplications and additions of training and measuring
  double bytes = 0;       ///< memory while it runs
};

/// Operations: 6 P for each training row (2 P forwards, 4 P backwards) and 2 P for each measured one, with P
/// the parameters, those of the experts that a row reaches under the training gate. Convolutions, which use a
/// weight many times, and metrics of row pairs cost more than that. Bytes: the training set, the test sets
/// with what is measured of them, the parameters with their gradient and moments, and a batch.
CellCost estimated_cost(const Cell& cell);

struct RunCost {
  double seconds = 0;  ///< on the given threads
  std::string source;  ///< what `seconds` comes from, for people
  double bytes = 0;    ///< of the process: its largest cell on every thread
};

/// The cost of the cells of a scenario that have no record. A cell with recorded siblings (the same arm and
/// sweep point, other seeds) takes their mean time; others take their operations at the speed of the recorded
/// cells or, without any, at kNominalSpeed. Of very many settings a part, evenly spread, is looked at.
RunCost run_cost(const Scenario& scenario, const Records& records, int threads);

/// Operations a second of one thread where nothing is recorded that would tell.
constexpr double kNominalSpeed = 2e10;

}  // namespace moelab
