#include "app/cli/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/completion.h"
#include "app/cli/run.h"
#include "app/run/results.h"
#include "app/run/scheduler.h"
#include "app/run/session.h"
#include "app/scenario/arms.h"
#include "app/scenario/checks.h"
#include "app/store/durable_file.h"
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

/// Why --arms refuses a text, whatever the scenario; empty where it accepts the text.
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

/// The number of sweep points of the arm that has most.
int points_of(const Scenario& scenario) {
  std::map<std::string, int> points;
  int most = 0;
  for (const Cell& cell : scenario.cells)
    if (cell.seed == 0) most = std::max(most, ++points[cell.arm]);
  return most;
}

/// The name of the arm that a rung's scenario has for a candidate of `arm`.
std::string candidate_name(const std::string& arm, std::size_t candidate) {
  return fmt::format("{}#{}", arm, candidate);
}

}  // namespace

void TuningChoice::bind(VerbOptions& options, const std::string& prefix) {
  options.add("--arms", &arms, prefix + "arm names, separated by commas (default: all)",
              {.check = refusal_of_arms});
  options.add("--budget", &budget, fmt::format("{}cells for each arm (default {})", prefix, kDefaultBudget),
              {.check = whole_number(2, 1'000'000)});
  options.add("--metric", &metric, prefix + "metric to minimise (default: the objective)",
              {.candidates = offer_metrics});
  options.add("--maximize", &maximize, prefix + "maximise the metric (default: the metric's own direction)");
}

Tuning read_tuning(const ScenarioChoice& scenario, const TuningChoice& choice,
                   const std::filesystem::path& out) {
  Tuning tuning;
  tuning.scenario = scenario.load();
  if (tuning.scenario.tune.empty())
    throw UserError("tune", "missing; needs {path: {\"low\", \"high\", \"scale\"}}, the fields to choose");
  if (tuning.scenario.cells.front().root_seed == kTuningRoot) {
    throw UserError("seeds.root",
                    fmt::format("got {}, which tuning takes; judging needs another", kTuningRoot));
  }
  tuning.ranges = tuning.scenario.tune;
  const MainMetric main = main_choice(tuning.scenario);
  tuning.metric = choice.metric.empty() ? main.name : choice.metric;
  tuning.metric_from = choice.metric.empty() ? main.reason : "--metric";
  const bool is_maximized = tuning.metric == main.name ? main.is_maximized : is_larger_better(tuning.metric);
  if (choice.maximize || is_maximized) tuning.sign = -1;
  const References references(tuning.scenario);
  for (const std::string& arm : chosen_arms(choice.arms, tuning.scenario)) {
    references.check_metric(arm, tuning.metric, "--metric");
    tuning.arms.push_back({arm, {}});
  }
  const int budget = choice.budget > 0 ? choice.budget : kDefaultBudget;
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
  tuning.directory = out;
  if (tuning.directory.empty()) tuning.directory = default_run_directory(tuning.scenario).string() + "-tune";
  check_no_plan_named(tuning.directory);
  return tuning;
}

namespace {

/// The overrides of an arm with a candidate's values.
Json with_candidate(const Arm& arm, const Tuning& tuning, std::size_t candidate) {
  Json own = Json::object();
  for (const Override& change : arm.overrides) own[change.path] = change.value;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    own.erase(tuning.ranges[i].path);  // moves to the end, after overrides of the values above it
    own[tuning.ranges[i].path] = tuning.candidates[candidate][i];
  }
  return own;
}

}  // namespace

