#include "app/commands/planned_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/run/crossing_run.h"
#include "app/run/session.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool sets_seeds(const std::vector<std::string>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.starts_with("seeds=") || setting.starts_with("seeds.count=");
  });
}

}  // namespace

Scenario with_seeds(const Arguments& arguments, const Json& decided) {
  const std::vector<int> seeds = decided.at("seeds").get<std::vector<int>>();
  std::vector<std::string> settings = arguments.settings;
  settings.push_back(fmt::format("seeds.count={}", *std::max_element(seeds.begin(), seeds.end())));
  Scenario scenario = load_scenario(arguments.file, arguments.profile, settings);
  keep_decided(scenario, decided);
  return scenario;
}

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
  return planned_run(arguments, [&](const std::vector<std::string>& settings) {
    return load_scenario(arguments.file, arguments.profile, settings);
  });
}

namespace {

/// The run with the points that its searches ask for so far.
PlannedRun with_points(PlannedRun run) {
  if (run.scenario.crossing) place_points(run.scenario, read_records(run.directory, RecordPart::metrics));
  return run;
}

}  // namespace

PlannedRun planned_run(const Arguments& arguments,
                       const std::function<Scenario(const std::vector<std::string>& settings)>& load) {
  PlannedRun run{load(arguments.settings), arguments.out};
  if (run.directory.empty()) run.directory = default_run_directory(run.scenario);
  check_run_directory(run.directory, run.scenario.name);

  if (run.scenario.crossing && arguments.until_decided) {
    throw UserError("--until-decided",
                    "the sweep searches a crossing, whose points depend on the seeds; "
                    "--seeds adds the same to all of them");
  }
  const int asked = seed_count(run.scenario);
  const bool keeps_added = !sets_seeds(arguments.settings);
  std::optional<Plan> earlier;
  if (keeps_added) earlier = plan_with_id(run.directory, plan_id(run.scenario));
  const Json decided = earlier ? earlier->head.value("decided", Json()) : Json();
  int count = earlier ? earlier->head.value("added_seeds_to", 0) : 0;
  if (!arguments.added_seeds.empty()) {
    if (!decided.is_null() || arguments.until_decided) {
      throw UserError("--seeds",
                      "the run's claims decide how many seeds it has; run --until-decided with a "
                      "greater --max-seeds adds more");
    }
    const auto [first, last] = read_seed_range(arguments.added_seeds);
    const int next = std::max(asked, count);
    if (first > next) {
      throw UserError("--seeds", fmt::format("got '{}', but the run has seeds 0 … {}, so that the next is {}",
                                             arguments.added_seeds, next - 1, next));
    }
    count = std::max(count, last + 1);
  }
  if (!decided.is_null()) {
    run.scenario = with_seeds(arguments, decided);
    return run;
  }
  if (count <= asked) return with_points(std::move(run));
  std::vector<std::string> settings = arguments.settings;
  settings.push_back(fmt::format("seeds.count={}", count));
  run.scenario = load(settings);
  run.scenario.added_seeds_to = count;
  return with_points(std::move(run));
}

}  // namespace moelab
