#pragma once

/// What a command line asks of which run directory: shared by `run`, `plan` and `slurm`.

#include <string>

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

/// From "5..9" or "5": {5, 9} or {5, 5}. Throws UserError.
std::pair<int, int> read_seed_range(const std::string& text);

}  // namespace moelab
