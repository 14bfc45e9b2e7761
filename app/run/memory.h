#pragma once

/// What a run's arrays take, told before anything is drawn or trained.

#include "app/scenario/cells.h"
#include "sim/model/network.h"

namespace moelab {

/// What a cell is made of, as far as its arrays go: options, and how a model of them reads their data.
struct CellShape {
  explicit CellShape(const Cell& cell);

  CellOptions options;
  /// A problem of the same layout, but with one cluster where their number is free.
  std::unique_ptr<Problem> small_problem;
  Layout layout;
  Network<float> network;  ///< structure alone, no parameters
  int train_samples = 0;   ///< of the training set; 0 for population gradients
  double batch = 0;        ///< samples of a step
  double steps = 0;
  double records = 0;         ///< recorded steps, the first and the last included
  double measured_train = 0;  ///< training samples that are measured
};

/// Bytes at the peak of a cell, part by part; each says in memory.cpp what it counts. Temporaries of
/// measuring do not add up: the largest counts.
struct CellMemory {
  double problems = 0;   ///< means, targets and maps of the cell's own data and of its evaluations
  double data = 0;       ///< training set, test sets, what is measured of both
  double model = 0;      ///< parameters, gradient, moments of the optimizer
  double batch = 0;      ///< what the passes of a batch leave
  double measuring = 0;  ///< outputs and probabilities of all measured rows, or the saved arrays
  double results = 0;    ///< the trace, as it is written

  double total() const { return problems + data + model + batch + measuring + results; }
};
CellMemory cell_memory(const CellShape& shape);

/// Bytes of the arrays that passes go through: those of a training step, there and back, and of a sample that
/// is measured.
struct PassBytes {
  double step = 0, measured_sample = 0;
};
PassBytes pass_bytes(const CellShape& shape);

/// What a recorded cell takes when claims and figures are made of it: its trace.
double recorded_bytes(const CellShape& shape);

/// The program itself with its libraries, and a planned cell with its line of plan.json.
constexpr double kProgramBytes = 11e6;
constexpr double kPlannedCellBytes = 2000;

// The memory that a run may take, held against what it needs.

/// Bytes that this process may still take: the least of what the machine has available, what its control
/// groups (version 1 or 2) leave, and RLIMIT_AS; infinite where none of it can be read.
double available_bytes();

/// Throws EnvironmentError where a run of the scenario's missing cells on so many threads needs more than is
/// available: it says both, how many threads would fit, and `way_out`.
void check_memory(double process_bytes, double cell_bytes, int threads, double available,
                  const char* way_out = ", or --force runs it all the same");

}  // namespace moelab
