#pragma once

/// Runs cells over threads, one cell per thread, and hands every result to one writer.

#include <atomic>
#include <functional>
#include <vector>

#include "app/run/cell.h"

namespace moelab {

/// Computes a cell; run_cell in the program.
using CellRunner = std::function<CellResult(const Cell&, const CellProgress&)>;
/// Takes a finished cell and its seconds of work. Never called by two threads at once.
using CellSink = std::function<void(const Cell&, const CellResult&, double)>;

/// How far a batch of cells is. `finished` counts recorded cells, `partial` adds up the shares of running
/// ones.
struct BatchProgress {
  int total = 0;
  int finished = 0;
  int failed = 0;
  int diverged = 0;
  double partial = 0;
};

struct BatchOptions {
  int threads = 1;
  /// Set from outside (by a signal handler) to abandon the running cells and start no other.
  const std::atomic<bool>* stop = nullptr;
  /// The first failed cell abandons the running cells, too.
  bool fail_fast = false;
  /// Called on the calling thread about five times a second.
  std::function<void(const BatchProgress&)> watch = {};
  /// Called on the calling thread, with the sink idle, when running cells have not ended kGraceSeconds
  /// after `stop` was set. It may end the process; if it returns, the wait goes on.
  std::function<void()> overdue = {};
};

/// A running cell that is asked to stop should have stopped by then.
constexpr double kGraceSeconds = 1.5;

/// Runs `cells` in order of their list. Interrupted cells are not handed to the sink. A cell that
/// throws counts as failed, with what it threw as its message; exceptions of the sink, EnvironmentError and
/// exhausted memory abandon the batch and are thrown again here, after every thread has ended. Where the
/// system gives fewer threads than asked for, these run all cells, and a note says so; EnvironmentError where
/// it gives none.
BatchProgress run_batch(const std::vector<const Cell*>& cells, const CellRunner& runner, const CellSink& sink,
                        const BatchOptions& options);

}  // namespace moelab