Scenario rung_scenario(const Tuning& tuning, const Rung& rung) {
  Json document = tuning.scenario.document;
  // Labels name arms and values that this scenario does not have.
  for (const char* part : {"tune", "claims", "figures", "profiles", "labels"}) document.erase(part);
  if (tuning.scenario.crossing) {  // the search names arms that are not in this scenario
    const CrossingSearch& search = *tuning.scenario.crossing;
    document["sweep"][search.path] = {search.low, search.high};
  }
  document["save"] = Json::array();
  document["seeds"]["root"] = kTuningRoot;
  document["seeds"]["count"] = rung.seeds;
  document["arms"] = Json::object();
  // The candidates of an arm sweep the paths that the arm sweeps.
  std::vector<SweepAxis> partial;
  for (SweepAxis& axis : read_sweep(document.value("sweep", Json::object()))) {
    if (axis.arms.is_null()) continue;
    const std::string& path = axis.paths.front();
    axis.arms = matching_arms(axis.arms, tuning.scenario.arms, join_path("sweep", path));
    document["sweep"][path]["arms"] = Json::array();
    partial.push_back(std::move(axis));
  }
  for (const TunedArm& arm : tuning.arms) {
    const auto written = std::ranges::find(tuning.scenario.arm_overrides, arm.name, &Arm::name);
    for (const std::size_t candidate : arm.left) {
      document["arms"][candidate_name(arm.name, candidate)] = with_candidate(*written, tuning, candidate);
      for (const SweepAxis& axis : partial) {
        if (std::find(axis.arms.begin(), axis.arms.end(), Json(arm.name)) != axis.arms.end())
          document["sweep"][axis.paths.front()]["arms"].push_back(candidate_name(arm.name, candidate));
      }
    }
  }
  for (const SweepAxis& axis : partial)
    if (document["sweep"][axis.paths.front()]["arms"].empty()) document["sweep"].erase(axis.paths.front());
  if (document.contains("sweep") && document["sweep"].empty()) document.erase("sweep");
  return expand_scenario(document, "", {});
}

std::size_t tuning_cells(const Tuning& tuning) {
  return tuning.arms.size() * static_cast<std::size_t>(points_of(tuning.scenario)) *
         static_cast<std::size_t>(trainings_of(tuning.rungs));
}

namespace {

/// A value is at the edge of its range when its distance from one end is below this share of the range.
constexpr double kEdge = 0.05;

/// The number of cells of an arm. It differs between arms where two candidates of one arm have the same
/// cells.
std::string cells_text(const std::vector<TunedArm>& arms) {
  const auto [least, most] =
      std::ranges::minmax_element(arms, {}, [](const TunedArm& arm) { return arm.cells.size(); });
  if (least->cells.size() == most->cells.size()) return fmt::format("{}", most->cells.size());
  return fmt::format("{} to {}", least->cells.size(), most->cells.size());
}

/// Whether some candidate finished.
bool has_choice(const TunedArm& arm) {
  return !std::isnan(arm.score);
}

/// A candidate as {path: value}.
Json tuned_values(const Tuning& tuning, std::size_t candidate) {
  Json values = Json::object();
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i)
    values[tuning.ranges[i].path] = tuning.candidates[candidate][i];
  return values;
}

/// A tuned field whose best value may lie beyond the values tried.
struct TunedEdge {
  std::string path;
  std::string text;  ///< "the best train.lr is at the edge of its range; widen it"
};

/// The fields whose chosen value is at an end of its range, or is the least or the largest value tried. Empty
/// where nothing is chosen.
std::vector<TunedEdge> tuned_edges(const Tuning& tuning, const TunedArm& arm) {
  std::vector<TunedEdge> edges;
  if (!has_choice(arm)) return edges;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    const TuneRange& range = tuning.ranges[i];
    const Json& chosen = tuning.candidates[arm.left.front()][i];
    std::vector<double> shares;
    for (const std::vector<Json>& candidate : tuning.candidates)
      shares.push_back(range.share_of(candidate[i]));
    const auto [least, most] = std::ranges::minmax(shares);
    const double share = range.share_of(chosen);
    if (share < kEdge || share > 1 - kEdge) {
      edges.push_back(
          {range.path, fmt::format("the best {} is at the edge of its range; widen it", range.path)});
    } else if (share == least || share == most) {
      // Sobol points in several dimensions do not reach the ends of a range.
      edges.push_back({range.path, fmt::format("the best {}, {} of [{:g}, {:g}], is the {} tried; a greater "
                                               "--budget tries more, or widen its range",
                                               range.path, chosen.dump(), range.low, range.high,
                                               share == least ? "least" : "largest")});
    }
  }
  return edges;
}

/// The mean of the metric of the chosen candidate over sweep points and seeds, on its last rung: the
/// geometric mean where the metric is declared positive.
double tuned_mean(const Tuning& tuning, const TunedArm& arm) {
  const double mean = tuning.sign * arm.score;
  return is_declared_positive(tuning.metric) ? std::exp(mean) : mean;
}

