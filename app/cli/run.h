#pragma once

/// The run directory and the seeds that a command line asks for: shared by `run`, `plan` and `slurm`.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/verbs.h"
#include "app/run/session.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// A scenario, its run directory and seeds to add.
struct PlanChoice {
  ScenarioChoice scenario;
  std::filesystem::path out;  ///< empty for default_run_directory
  std::string added_seeds;    ///< "FIRST..LAST"; empty for none

  void bind(VerbOptions& options);
};

/// Whether and how far a run adds seeds until its claims are decided.
struct DecidingChoice {
  bool until_decided = false;
  int max_seeds = 0;  ///< 0 where it is not given
  double hours = 0;   ///< after which the run adds no seeds; 0 for no limit

  /// `help` says what --until-decided does.
  void bind(VerbOptions& options, const std::string& help);
  /// The most seeds of an arm at a sweep point.
  int most_seeds() const;
};

void bind_leases(VerbOptions& options, bool& leases);
/// The help of --threads for verbs that run cells.
constexpr const char* kCellThreads = "cells run at a time (default: one per processor)";

struct PlannedRun {
  Scenario scenario;
  std::filesystem::path directory;
};

/// Throws UserError at --out for "DIR@ID" where DIR is a run directory. A new folder of that name would hide
/// the plan ID of DIR.
void check_no_plan_named(const std::filesystem::path& directory);

/// Makes a scenario, given the settings.
using ScenarioLoader = std::function<Scenario(const std::vector<std::string>& settings)>;

/// The scenario of `choice`, its run directory, and the seeds of the plan there that it extends. Those are
/// the seeds that `--seeds` adds, now or earlier: a plan keeps them, and `--set seeds.count` asks for fewer.
/// With `until_decided` they are all of them. A run that was decided keeps its own seeds. Throws UserError,
/// also where the directory cannot take the run; writes nothing.
PlannedRun planned_run(const PlanChoice& choice, bool until_decided = false);
/// The same of a scenario that `load` makes.
PlannedRun planned_run(const PlanChoice& choice, bool until_decided, const ScenarioLoader& load);

// `run --until-decided`: sessions that add seeds where open claims need them.

/// Throws UserError for a scenario that --until-decided cannot decide, and for its options where it is not
/// given. Call it before anything is written.
void check_deciding(const DecidingChoice& deciding, const Scenario& scenario);

/// Runs what is planned, judges the claims by their confidence sequences, adds seeds, and repeats. It ends
/// when no claim is open, when every arm and point that an open claim needs has most_seeds(), when the hours
/// have passed, or when a session was interrupted. After each look the plan holds the number of seeds of each
/// arm and point (DecidedSeeds), so that a killed run continues as if nothing had happened. `run`
/// becomes the run of the last look. Notes on stderr name the claims that stay open.
SessionOutcome run_until_decided(const std::vector<std::string>& settings, const ScenarioLoader& load,
                                 const DecidingChoice& deciding, const SessionOptions& options,
                                 PlannedRun& run, const CellRunner& runner);

/// The largest run that --until-decided can come to: most_seeds() at each arm and point that a claim reads.
Scenario largest_decided_run(const ScenarioChoice& choice, const DecidingChoice& deciding,
                             const Scenario& scenario);

}  // namespace moelab
