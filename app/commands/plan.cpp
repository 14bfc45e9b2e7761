#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "app/commands/planned_run.h"
#include "app/commands/verbs.h"
#include "app/run/cost.h"
#include "app/run/progress.h"
#include "app/run/session.h"
#include "app/run/summary.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

/// The swept values of each path, in order of their first cell.
Json swept_values(const Scenario& scenario) {
  Json values = Json::object();
  for (const std::string& path : scenario.sweep_paths) values[path] = Json::array();
  for (const Cell& cell : scenario.cells) {
    for (const auto& [path, value] : cell.point) {
      Json& list = values[path];
      if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
    }
  }
  return values;
}

/// Says what `run` would do. Writes nothing.
int print_plan(const Arguments& arguments) {
  const auto [scenario, directory] = planned_run(arguments);
  const Records records = read_records(directory);

  std::set<int> seeds;
  std::set<std::string> points;
  int recorded = 0;
  for (const Cell& cell : scenario.cells) {
    seeds.insert(cell.seed);
    points.insert(point_json(cell.point).dump());
    recorded += records.contains(cell.id) ? 1 : 0;
  }
  const std::size_t missing = missing_cells(scenario, records).size();
  const int threads = thread_count(arguments);
  const RunCost cost = run_cost(scenario, records, threads);
  Json answer = {{"name", scenario.name},
                 {"profile", scenario.profile},
                 {"directory", directory.string()},
                 {"arms", scenario.arms},
                 {"sweep", swept_values(scenario)},
                 {"points", points.size()},
                 {"seeds", seeds.size()},
                 {"cells", scenario.cells.size()},
                 {"recorded", recorded},
                 {"to_run", missing},
                 {"threads", threads},
                 {"seconds_estimate", cost.seconds},
                 {"seconds_from", cost.source},
                 {"seconds_learned_from", cost.learned},
                 {"memory_estimate_bytes", cost.bytes}};
  if (arguments.json) {
    std::cout << answer.dump(2) << '\n';
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"scenario", scenario.name + (scenario.profile.empty() ? "" : " (profile " + scenario.profile + ")")},
      {"arms", fmt::format("{}: {}", scenario.arms.size(), fmt::join(scenario.arms, ", "))}};
  for (const auto& [path, values] : answer.at("sweep").items())
    rows.push_back({"sweep", path + " in " + values.dump()});
  rows.push_back({"sweep points", std::to_string(points.size())});
  rows.push_back({"seeds", std::to_string(seeds.size())});
  rows.push_back(
      {"cells", fmt::format("{}: {} recorded, {} to run", scenario.cells.size(), recorded, missing)});
  rows.push_back({"folder", directory.string()});
  if (missing > 0) {
    rows.push_back({"time left", fmt::format("about {} on {} threads", clock_text(cost.seconds), threads)});
    rows.push_back({"", "from " + cost.source});
    rows.push_back({"memory", fmt::format("about {:.0f} MB", cost.bytes / 1e6)});
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

}  // namespace moelab
