#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "app/cli/documents.h"
#include "app/cli/run.h"
#include "app/cli/verbs.h"
#include "app/figures/crossing.h"
#include "app/run/cost.h"
#include "app/run/results.h"
#include "app/run/scheduler.h"
#include "app/run/search.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The swept values of each path, in order of their first cell.
Json swept_values(const Scenario& scenario) {
  Json values = Json::object();
  for (const std::string& path : scenario.sweep_paths) values[path] = Json::array();
  std::set<std::pair<std::string, std::string>> known;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    for (const auto& [path, value] : cell.point) {
      if (known.emplace(path, value.dump()).second) values[path].push_back(value);
    }
  }
  return values;
}

/// `[1, 2, 3]`, of many values the first ones and the last.
std::string list_text(const Json& values) {
  constexpr std::size_t most = 12;
  if (values.size() <= most) return values.dump();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 2 < most; ++i) texts.push_back(values[i].dump());
  return fmt::format("[{},…,{}], {} values", fmt::join(texts, ","), values.back().dump(), values.size());
}

/// Says what `run` would do. Writes nothing.
int print_plan(const Arguments& arguments) {
  const auto [scenario, directory] = planned_run(arguments);
  const Records records = read_records(directory);

  std::vector<int> seeds;  // of each arm at each point: as many, but for a run that was decided
  std::set<std::string> distinct;
  int recorded = 0;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed == 0) {
      seeds.push_back(0);
      distinct.insert(point_json(cell.point).dump());
    }
    ++seeds.back();
    recorded += records.contains(cell.id) ? 1 : 0;
  }
  const std::size_t points = distinct.size();
  const auto [fewest_seeds, most_seeds] = std::ranges::minmax(seeds);
  const int threads = thread_count(arguments);
  const RunCost cost = run_cost(scenario, records, threads);
  const std::size_t missing = cost.cells;
  Json answer = {{"name", scenario.name},
                 {"profile", scenario.profile},
                 {"directory", directory.string()},
                 {"plan", plan_id_in(directory, scenario)},
                 {"arms", scenario.arms},
                 {"sweep", swept_values(scenario)},
                 {"points", points},
                 {"seeds", most_seeds},
                 {"cells", scenario.cells.size()},
                 {"recorded", recorded},
                 {"to_run", missing},
                 {"threads", threads},
                 {"seconds_estimate", cost.seconds},
                 {"seconds_from", cost.source},
                 {"seconds_learned_from", cost.learned},
                 {"memory_estimate_bytes", cost.bytes},
                 {"memory_estimate_bytes_of_cell", cost.cell_bytes}};
  if (fewest_seeds != most_seeds) answer["fewest_seeds"] = fewest_seeds;
  if (scenario.crossing) {
    const std::size_t further = most_further_cells(*scenario.crossing, recorded_table(scenario, records));
    answer["crossing"] = {{"path", scenario.crossing->path},
                          {"fewest_cells", scenario.cells.size()},
                          {"most_cells", scenario.cells.size() + further}};
  }
  if (arguments.json) {
    std::cout << json_text(answer) << '\n';
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"scenario", scenario.name + (scenario.profile.empty() ? "" : " (profile " + scenario.profile + ")")},
      {"arms", fmt::format("{}: {}", scenario.arms.size(), fmt::join(scenario.arms, ", "))}};
  for (const auto& [path, values] : answer.at("sweep").items())
    rows.push_back({"sweep", path + " in " + list_text(values)});
  rows.push_back({"sweep points", std::to_string(points)});
  rows.push_back({"seeds", fewest_seeds == most_seeds
                               ? std::to_string(most_seeds)
                               : fmt::format("{} to {}, by what claims needed", fewest_seeds, most_seeds)});
  rows.push_back(
      {"cells", fmt::format("{}: {} recorded, {} to run", scenario.cells.size(), recorded, missing)});
  if (scenario.crossing) {
    const Json& search = answer.at("crossing");
    rows.push_back(
        {"", fmt::format("{} in all at most: the search along {} places points by what is recorded",
                         search.at("most_cells").get<std::size_t>(), scenario.crossing->path)});
  }
  rows.push_back({"folder", directory.string()});
  rows.push_back({"plan", answer.at("plan")});
  if (missing > 0) {
    rows.push_back(
        {"time left", fmt::format("about {} on {}", clock_text(cost.seconds), counted(threads, "thread"))});
    rows.push_back({"", "from " + cost.source});
    rows.push_back(
        {"memory", fmt::format("about {:.0f} MB on {}, {:.0f} MB for each cell at a time", cost.bytes / 1e6,
                               counted(cost.threads, "thread"), cost.cell_bytes / 1e6)});
  }
  std::cout << aligned_columns(rows);
  return 0;
}

}  // namespace

Verb plan_verb() {
  return {"plan", "Say what run would do, and write nothing",
          "plan scenarios/dikkala2023/fig2a.json --set seeds.count=3", [](Arguments& arguments) -> VerbCall {
            return {joined(scenario_options(arguments),
                           {run_directory_options(arguments),
                            {threads_option(arguments, "cells run at a time (default: one per processor)"),
                             json_option(arguments)}}),
                    [&] { return print_plan(arguments); }};
          }};
}

namespace {

/// Without a profile the cells of each profile are checked, too; settings may be for the plain scenario
/// alone.
void check_cells_of_profiles(const Arguments& arguments, const Scenario& scenario) {
  if (!arguments.profile.empty() || !arguments.settings.empty()) return;
  const Json profiles = scenario.document.value("profiles", Json::object());
  for (const auto& [name, overrides] : profiles.items()) {
    try {
      load_scenario(arguments.file, name, {});
    } catch (const InvalidOption& error) {
      throw UserError(error.path(), fmt::format("{} (with --profile {})", error.message(), name));
    }
  }
}

int validate(const Arguments& arguments) {
  const Scenario scenario = load_scenario(arguments.file, arguments.profile, arguments.settings);
  check_cells_of_profiles(arguments, scenario);
  if (arguments.json) {
    const Json answer = {{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}};
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format("valid: {}\n", counted(scenario.cells.size(), "cell"));
  }
  return 0;
}

int print_schema() {
  std::cout << scenario_schema();
  return 0;
}

}  // namespace

Verb validate_verb() {
  return {"validate", "Check a scenario, every cell of it and of its profiles", "validate my_scenario.json",
          [](Arguments& arguments) -> VerbCall {
            return {joined(scenario_options(arguments), {{json_option(arguments)}}),
                    [&] { return validate(arguments); }};
          }};
}

Verb schema_verb() {
  return {"schema", "Print the JSON Schema of scenario files", "schema > moelab.schema.json",
          [](Arguments& arguments) -> VerbCall {
            return {{json_option(arguments)}, [] { return print_schema(); }};
          }};
}

}  // namespace moelab
