#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>

#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "app/run/durable_file.h"
#include "app/run/halving.h"
#include "app/run/interrupt.h"
#include "app/run/results.h"
#include "app/run/session.h"
#include "app/run/summary.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// A candidate within this share of its range of one end is at the edge.
constexpr double kEdge = 0.05;

struct TunedArm {
  std::string name;
  std::vector<std::size_t> left;  ///< candidates that are left, the best first
  double score = 0;               ///< of the best, on the last rung
  int cells = 0;
};

struct Tuning {
  Scenario scenario;
  std::string metric;
  double sign = 1;  ///< −1 where the greatest is the best
  std::vector<TuneRange> ranges;
  std::vector<std::vector<Json>> candidates;
  std::vector<Rung> rungs;
  std::vector<TunedArm> arms;
  Json trace = Json::array();
};

std::vector<std::string> chosen_arms(const std::string& text, const Scenario& scenario) {
  if (text.empty()) return scenario.arms;
  std::vector<std::string> arms;
  std::istringstream parts(text);
  for (std::string arm; std::getline(parts, arm, ',');) {
    if (std::find(scenario.arms.begin(), scenario.arms.end(), arm) == scenario.arms.end())
      throw UserError("--arms", unknown_name("arm", arm, scenario.arms));
    arms.push_back(arm);
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
  if (tuning.metric.empty()) {
    RunResults none;
    none.plan = {{"figures", tuning.scenario.figures}, {"scenario", document}};
    tuning.metric = main_metric(none);
  }
  if (arguments.maximize) tuning.sign = -1;
  const References references(tuning.scenario);
  for (const std::string& arm : chosen_arms(arguments.arms, tuning.scenario)) {
    references.check_metric(arm, tuning.metric, "--metric");
    tuning.arms.push_back({arm, {}, 0, 0});
  }
  const int points = points_of(tuning.scenario);
  const int count = candidates_within(arguments.budget / points);
  if (count < 2) {
    throw UserError("--budget",
                    fmt::format("got {} cells an arm, needs at least {}: two candidates at each of "
                                "the {} sweep points",
                                arguments.budget, 2 * points, points));
  }
  tuning.rungs = halving_rungs(count);
  tuning.candidates = candidate_values(tuning.ranges, count);
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
/// its sign so that the least is the best; infinite where a cell is not done or lacks it.
double score_of(const ResultTable& table, const std::string& arm, const Tuning& tuning) {
  const MetricGroup::Metric* const metric = find_metric(tuning.metric);
  double sum = 0;
  int count = 0;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm) continue;
    const auto found = row.metrics.find(tuning.metric);
    if (row.state != "done" || found == row.metrics.end()) return std::numeric_limits<double>::infinity();
    sum += metric && metric->positive ? std::log(found->second) : found->second;
    ++count;
  }
  return tuning.sign * sum / count;
}

Json values_json(const Tuning& tuning, std::size_t candidate) {
  Json values = Json::object();
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i)
    values[tuning.ranges[i].path] = tuning.candidates[candidate][i];
  return values;
}

void climb(const ResultTable& table, std::size_t place, Tuning& tuning) {
  const int points = points_of(tuning.scenario);
  const bool is_last = place + 1 == tuning.rungs.size();
  const int kept = is_last ? 1 : tuning.rungs[place + 1].candidates;
  const int before = place == 0 ? 0 : tuning.rungs[place - 1].seeds;
  for (TunedArm& arm : tuning.arms) {
    std::vector<double> scores;
    for (const std::size_t candidate : arm.left)
      scores.push_back(score_of(table, candidate_name(arm.name, candidate), tuning));
    const std::vector<std::size_t> best = best_places(scores, kept);
    for (std::size_t i = 0; i < arm.left.size(); ++i) {
      tuning.trace.push_back({{"rung", place},
                              {"arm", arm.name},
                              {"candidate", arm.left[i]},
                              {"values", values_json(tuning, arm.left[i])},
                              {"seeds", tuning.rungs[place].seeds},
                              {"score", std::isfinite(scores[i]) ? Json(scores[i]) : Json()},
                              {"kept", std::find(best.begin(), best.end(), i) != best.end()}});
    }
    arm.cells += points * static_cast<int>(arm.left.size()) * (tuning.rungs[place].seeds - before);
    std::vector<std::size_t> left;
    for (const std::size_t i : best) left.push_back(arm.left[i]);
    arm.left = std::move(left);
    arm.score = scores[best.front()];
  }
}

