#pragma once

/// What a command line asks of which run directory: shared by `run`, `plan` and `slurm`.

#include <functional>
#include <string>
#include <vector>

#include "app/commands/arguments.h"
#include "app/scenario/scenario.h"

namespace moelab {

struct PlannedRun {
  Scenario scenario;
  std::filesystem::path directory;
};

/// The scenario of `arguments`, its run directory (which it may take), and the seeds that `--seeds` adds, now
/// or earlier: a plan keeps added seeds, and `--set seeds.count` asks for fewer. Throws UserError; writes
/// nothing.
PlannedRun planned_run(const Arguments& arguments);
/// The same of a scenario that `load` makes, given the settings.
PlannedRun planned_run(const Arguments& arguments,
                       const std::function<Scenario(const std::vector<std::string>& settings)>& load);

/// The scenario of `arguments` with the seeds of a run that was decided, see Scenario::decided.
Scenario with_seeds(const Arguments& arguments, const Json& decided);

/// From "5..9" or "5": {5, 9} or {5, 5}. Throws UserError.
std::pair<int, int> read_seed_range(const std::string& text);

}  // namespace moelab
