// What a command line asks `tune` for: the arms, the candidates, the metric, and the runs of each rung.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/commands/planned_run.h"
#include "app/commands/tuning.h"
#include "app/metrics/metric_groups.h"
#include "app/run/session.h"
#include "app/run/summary.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kDefaultBudget = 60;

std::vector<std::string> arm_names(const std::string& text) {
  std::vector<std::string> names = {""};  // getline would drop an empty name at the end
  for (const char letter : text) {
    if (letter == ',')
      names.emplace_back();
    else
      names.back() += letter;
  }
  return names;
}

/// Why a text of --arms is refused, whatever the scenario; empty where it is not.
std::string refusal_of_arms(const std::string& text) {
  std::set<std::string> known;
  for (const std::string& name : arm_names(text)) {
    if (name.empty())
      return fmt::format("got '{}', needs names with commas between, none of them empty", text);
    if (!known.insert(name).second) return fmt::format("got '{}', needs '{}' once", text, name);
  }
  return "";
}

std::vector<std::string> chosen_arms(const std::string& text, const Scenario& scenario) {
  if (text.empty()) return scenario.arms;
  const std::vector<std::string> arms = arm_names(text);
  for (const std::string& arm : arms) {
    if (std::find(scenario.arms.begin(), scenario.arms.end(), arm) == scenario.arms.end())
      throw UserError("--arms", unknown_name("arm", arm, scenario.arms));
  }
  return arms;
}

int points_of(const Scenario& scenario) {
  int points = 0;
  for (const Cell& cell : scenario.cells)
    points += cell.seed == 0 && cell.arm == scenario.arms.front() ? 1 : 0;
  return points;
}

}  // namespace

std::string candidate_name(const std::string& arm, std::size_t candidate) {
  return fmt::format("{}#{}", arm, candidate);
}

std::vector<Option> tuning_options(Arguments& arguments, const std::string& prefix) {
  return {{"--arms", &arguments.arms, prefix + "names with commas between (default: all)", false,
           refusal_of_arms},
          {"--budget", &arguments.budget, fmt::format("{}cells an arm (default {})", prefix, kDefaultBudget),
           false, whole_number(2, 1'000'000)},
          {"--metric", &arguments.metric, prefix + "what is least at the best (default: the main one)", false,
           nullptr, offer_metrics},
          {"--maximize", &arguments.maximize, prefix + "the greatest metric is the best"}};
}

Tuning read_tuning(const Arguments& arguments) {
  Tuning tuning;
  tuning.scenario = load_scenario(arguments.file, arguments.profile, arguments.settings);
  const Json& document = tuning.scenario.document;
  const Json tune = document.value("tune", Json::object());
  if (tune.empty())
    throw UserError("tune", "missing; needs {path: {\"low\", \"high\", \"scale\"}}, the fields to choose");
  if (tuning.scenario.cells.front().root_seed == kTuningRoot) {
    throw UserError("seeds.root",
                    fmt::format("got {}, which tuning takes; judging needs another", kTuningRoot));
  }
  tuning.ranges = read_tune_ranges(tune, document, read_sweep(document.value("sweep", Json::object())));
  tuning.metric = arguments.metric;
  if (tuning.metric.empty())
    tuning.metric = main_metric({{"figures", tuning.scenario.figures}, {"scenario", document}});
  if (arguments.maximize) tuning.sign = -1;
  const References references(tuning.scenario);
  for (const std::string& arm : chosen_arms(arguments.arms, tuning.scenario)) {
    references.check_metric(arm, tuning.metric, "--metric");
    tuning.arms.push_back({arm, {}});
  }
  const int budget = arguments.budget > 0 ? arguments.budget : kDefaultBudget;
  const int points = points_of(tuning.scenario);
  const int count = candidates_within(budget / points);
  if (count < 2) {
    throw UserError("--budget",
                    fmt::format("got {} cells an arm, needs at least {}: two candidates at each of "
                                "the {} sweep points",
                                budget, 2 * points, points));
  }
  tuning.candidates = candidate_values(tuning.ranges, count);
  if (tuning.candidates.size() < 2)
    throw UserError("tune", "got ranges of one value, needs two candidates that differ");
  tuning.rungs = halving_rungs(static_cast<int>(tuning.candidates.size()));
  for (TunedArm& arm : tuning.arms) {
    for (std::size_t i = 0; i < tuning.candidates.size(); ++i) arm.left.push_back(i);
  }
  tuning.directory = arguments.out;
  if (tuning.directory.empty()) tuning.directory = default_run_directory(tuning.scenario).string() + "-tune";
  check_no_plan_named(tuning.directory);
  return tuning;
}

Scenario rung_scenario(const Tuning& tuning, const Rung& rung) {
  Json document = tuning.scenario.document;
  const Json arms = document.value("arms", Json::object());
  for (const char* part : {"tune", "claims", "figures", "profiles"}) document.erase(part);
  if (tuning.scenario.crossing) {  // its arms are others here, and its points those of no candidate
    const CrossingSearch& search = *tuning.scenario.crossing;
    document["sweep"][search.path] = {search.low, search.high};
  }
  document["save"] = Json::array();
  document["seeds"]["root"] = kTuningRoot;
  document["seeds"]["count"] = rung.seeds;
  document["arms"] = Json::object();
  for (const TunedArm& arm : tuning.arms) {
    for (const std::size_t candidate : arm.left) {
      Json own = arms.value(arm.name, Json::object());
      for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
        own.erase(tuning.ranges[i].path);  // set last, after what leads to it
        own[tuning.ranges[i].path] = tuning.candidates[candidate][i];
      }
      document["arms"][candidate_name(arm.name, candidate)] = std::move(own);
    }
  }
  return expand_scenario(document, "", {});
}

std::size_t tuning_cells(const Tuning& tuning) {
  return tuning.arms.size() * static_cast<std::size_t>(points_of(tuning.scenario)) *
         static_cast<std::size_t>(trainings_of(tuning.rungs));
}

}  // namespace moelab
