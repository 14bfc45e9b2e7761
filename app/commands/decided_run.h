#pragma once

/// `run --until-decided`: its options, and sessions that add seeds where open claims need them.

#include "app/commands/planned_run.h"
#include "app/commands/verbs.h"
#include "app/run/session.h"

namespace moelab {

/// --until-decided, of which `help` says what it does, --max-seeds and --hours.
std::vector<Option> deciding_options(Arguments& arguments, const std::string& help);

/// Throws UserError for a scenario that --until-decided cannot decide, and for options that go with it where
/// it is not given. Before anything is written.
void check_deciding(const Arguments& arguments, const Scenario& scenario);

/// The most seeds that looks bring an arm at a point to.
int most_seeds(const Arguments& arguments);

/// The run with the seeds that it comes to at most: most_seeds() at each arm and point that a claim reads.
Scenario largest_decided_run(const Arguments& arguments, const Scenario& scenario);

/// Runs what is planned, judges the claims by their sequences, adds seeds, and so on, until no claim is open,
/// every arm and point that one needs has most_seeds(arguments), arguments.hours have passed, or a session
/// was interrupted. The plan says after each look how many seeds each arm and point has (Scenario::decided),
/// so that a run that was killed goes on as if it had not been. `run` becomes the run of the last look. Notes
/// on stderr say what stays open.
SessionOutcome run_until_decided(const Arguments& arguments, const SessionOptions& options, PlannedRun& run,
                                 const CellRunner& runner);

}  // namespace moelab
