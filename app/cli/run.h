#pragma once

/// What a command line asks of which run directory: shared by `run`, `plan` and `slurm`.

#include <functional>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/verbs.h"
#include "app/run/session.h"
#include "app/scenario/scenario.h"

namespace moelab {

struct PlannedRun {
  Scenario scenario;
  std::filesystem::path directory;
};

/// Throws UserError at --out for "DIR@ID" where DIR is a run directory and no such folder is there: it would
/// be made, and then hide that plan of DIR.
void check_no_plan_named(const std::filesystem::path& directory);

/// Makes a scenario, given the settings.
using ScenarioLoader = std::function<Scenario(const std::vector<std::string>& settings)>;

/// From the file and the profile of `arguments`, which it refers to.
ScenarioLoader loader_of(const Arguments& arguments);

/// The scenario of `arguments`, its run directory (which it may take), and the seeds of the plan there that
/// it extends: those that `--seeds` adds, now or earlier (a plan keeps them, and `--set seeds.count` asks for
/// fewer), all of them where it is to be decided, and those of a run that was decided, whose number nothing
/// else sets. Throws UserError; writes nothing.
PlannedRun planned_run(const Arguments& arguments);
/// The same of a scenario that `load` makes.
PlannedRun planned_run(const Arguments& arguments, const ScenarioLoader& load);

/// The scenario that `load` makes with the seeds of a run that was decided, see Scenario::decided.
Scenario with_seeds(const Json& decided, std::vector<std::string> settings, const ScenarioLoader& load);

/// From "5..9" or "5": {5, 9} or {5, 5}. Throws UserError.
std::pair<int, int> read_seed_range(const std::string& text);

// `run --until-decided`: its options, and sessions that add seeds where open claims need them.

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