/// The tuned fields whose chosen value is at an end of its range.
std::vector<std::string> edges_of(const Tuning& tuning, const TunedArm& arm) {
  std::vector<std::string> edges;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    const double share = tuning.ranges[i].share_of(tuning.candidates[arm.left.front()][i]);
    if (share < kEdge || share > 1 - kEdge) edges.push_back(tuning.ranges[i].path);
  }
  return edges;
}

std::string values_text(const Tuning& tuning, std::size_t candidate) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i)
    parts.push_back(fmt::format("{} = {}", tuning.ranges[i].path, tuning.candidates[candidate][i].dump()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What a scenario's notes say of the choice.
std::string notes_text(const Tuning& tuning) {
  std::vector<std::string> ranges, arms;
  for (const TuneRange& range : tuning.ranges) {
    ranges.push_back(fmt::format("{} of [{:g}, {:g}] ({})", range.path, range.low, range.high,
                                 range.is_log ? "log" : "linear"));
  }
  for (const TunedArm& arm : tuning.arms)
    arms.push_back(fmt::format("{}: {}", arm.name, values_text(tuning, arm.left.front())));
  return fmt::format(
      "Chosen on root seed {} from {} with {} cells an arm: {} candidates, the same for every arm, by the {} "
      "{} over sweep points and seeds, successive halving on common random numbers. {}.",
      kTuningRoot, fmt::join(ranges, ", "), tuning.arms.front().cells, tuning.candidates.size(),
      tuning.sign > 0 ? "least" : "greatest", tuning.metric, fmt::join(arms, "; "));
}

Json answer_json(const Tuning& tuning, const std::filesystem::path& directory) {
  Json ranges = Json::object(), arms = Json::object();
  for (const TuneRange& range : tuning.ranges)
    ranges[range.path] = {
        {"low", range.low}, {"high", range.high}, {"scale", range.is_log ? "log" : "linear"}};
  for (const TunedArm& arm : tuning.arms) {
    arms[arm.name] = {{"values", values_json(tuning, arm.left.front())},
                      {"score", std::isfinite(arm.score) ? Json(arm.score) : Json()},
                      {"cells", arm.cells},
                      {"at_edge", edges_of(tuning, arm)}};
  }
  return {{"name", tuning.scenario.name},
          {"directory", directory.string()},
          {"root_seed", kTuningRoot},
          {"metric", tuning.metric},
          {"best", tuning.sign > 0 ? "least" : "greatest"},
          {"ranges", std::move(ranges)},
          {"arms", std::move(arms)},
          {"notes", notes_text(tuning)},
          {"trace", tuning.trace}};
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
  for (std::size_t place = 0; place < tuning.rungs.size(); ++place) {
    const Scenario rung = rung_scenario(tuning, tuning.rungs[place]);
    const SessionOutcome outcome = run_session(rung, options, run_cell);
    if (outcome.interrupted) return kInterruptedStatus;
    climb(load_results(directory, rung, outcome.plan).table, place, tuning);
  }
  const Json answer = answer_json(tuning, directory);
  update_file(directory / "tune.json", json_text(answer) + "\n");
  for (const TunedArm& arm : tuning.arms) {
    for (const std::string& path : edges_of(tuning, arm)) {
      std::cerr << fmt::format("moelab: note: {}: the best {} is at the edge of its range; widen it\n",
                               arm.name, path);
    }
    if (!std::isfinite(arm.score))
      std::cerr << fmt::format("moelab: note: {}: no candidate is without a cell that diverged or failed\n",
                               arm.name);
  }
  if (arguments.json) {
    std::cout << json_text(answer) << '\n';
    return 0;
  }
  for (const TunedArm& arm : tuning.arms) {
    std::cout << fmt::format("{}: {} (score {:.4g}, {} cells)\n", arm.name,
                             values_text(tuning, arm.left.front()), arm.score, arm.cells);
  }
  std::cout << fmt::format("\nfor the notes:\n{}\n\nevery candidate in {}\n", notes_text(tuning),
                           (directory / "tune.json").string());
  return 0;
}

}  // namespace

Verb tune_verb() {
  return {"tune", "Choose the fields named in \"tune\" for every arm, on a root seed of their own",
          "tune my_idea.json --budget 60", [](Arguments& arguments) -> VerbCall {
            return {
                joined(scenario_options(arguments),
                       {{{"--arms", &arguments.arms, "names with commas between (default: all)"},
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
