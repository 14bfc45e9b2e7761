#pragma once

/// What running cells costs, told before they run.

#include <string>

#include "app/run/store.h"

namespace moelab {

/// A cell's estimate from its configuration alone.
struct CellCost {
  double operations = 0;      ///< multiplications and additions of training and measuring
  double seconds = 0;         ///< of one thread of a usual machine, from the constants below
  double bytes = 0;           ///< memory while it runs, at its peak; see memory.h
  double recorded_bytes = 0;  ///< of its results when all are read
};

/// Operations: 6 P for each training row (2 P forwards, 4 P backwards) and 2 P for each measured one, with P
/// the parameters, those of the experts that a row reaches under the training gate. Convolutions, which use a
/// weight many times, and metrics of row pairs cost more than that. Seconds: the operations, the bytes that
/// pass by, the draws, and what fits evaluate. Bytes are what the passes of a batch leave and the parameters
/// with their gradient and moments (CellMemory), once for every step, and for a measured row as many as for
/// one of a batch.
CellCost estimated_cost(const Cell& cell);

struct RunCost {
  std::size_t cells = 0;     ///< without a record
  double seconds = 0;        ///< on the given threads
  int learned = 0;           ///< cells done that `seconds` was learned from
  std::string source;        ///< what `seconds` comes from, for people: "7 cells done"
  int threads = 0;           ///< that have a cell to run
  double cell_bytes = 0;     ///< of the largest cell
  double process_bytes = 0;  ///< of the program and its plan
  double bytes = 0;          ///< of the process: its largest cell on every thread, or all results
};

/// The cost of the cells of a scenario that have no record, their times as CellTimes learns them from those
/// that have one.
RunCost run_cost(const Scenario& scenario, const Records& records, int threads);

/// A usual machine: operations and bytes a second of one thread, and the seconds of a number that is drawn
/// and of an expert at a row in an evaluation of a fit, for which half of those allowed are needed. They are
/// those that explain the times of 60 full runs best, of several builds and machines: to a factor of 2.2, as
/// a rule, 10 at worst, until cells are done (CellTimes).
constexpr double kNominalSpeed = 1e11;
constexpr double kNominalBytes = 5e9;
constexpr double kNominalDraw = 1e-8;
constexpr double kNominalFit = 3e-8;

}  // namespace moelab
