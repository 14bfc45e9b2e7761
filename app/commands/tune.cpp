#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <set>

#include "app/commands/tuning.h"
#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "app/run/durable_file.h"
#include "app/run/interrupt.h"
#include "app/run/results.h"
#include "app/run/session.h"
#include "app/run/summary.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

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

std::string candidate_name(const std::string& arm, std::size_t candidate) {
  return fmt::format("{}#{}", arm, candidate);
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
  const int points = points_of(tuning.scenario);
  const int count = candidates_within(arguments.budget / points);
  if (count < 2) {
    throw UserError("--budget",
                    fmt::format("got {} cells an arm, needs at least {}: two candidates at each of "
                                "the {} sweep points",
                                arguments.budget, 2 * points, points));
  }
  tuning.candidates = candidate_values(tuning.ranges, count);
  if (tuning.candidates.size() < 2)
    throw UserError("tune", "got ranges of one value, needs two candidates that differ");
  tuning.rungs = halving_rungs(static_cast<int>(tuning.candidates.size()));
  for (TunedArm& arm : tuning.arms) {
    for (std::size_t i = 0; i < tuning.candidates.size(); ++i) arm.left.push_back(i);
  }
  return tuning;
}

/// A scenario whose arms are the candidates that are left of each arm.
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

int tune_scenario(const Arguments& arguments) {
  exit_when_interrupted();
  Tuning tuning = read_tuning(arguments);
  const std::filesystem::path directory =
      arguments.out.empty() ? std::filesystem::path(default_run_directory(tuning.scenario).string() + "-tune")
                            : arguments.out;
  SessionOptions options;
  options.directory = directory;
  options.threads = thread_count(arguments);
  options.arguments = arguments.all;
  int failed = 0;
  for (std::size_t place = 0; place < tuning.rungs.size(); ++place) {
    const Scenario rung = rung_scenario(tuning, tuning.rungs[place]);
    const SessionOutcome outcome = run_session(rung, options, run_cell);
    if (outcome.interrupted) return kInterruptedStatus;
    failed += outcome.failed;
    count_cells(rung, tuning);
    climb(load_results(directory, rung, outcome.plan).table, place, tuning);
  }
  const Json answer = tuning_answer(tuning, directory);
  update_file(directory / "tune.json", json_text(answer) + "\n");
  int status = failed > 0 ? 1 : 0;
  for (const TunedArm& arm : tuning.arms) {
    for (const std::string& path : tuned_edges(tuning, arm)) {
      std::cerr << fmt::format("moelab: note: {}: the best {} is at the edge of its range; widen it\n",
                               arm.name, path);
    }
    if (arm.has_choice()) continue;
    status = 1;
    std::cerr << fmt::format("moelab: note: {}: no candidate is without a cell that diverged or failed\n",
                             arm.name);
  }
  if (arguments.json) {
    std::cout << json_text(answer) << '\n';
    return status;
  }
  for (const TunedArm& arm : tuning.arms) {
    const std::string score = arm.has_choice() ? fmt::format("score {:.4g}, ", arm.score) : "";
    std::cout << fmt::format("{}: {} ({}{} cells)\n", arm.name, tuned_text(tuning, arm), score,
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
                       {{{"--arms", &arguments.arms, "names with commas between (default: all)", false,
                          refusal_of_arms},
                         {"--budget", &arguments.budget, "cells an arm (default 60)", false,
                          whole_number(2, 1'000'000)},
                         {"--metric", &arguments.metric, "what is least at the best (default: the main one)"},
                         {"--maximize", &arguments.maximize, "the greatest metric is the best"},
                         {"--out", &arguments.out, "run directory (default: runs/<name>[-<profile>]-tune)",
                          false, nullptr, offer_folders},
                         threads_option(arguments, "cells run at a time (default: one per processor)"),
                         json_option(arguments)}}),
                [&] { return tune_scenario(arguments); }};
          }};
}

}  // namespace moelab
