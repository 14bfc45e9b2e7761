#pragma once

/// `run --until-decided`: sessions that add seeds where open claims need them.

#include "app/commands/planned_run.h"
#include "app/run/session.h"

namespace moelab {

/// Runs what is planned, judges the claims by their sequences, adds seeds, and so on, until no claim is open,
/// every arm and point that one needs has arguments.max_seeds, arguments.hours have passed, or a session was
/// interrupted. The plan says after each look how many seeds each arm and point has (Scenario::decided), so
/// that a run that was killed goes on as if it had not been. `run` becomes the run of the last look. Notes on
/// stderr say what stays open.
SessionOutcome run_until_decided(const Arguments& arguments, const SessionOptions& options, PlannedRun& run,
                                 const CellRunner& runner);

}  // namespace moelab