/// The chosen values of an arm: "train.lr.expert = 0.003, …".
std::string tuned_text(const Tuning& tuning, const TunedArm& arm) {
  if (!has_choice(arm)) return "no candidate";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    parts.push_back(
        fmt::format("{} = {}", tuning.ranges[i].path, tuning.candidates[arm.left.front()][i].dump()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// A sentence for a scenario's `notes`: how the values were chosen.
std::string tuning_notes(const Tuning& tuning) {
  std::vector<std::string> ranges, arms;
  for (const TuneRange& range : tuning.ranges) {
    ranges.push_back(fmt::format("{} of [{:g}, {:g}] ({})", range.path, range.low, range.high,
                                 range.is_log ? "log" : "linear"));
  }
  for (const TunedArm& arm : tuning.arms)
    arms.push_back(fmt::format("{}: {}", arm.name, tuned_text(tuning, arm)));
  return fmt::format(
      "Chosen on root seed {} from {} with {} cells an arm: {} candidates, the same for every arm, by the {} "
      "{} over sweep points and seeds, successive halving on common random numbers. {}.",
      kTuningRoot, fmt::join(ranges, ", "), cells_text(tuning.arms), tuning.candidates.size(),
      tuning.sign > 0 ? "least" : "greatest", tuning.metric, fmt::join(arms, "; "));
}

/// The scenario with every arm at its best, and the note that says how its values were chosen.
Json tuned_document(const Tuning& tuning, const std::filesystem::path& file) {
  Json document = moved_to(file.parent_path(), tuning.scenario.document);
  document["arms"] = Json::object();
  for (const Arm& arm : tuning.scenario.arm_overrides) {
    const auto tuned = std::ranges::find(tuning.arms, arm.name, &TunedArm::name);
    Json own = Json::object();
    for (const Override& change : arm.overrides) own[change.path] = change.value;
    const bool is_chosen = tuned != tuning.arms.end() && has_choice(*tuned);
    document["arms"][arm.name] =
        is_chosen ? with_candidate(arm, tuning, tuned->left.front()) : std::move(own);
  }
  document["objective"] = {{"metric", tuning.metric}, {"direction", tuning.sign > 0 ? "min" : "max"}};
  Json notes = document.value("notes", Json::array());
  if (!notes.is_array()) notes = Json::array({std::move(notes)});
  notes.push_back(
      tuning_notes(tuning) +
      (tuning.scenario.profile.empty()
           ? ""
           : fmt::format(" Under the profile {}, whose values this file has.", tuning.scenario.profile)));
  document["notes"] = std::move(notes);
  return document;
}

/// Throws UserError where the file cannot be written, or is the scenario itself.
void check_tuned_file(const std::filesystem::path& file, const std::filesystem::path& scenario) {
  check_written_file(file, "--write");
  std::error_code unseen;
  if (std::filesystem::equivalent(file, scenario, unseen))
    throw UserError("--write", fmt::format("'{}' is the scenario itself; needs another file", file.string()));
}

/// The content of tune.json, which is also the answer of --json.
Json tuning_answer(const Tuning& tuning) {
  Json ranges = Json::object(), arms = Json::object();
  for (const TuneRange& range : tuning.ranges)
    ranges[range.path] = {
        {"low", range.low}, {"high", range.high}, {"scale", range.is_log ? "log" : "linear"}};
  for (const TunedArm& arm : tuning.arms) {
    Json edges = Json::array();
    for (const TunedEdge& edge : tuned_edges(tuning, arm)) edges.push_back(edge.path);
    const double mean = tuned_mean(tuning, arm);
    arms[arm.name] = {{"values", has_choice(arm) ? tuned_values(tuning, arm.left.front()) : Json()},
                      {"score", std::isfinite(arm.score) ? Json(arm.score) : Json()},
                      {"mean", std::isfinite(mean) ? Json(mean) : Json()},
                      {"cells", arm.cells.size()},
                      {"at_edge", std::move(edges)}};
  }
  return {{"name", tuning.scenario.name},      {"directory", tuning.directory.string()},
          {"root_seed", kTuningRoot},          {"metric", tuning.metric},
          {"metric_from", tuning.metric_from}, {"best", tuning.sign > 0 ? "least" : "greatest"},
          {"ranges", std::move(ranges)},       {"arms", std::move(arms)},
          {"notes", tuning_notes(tuning)},     {"trace", tuning.trace}};
}

/// The mean over sweep points and seeds of the metric, or of its logarithm where it is declared positive,
/// times Tuning::sign. NaN where a cell is not done or lacks the metric.
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

/// Adds the cells of a rung to the arms whose candidates they are. A rung repeats cells of earlier rungs.
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

/// Whether the directory is empty, or was last used by `tune`.
bool shows_tuning(const std::filesystem::path& directory) {
  const std::string id = shown_plan(directory);
  if (id.empty()) return true;
  const std::optional<Plan> plan = plan_with_id(directory, id);
  return plan && plan->head.root_seed == kTuningRoot;
}

/// Prints warnings about the choice on stderr. Returns whether every arm has a choice.
bool print_tuning_notes(const Tuning& tuning) {
  bool have_choices = true;
  for (const TunedArm& arm : tuning.arms) {
    for (const TunedEdge& edge : tuned_edges(tuning, arm))
      std::cerr << fmt::format("moelab: note: {}: {}\n", arm.name, edge.text);
    if (has_choice(arm)) continue;
    have_choices = false;
    std::cerr << fmt::format("moelab: note: {}: no candidate is without a cell that diverged or failed\n",
                             arm.name);
  }
  return have_choices;
}

struct TuneOptions {
  ScenarioChoice scenario;
  TuningChoice choice;
  std::filesystem::path out;
  std::filesystem::path write;  ///< empty for none
  int threads = 0;
  bool leases = false, json = false;
  std::vector<std::string> command_line;

  void bind(VerbOptions& options) {
    scenario.bind(options);
    choice.bind(options);
    options.add("--write", &write, "file for the scenario with every arm at its best, ready to run");
    options.add("--out", &out, "run folder (default: runs/<name>[-<profile>]-tune)",
                {.candidates = offer_files(Candidates::Files::folders)});
    bind_threads(options, threads, kCellThreads);
    bind_leases(options, leases);
    bind_json(options, json);
    options.command_line = &command_line;
  }
};

int tune_scenario(const TuneOptions& options) {
  exit_when_interrupted();
  if (!options.write.empty()) check_tuned_file(options.write, options.scenario.file);
  Tuning tuning = read_tuning(options.scenario, options.choice, options.out);
  const std::string note = options.choice.metric.empty() ? main_metric_note(tuning.scenario) : "";
  if (!note.empty()) std::cerr << fmt::format("moelab: note: {}\n", note);
  const std::filesystem::path& directory = tuning.directory;
  SessionOptions session;
  session.directory = directory;
  session.threads = thread_count(options.threads);
  session.arguments = options.command_line;
  session.leases = options.leases;
  session.tells_former_plan = !shows_tuning(directory);
  int failed = 0;
  for (std::size_t place = 0; place < tuning.rungs.size(); ++place) {
    const Scenario rung = rung_scenario(tuning, tuning.rungs[place]);
    const SessionOutcome outcome = run_session(rung, session, run_cell);
    if (outcome.interrupted) return kInterruptedStatus;
    session.tells_former_plan = false;  // it is the plan of the previous rung
    failed += outcome.failed;
    count_cells(rung, tuning);
    climb(load_results(directory, rung, outcome.plan).table, place, tuning);
  }
  Json answer = tuning_answer(tuning);
  if (!options.write.empty()) {
    const Json tuned = tuned_document(tuning, options.write);
    replace_file(options.write, json_text(tuned) + "\n");
    answer["written"] = options.write.string();
  }
  update_file(directory / "tune.json", json_text(answer) + "\n");
  const bool have_choices = print_tuning_notes(tuning);
  const int status = failed > 0 || !have_choices ? 1 : 0;
  if (options.json) {
    print_json(answer);
    return status;
  }
  for (const TunedArm& arm : tuning.arms) {
    const std::string mean =
        has_choice(arm) ? fmt::format("{} {:.4g}, ", tuning.metric, tuned_mean(tuning, arm)) : "";
    std::cout << fmt::format("{}: {} ({}{} cells)\n", arm.name, tuned_text(tuning, arm), mean,
                             arm.cells.size());
  }
  const std::string file = shell_word(options.write.string());
  std::cout << (options.write.empty()
                    ? fmt::format("\nfor the notes (--write FILE writes them and the values):\n{}\n",
                                  tuning_notes(tuning))
                    : fmt::format("\nevery arm at its best{}: {}\nrun it with: moelab run {}\n",
                                  tuning.scenario.profile.empty()
                                      ? ""
                                      : ", with the values of the profile " + tuning.scenario.profile,
                                  file, file))
            << fmt::format("\nevery candidate in {}\n", (directory / "tune.json").string());
  return status;
}

}  // namespace

Verb tune_verb() {
  return make_verb("tune", "Choose the fields of \"tune\" for every arm, on a separate root seed",
                   "tune my_idea.json --budget 60", tune_scenario);
}

}  // namespace moelab
