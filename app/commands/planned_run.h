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

}  // namespace moelab
