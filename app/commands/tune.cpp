#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <set>

#include "app/commands/tuning.h"
#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "app/run/durable_file.h"
#include "app/run/interrupt.h"
#include "app/run/results.h"
#include "app/run/session.h"

namespace moelab {
namespace {

/// The mean of the metric (of its logarithm where it is positive by definition) over sweep points and seeds,
/// its sign so that the least is the best; NaN where a cell is not done or lacks it.
double score_of(const ResultTable& table, const std::string& arm, const Tuning& tuning) {
  const bool is_positive = is_declared_positive(tuning.metric);
  double sum = 0;
  int count = 0;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm) continue;
    const auto found = row.metrics.find(tuning.metric);
    if (row.state != "done" || found == row.metrics.end()) return std::numeric_limits<double>::quiet_NaN();
    sum += is_positive ? std::log(found->second) : found->second;
    ++count;
  }
  return tuning.sign * sum / count;
}

/// Notes which cells of a rung's scenario are candidates of which arm. Those of the rungs before are among
/// them again.
void count_cells(const Scenario& rung, Tuning& tuning) {
  for (TunedArm& arm : tuning.arms) {
    std::set<std::string> names;
    for (const std::size_t candidate : arm.left) names.insert(candidate_name(arm.name, candidate));
    for (const Cell& cell : rung.cells) {
      if (names.contains(cell.arm)) arm.cells.insert(cell.id);
    }
  }
}

void climb(const ResultTable& table, std::size_t place, Tuning& tuning) {
  const bool is_last = place + 1 == tuning.rungs.size();
  const int kept = is_last ? 1 : tuning.rungs[place + 1].candidates;
  for (TunedArm& arm : tuning.arms) {
    std::vector<double> scores;
    for (const std::size_t candidate : arm.left)
      scores.push_back(score_of(table, candidate_name(arm.name, candidate), tuning));
    const std::vector<std::size_t> best = best_places(scores, kept);
    for (std::size_t i = 0; i < arm.left.size(); ++i) {
      tuning.trace.push_back({{"rung", place},
                              {"arm", arm.name},
                              {"candidate", arm.left[i]},
                              {"values", tuned_values(tuning, arm.left[i])},
                              {"seeds", tuning.rungs[place].seeds},
                              {"score", std::isfinite(scores[i]) ? Json(scores[i]) : Json()},
                              {"kept", std::find(best.begin(), best.end(), i) != best.end()}});
    }
    std::vector<std::size_t> left;
    for (const std::size_t i : best) left.push_back(arm.left[i]);
    arm.left = std::move(left);
    arm.score = scores[best.front()];
  }
}

/// Whether the directory shows a plan of tuning, or none.
bool shows_tuning(const std::filesystem::path& directory) {
  const std::string id = shown_plan(directory);
  if (id.empty()) return true;
  const std::optional<Plan> plan = plan_with_id(directory, id);
  return plan && plan->head.at("scenario").value("/seeds/root"_json_pointer, Json()) == Json(kTuningRoot);
}

/// What a person should know of the choice, on stderr; whether every arm has one.
bool print_tuning_notes(const Tuning& tuning) {
  bool have_choices = true;
  for (const TunedArm& arm : tuning.arms) {
    for (const TunedEdge& edge : tuned_edges(tuning, arm))
      std::cerr << fmt::format("moelab: note: {}: {}\n", arm.name, edge.text);
    if (arm.has_choice()) continue;
    have_choices = false;
    std::cerr << fmt::format("moelab: note: {}: no candidate is without a cell that diverged or failed\n",
                             arm.name);
  }
  return have_choices;
}

int tune_scenario(const Arguments& arguments) {
  exit_when_interrupted();
  Tuning tuning = read_tuning(arguments);
  const std::filesystem::path& directory = tuning.directory;
  SessionOptions options;
  options.directory = directory;
  options.threads = thread_count(arguments);
  options.arguments = arguments.all;
  options.leases = arguments.leases;
  options.tells_former_plan = !shows_tuning(directory);
  int failed = 0;
  for (std::size_t place = 0; place < tuning.rungs.size(); ++place) {
    const Scenario rung = rung_scenario(tuning, tuning.rungs[place]);
    const SessionOutcome outcome = run_session(rung, options, run_cell);
    if (outcome.interrupted) return kInterruptedStatus;
    options.tells_former_plan = false;  // that of the rung before
    failed += outcome.failed;
    count_cells(rung, tuning);
    climb(load_results(directory, rung, outcome.plan).table, place, tuning);
  }
  const Json answer = tuning_answer(tuning);
  update_file(directory / "tune.json", json_text(answer) + "\n");
  const bool have_choices = print_tuning_notes(tuning);
  const int status = failed > 0 || !have_choices ? 1 : 0;
  if (arguments.json) {
    std::cout << json_text(answer) << '\n';
    return status;
  }
  for (const TunedArm& arm : tuning.arms) {
    const std::string mean =
        arm.has_choice() ? fmt::format("{} {:.4g}, ", tuning.metric, tuned_mean(tuning, arm)) : "";
    std::cout << fmt::format("{}: {} ({}{} cells)\n", arm.name, tuned_text(tuning, arm), mean,
                             arm.cells.size());
  }
  std::cout << fmt::format("\nfor the notes:\n{}\n\nevery candidate in {}\n", tuning_notes(tuning),
                           (directory / "tune.json").string());
  return status;
}

}  // namespace

Verb tune_verb() {
  return {"tune", "Choose the fields named in \"tune\" for every arm, on a root seed of their own",
          "tune my_idea.json --budget 60", [](Arguments& arguments) -> VerbCall {
            return {
                joined(scenario_options(arguments),
                       {tuning_options(arguments, ""),
                        {{"--out", &arguments.out, "run directory (default: runs/<name>[-<profile>]-tune)",
                          false, nullptr, offer_folders},
                         threads_option(arguments, "cells run at a time (default: one per processor)"),
                         leases_option(arguments),
                         json_option(arguments)}}),
                [&] { return tune_scenario(arguments); }};
          }};
}

}  // namespace moelab
