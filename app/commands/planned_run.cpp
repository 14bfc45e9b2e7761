#include "app/commands/planned_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/run/session.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool sets_seeds(const std::vector<std::string>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.starts_with("seeds=") || setting.starts_with("seeds.count=");
  });
}

/// The count of seeds that an earlier `--seeds` brought the scenario's plan to; 0 for none.
int earlier_count(const std::filesystem::path& directory, const Scenario& scenario) {
  const std::optional<Plan> plan = plan_with_id(directory, plan_id(scenario));
  return plan ? plan->head.value("added_seeds_to", 0) : 0;
}

}  // namespace

std::pair<int, int> read_seed_range(const std::string& text) {
  int first = 0, last = 0;
  char after = 0;
  if (std::sscanf(text.c_str(), "%7d..%7d%c", &first, &last, &after) == 2 && 0 <= first && first <= last) {
    return {first, last};
  }
  if (std::sscanf(text.c_str(), "%7d%c", &first, &after) == 1 && first >= 0) return {first, first};
  throw UserError("--seeds", fmt::format("got '{}', needs FIRST..LAST such as 5..9, or one seed", text));
}

PlannedRun planned_run(const Arguments& arguments) {
  PlannedRun run{load_scenario(arguments.file, arguments.profile, arguments.settings), arguments.out};
  if (run.directory.empty()) run.directory = default_run_directory(run.scenario);
  check_run_directory(run.directory, run.scenario.name);

  const int asked = seed_count(run.scenario);
  int count = sets_seeds(arguments.settings) ? 0 : earlier_count(run.directory, run.scenario);
  if (!arguments.added_seeds.empty()) {
    const auto [first, last] = read_seed_range(arguments.added_seeds);
    const int next = std::max(asked, count);
    if (first > next) {
      throw UserError("--seeds", fmt::format("got '{}', but the run has seeds 0 … {}, so that the next is {}",
                                             arguments.added_seeds, next - 1, next));
    }
    count = std::max(count, last + 1);
  }
  if (count <= asked) return run;
  std::vector<std::string> settings = arguments.settings;
  settings.push_back(fmt::format("seeds.count={}", count));
  run.scenario = load_scenario(arguments.file, arguments.profile, settings);
  run.scenario.added_seeds_to = count;
  return run;
}

}  // namespace moelab
