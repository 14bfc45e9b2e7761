#include "app/commands/planned_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/run/crossing_run.h"
#include "app/run/durable_file.h"
#include "app/run/session.h"
#include "sim/base/error.h"
#include "sim/base/whole_numbers.h"

namespace moelab {
namespace {

/// A number of seeds that a plan holds.
constexpr int kLastSeed = 9'999'999;

bool sets_seeds(const std::vector<std::string>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.starts_with("seeds=") || setting.starts_with("seeds.count=");
  });
}

/// Seeds that were added after looking are judged by sequences; a number of them would hide that.
[[noreturn]] void refuse_number_of_seeds(const std::string& option) {
  throw UserError(option,
                  "the run's claims decide how many seeds it has; run --until-decided with a "
                  "greater --max-seeds adds more");
}

/// The settings with the number of seeds in place of the one that they set.
std::vector<std::string> with_seed_count(std::vector<std::string> settings, int count) {
  std::erase_if(settings, [](const std::string& setting) { return setting.starts_with("seeds.count="); });
  settings.push_back(fmt::format("seeds.count={}", count));
  return settings;
}

/// The count of seeds after `range` is added to those before `next`.
int count_with(const std::string& range, int next) {
  const auto [first, last] = read_seed_range(range);
  if (first > next) {
    throw UserError("--seeds", fmt::format("got '{}', but the run has seeds 0 … {}, so that the next is {}",
                                           range, next - 1, next));
  }
  return last + 1;
}

/// The run with the points that its searches ask for so far.
PlannedRun with_points(PlannedRun run) {
  if (run.scenario.crossing) place_points(run.scenario, read_records(run.directory, RecordPart::metrics));
  return run;
}

}  // namespace

void check_no_plan_named(const std::filesystem::path& directory) {
  const RunAddress address(directory, "");
  if (address.plan().empty()) return;
  const std::filesystem::path& run = address.directory();
  if (plan_ids(run).empty() && shown_plan(run).empty()) return;
  throw UserError("--out", fmt::format("got '{}', which names a plan of the run directory '{}'; needs the "
                                       "directory alone, where the scenario finds its plan",
                                       directory.string(), run.string()));
}

ScenarioLoader loader_of(const Arguments& arguments) {
  return [&](const std::vector<std::string>& settings) {
    return load_scenario(arguments.file, arguments.profile, settings);
  };
}

Scenario with_seeds(const Json& decided, std::vector<std::string> settings, const ScenarioLoader& load) {
  const std::vector<int> seeds = decided.at("seeds").get<std::vector<int>>();
  Scenario scenario =
      load(with_seed_count(std::move(settings), *std::max_element(seeds.begin(), seeds.end())));
  keep_decided(scenario, decided);
  return scenario;
}

std::pair<int, int> read_seed_range(const std::string& text) {
  const std::vector<int> seeds = whole_numbers(text, "..");
  const bool is_range = seeds.size() == 1 || (seeds.size() == 2 && seeds[0] <= seeds[1]);
  if (is_range && seeds.back() <= kLastSeed) return {seeds.front(), seeds.back()};
  throw UserError("--seeds", fmt::format("got '{}', needs FIRST..LAST such as 5..9, or one seed", text));
}

PlannedRun planned_run(const Arguments& arguments) {
  return planned_run(arguments, loader_of(arguments));
}

PlannedRun planned_run(const Arguments& arguments, const ScenarioLoader& load) {
  PlannedRun run{load(arguments.settings), arguments.out};
  if (run.directory.empty()) run.directory = default_run_directory(run.scenario);
  check_no_plan_named(run.directory);
  check_output_folder(run.directory, "--out");
  check_run_directory(run.directory, run.scenario.name);

  const int asked = seed_count(run.scenario);
  const bool sets = sets_seeds(arguments.settings), adds = !arguments.added_seeds.empty();
  const std::optional<Plan> earlier = plan_with_id(run.directory, plan_id(run.scenario));
  const Json decided = earlier ? earlier->head.value("decided", Json()) : Json();
  if (adds && (!decided.is_null() || arguments.until_decided)) refuse_number_of_seeds("--seeds");
  if (!decided.is_null()) {
    // The command that the run began with, whose looks began at the seeds that it sets, goes on with it.
    const bool goes_on = arguments.until_decided && asked <= decided.at("fixed_seeds").get<int>();
    if (sets && !goes_on) refuse_number_of_seeds("--set seeds.count");
    // A file or a profile may have been changed since.
    if (asked > decided.at("fixed_seeds").get<int>()) refuse_number_of_seeds("seeds.count");
    run.scenario = with_seeds(decided, arguments.settings, load);
    return run;
  }
  int added = earlier && !sets ? earlier->head.value("added_seeds_to", 0) : 0;
  if (adds) added = std::max(added, count_with(arguments.added_seeds, std::max(asked, added)));
  int count = added;
  // Looks begin at what the plan has that they extend.
  if (earlier && arguments.until_decided) count = std::max(count, seed_count(earlier->cells));
  if (count <= asked) return with_points(std::move(run));
  try {
    run.scenario = load(with_seed_count(arguments.settings, count));
  } catch (const InvalidOption& error) {
    if (!adds || error.path() != "--set seeds.count") throw;
    throw UserError("--seeds", error.message());
  }
  if (added > asked) run.scenario.added_seeds_to = added;
  return with_points(std::move(run));
}

}  // namespace moelab
