#include "app/cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <set>

#include "analysis/stats/intervals.h"
#include "app/cli/completion.h"
#include "app/report/claim_results.h"
#include "app/report/hints.h"
#include "app/run/cell.h"
#include "app/run/cost.h"
#include "app/run/figures.h"
#include "app/run/memory.h"
#include "app/run/results.h"
#include "app/run/scheduler.h"
#include "app/run/search.h"
#include "app/run/session.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "app/store/plan.h"
#include "plots/kinds/crossing.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// The largest seed that --seeds accepts.
constexpr int kLastSeed = 9'999'999;

bool sets_seeds(const std::vector<std::string>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.starts_with("seeds=") || setting.starts_with("seeds.count=");
  });
}

/// A decided run added seeds after looking at its results, so only confidence sequences are valid. A fixed
/// number of seeds would hide that.
[[noreturn]] void refuse_number_of_seeds(const std::string& option) {
  throw UserError(option,
                  "the run's claims decide how many seeds it has; run --until-decided with a "
                  "greater --max-seeds adds more");
}

/// The settings, with this number of seeds.
std::vector<std::string> with_seed_count(std::vector<std::string> settings, int count) {
  std::erase_if(settings, [](const std::string& setting) { return setting.starts_with("seeds.count="); });
  settings.push_back(fmt::format("seeds.count={}", count));
  return settings;
}

/// Loads the file and the profile of `choice`, which it refers to.
ScenarioLoader loader_of(const ScenarioChoice& choice) {
  return [&](const std::vector<std::string>& settings) {
    return load_scenario(choice.file, choice.profile, settings);
  };
}

/// The scenario that `load` makes, with the seeds of a decided run.
Scenario with_seeds(const DecidedSeeds& decided, std::vector<std::string> settings,
                    const ScenarioLoader& load) {
  Scenario scenario = load(with_seed_count(std::move(settings), std::ranges::max(decided.seeds)));
  keep_decided(scenario, decided);
  return scenario;
}

/// From "5..9" or "5": {5, 9} or {5, 5}. Throws UserError.
std::pair<int, int> read_seed_range(const std::string& text) {
  const std::vector<int> seeds = whole_numbers(text, "..");
  const bool is_range = seeds.size() == 1 || (seeds.size() == 2 && seeds[0] <= seeds[1]);
  if (is_range && seeds.back() <= kLastSeed) return {seeds.front(), seeds.back()};
  throw UserError("--seeds", fmt::format("got '{}', needs FIRST..LAST such as 5..9, or one seed", text));
}

/// The number of seeds after `range` joins the seeds 0 … next − 1. Throws UserError where there is a gap.
int count_with(const std::string& range, int next) {
  const auto [first, last] = read_seed_range(range);
  if (first > next) {
    throw UserError("--seeds", fmt::format("got '{}', but the run has seeds 0 … {}, so that the next is {}",
                                           range, next - 1, next));
  }
  return last + 1;
}

/// The run with the sweep points that its search has placed so far.
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
  throw UserError("--out", fmt::format("got '{}', which names a plan of the run folder '{}'; needs the "
                                       "folder alone, where the scenario finds its plan",
                                       directory.string(), run.string()));
}

void PlanChoice::bind(VerbOptions& options) {
  scenario.bind(options);
  options.add("--out", &out, "run folder (default: runs/<name>[-<profile>])",
              {.candidates = offer_files(Candidates::Files::folders)});
  options.add("--seeds", &added_seeds,
              "FIRST..LAST: add seeds, such as 5..9 to 0 … 4; the run folder keeps them");
}

PlannedRun planned_run(const PlanChoice& choice, bool until_decided) {
  return planned_run(choice, until_decided, loader_of(choice.scenario));
}

PlannedRun planned_run(const PlanChoice& choice, bool until_decided, const ScenarioLoader& load) {
  const std::vector<std::string>& settings = choice.scenario.settings;
  PlannedRun run{load(settings), choice.out};
  if (run.directory.empty()) run.directory = default_run_directory(run.scenario);
  check_no_plan_named(run.directory);
  check_output_folder(run.directory, "--out");
  check_run_directory(run.directory, run.scenario.name);

  const int asked = seed_count(run.scenario);
  const bool sets = sets_seeds(settings), adds = !choice.added_seeds.empty();
  const std::optional<Plan> earlier = plan_with_id(run.directory, plan_id(run.scenario));
  const bool is_decided = earlier && earlier->head.decided;
  if (adds && (is_decided || until_decided)) refuse_number_of_seeds("--seeds");
  if (is_decided) {
    const DecidedSeeds& decided = *earlier->head.decided;
    // The command that started the run sets the seeds at which its looks began. It may continue the run.
    const bool goes_on = until_decided && asked <= decided.fixed_seeds;
    if (sets && !goes_on) refuse_number_of_seeds("--set seeds.count");
    // The file or the profile may have changed since.
    if (asked > decided.fixed_seeds) refuse_number_of_seeds("seeds.count");
    run.scenario = with_seeds(decided, settings, load);
    return run;
  }
  int added = earlier && !sets ? earlier->head.added_seeds_to : 0;
  if (adds) added = std::max(added, count_with(choice.added_seeds, std::max(asked, added)));
  int count = added;
  // The looks begin at the seeds that the plan has already.
  if (earlier && until_decided) count = std::max(count, seed_count(earlier->cells));
  if (count <= asked) return with_points(std::move(run));
  try {
    run.scenario = load(with_seed_count(settings, count));
  } catch (const InvalidOption& error) {
    if (!adds || error.path() != "--set seeds.count") throw;
    throw UserError("--seeds", error.message());
  }
  if (added > asked) run.scenario.added_seeds_to = added;
  return with_points(std::move(run));
}

namespace {

constexpr int kMostDecidedSeeds = 100;
constexpr double kMaximumHours = 1e6;  // a century

/// The number of seeds of each arm at each sweep point.
std::vector<int> seeds_of(const Scenario& scenario) {
  std::vector<int> seeds;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed == 0) seeds.push_back(0);
    seeds.back() = cell.seed + 1;
  }
  return seeds;
}

void report_end(const std::vector<ClaimResult>& claims, const std::string& reason) {
  std::vector<std::string> open;
  for (const ClaimResult& claim : claims)
    if (claim.verdict == Verdict::inconclusive) open.push_back(claim.id);
  if (open.empty()) return;
  std::cerr << fmt::format("moelab: note: {}; inconclusive: {}\n", reason, fmt::join(open, ", "));
}

/// Why the run adds no seeds although a claim is open.
std::string end_reason(int most) {
  if (most >= kLeastSequentialPairs)
    return "no claim is open that more seeds, up to --max-seeds, could decide";
  return fmt::format("--max-seeds {} lies below the {} pairs that a verdict needs", most,
                     kLeastSequentialPairs);
}

}  // namespace

void DecidingChoice::bind(VerbOptions& options, const std::string& help) {
  options.add("--until-decided", &until_decided, help);
  options.add("--max-seeds", &max_seeds,
              fmt::format("with --until-decided: most seeds of an arm at a sweep point (default {})",
                          kMostDecidedSeeds),
              {.check = whole_number(1, 1'000'000)});
  options.add("--hours", &hours,
              "with --until-decided: add no seeds after that many hours (default: no limit)",
              {.check = positive_number("hours", kMaximumHours)});
}

int DecidingChoice::most_seeds() const {
  return max_seeds > 0 ? max_seeds : kMostDecidedSeeds;
}

void check_deciding(const DecidingChoice& deciding, const Scenario& scenario) {
  if (!deciding.until_decided) {
    if (deciding.max_seeds > 0) throw UserError("--max-seeds", "given without --until-decided");
    if (deciding.hours > 0) throw UserError("--hours", "given without --until-decided");
    return;
  }
  if (scenario.crossing) {
    throw UserError("--until-decided",
                    "the sweep searches a crossing, whose points depend on the seeds; "
                    "--seeds adds the same to all of them");
  }
  if (scenario.claims.empty()) throw UserError("--until-decided", "the scenario has no claims to decide");
  const int planned = scenario.decided ? scenario.decided->fixed_seeds : seed_count(scenario);
  if (deciding.max_seeds > 0 && deciding.max_seeds < planned) {
    throw UserError("--max-seeds", fmt::format("got {}, needs at least the {} seeds that the run begins with",
                                               deciding.max_seeds, planned));
  }
}

Scenario largest_decided_run(const ScenarioChoice& choice, const DecidingChoice& deciding,
                             const Scenario& scenario) {
  const std::vector<int> seeds = seeds_of(scenario);
  const int fixed_seeds = scenario.decided ? scenario.decided->fixed_seeds : seeds.front();
  return with_seeds({fixed_seeds, most_wanted_seeds(scenario, seeds, deciding.most_seeds())}, choice.settings,
                    loader_of(choice));
}

void bind_leases(VerbOptions& options, bool& leases) {
  options.add("--leases", &leases,
              "share the cells with other processes on the folder that have this option: take cells that "
              "none of them is running, and wait for theirs");
}

SessionOutcome run_until_decided(const std::vector<std::string>& settings, const ScenarioLoader& load,
                                 const DecidingChoice& deciding, const SessionOptions& options,
                                 PlannedRun& run, const CellRunner& runner) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  if (!run.scenario.decided) {
    const std::vector<int> seeds = seeds_of(run.scenario);
    keep_decided(run.scenario, DecidedSeeds{seeds.front(), seeds});
  }
  for (SessionOptions round = options;; round = next_round(round)) {
    const SessionOutcome outcome = run_session(run.scenario, round, runner);
    if (outcome.interrupted || outcome.stopped) return outcome;
    const std::vector<ClaimResult> claims =
        claim_results(load_results(run.directory, run.scenario, outcome.plan));
    const std::vector<int> seeds = seeds_of(run.scenario);
    const std::vector<int> wanted = wanted_seeds(run.scenario, claims, seeds, deciding.most_seeds());
    if (wanted == seeds) {
      report_end(claims, end_reason(deciding.most_seeds()));
      return outcome;
    }
    if (deciding.hours > 0 &&
        Clock::now() - start > std::chrono::duration<double, std::ratio<3600>>(deciding.hours)) {
      report_end(claims, "--hours have passed; the same command goes on");
      return outcome;
    }
    run.scenario = with_seeds({run.scenario.decided->fixed_seeds, wanted}, settings, load);
  }
}

namespace {

Json answer_json(const RunResults& results, const std::filesystem::path& directory, int failed,
                 const std::vector<ClaimResult>& claims, const std::vector<std::filesystem::path>& figures) {
  Json answer = {{"directory", directory.string()},
                 {"plan", results.id},
                 {"cells", results.table.cell_count()},
                 {"failed", failed},
                 {"summary", summary_json(results.table, main_metric(results.head))},
                 {"claims", Json::array()},
                 {"figures", file_names(figures)}};
  for (const ClaimResult& claim : claims) answer["claims"].push_back(to_json(claim));
  if (Json crossings = crossings_json(results); !crossings.empty())
    answer["crossings"] = std::move(crossings);
  if (Json rates = rates_json(results); !rates.empty()) answer["rates"] = std::move(rates);
  return answer;
}

/// 1 where a cell failed, its arrays are lost, or every cell diverged. Divergence of some cells is a result.
/// Verdicts of claims do not count here.
int status_of(const SessionOutcome& outcome) {
  return outcome.failed > 0 || outcome.not_restored > 0 || outcome.all_diverged ? 1 : 0;
}

/// A hint, which it also prints on stderr, where every cell diverged; otherwise empty.
std::string shown_hint(const SessionOutcome& outcome, const Scenario& scenario, const ResultTable& table) {
  if (!outcome.all_diverged) return "";
  const std::string hint = divergence_hint(scenario, table);
  std::cerr << "moelab: " << hint << std::endl;
  return hint;
}

struct RunOptions {
  PlanChoice plan;
  DecidingChoice deciding;
  int threads = 0;
  std::string share;  ///< "I/N"; empty for all cells
  bool leases = false;
  std::string retry;  ///< "failed", or empty
  bool force = false, fail_fast = false, json = false;
  std::vector<std::string> command_line;

  void bind(VerbOptions& options) {
    plan.bind(options);
    bind_threads(options, threads, kCellThreads);
    options.add("--share", &share,
                "I/N: only share I (from 0) of N shares of the cells, for N processes on one folder");
    bind_leases(options, leases);
    options.add("--retry", &retry, "failed: run the cells again that failed",
                {.check = one_of("choice", {"failed"})});
    options.add("--force", &force, "run even if the memory seems too small");
    deciding.bind(options, "add seeds until every claim is decided; verdicts use confidence sequences");
    options.add("--fail-fast", &fail_fast, "stop at the first cell that fails; status 1");
    bind_json(options, json);
    options.command_line = &command_line;
  }
};

/// Throws UserError where --share is given together with leases, or for a run that looks at all cells.
void check_sharing(const RunOptions& options, const Scenario& scenario) {
  if (options.share.empty()) return;
  refuse_beside(options.leases, "--share", "--leases, by which processes share the cells");
  if (scenario.crossing)
    throw UserError("--share",
                    "the sweep searches a crossing, which looks at all cells; --leases shares them");
  refuse_beside(options.deciding.until_decided, "--share",
                "--until-decided, which looks at all cells; --leases shares them");
}

/// Runs the missing cells, then judges the claims and draws the figures.
int run_scenario(const RunOptions& options) {
  exit_when_interrupted();
  const Share share = options.share.empty() ? Share{} : read_share(options.share);
  PlannedRun run = planned_run(options.plan, options.deciding.until_decided);
  print_hints(scenario_hints(run.scenario));
  const std::filesystem::path& directory = run.directory;
  check_sharing(options, run.scenario);
  check_deciding(options.deciding, run.scenario);
  const auto admit = [&](const Records& records) {
    if (options.force) return;
    const RunCost cost = run_cost(run.scenario, records, thread_count(options.threads));
    check_memory(cost.process_bytes, cost.cell_bytes, cost.threads, available_bytes());
  };
  LiveClaims live;
  const SessionOptions session = {.directory = directory,
                                  .threads = thread_count(options.threads),
                                  .arguments = options.command_line,
                                  .share = share,
                                  .retry_failed = !options.retry.empty(),
                                  .leases = options.leases,
                                  .view = is_live_terminal(STDERR_FILENO) ? &live : nullptr,
                                  .fail_fast = options.fail_fast,
                                  .admit = admit};
  const SessionOutcome outcome =
      options.deciding.until_decided
          ? run_until_decided(options.plan.scenario.settings, loader_of(options.plan.scenario),
                              options.deciding, session, run, run_cell)
          : run_and_search(run.scenario, session, run_cell);
  const Scenario& scenario = run.scenario;
  if (outcome.interrupted || outcome.stopped) {
    if (options.json) {
      const std::string reason = outcome.interrupted ? "interrupted" : "stopped at a failed cell";
      const Json answer = {{"error", {{"path", ""}, {"message", reason + "; the same command resumes"}}}};
      print_json(answer);
    }
    return outcome.interrupted ? kInterruptedStatus : 1;
  }

  // Other shares may still be running, so this process judges no claims and draws no figures.
  if (share.count > 1) {
    if (options.json) {
      const Json answer = {
          {"directory", directory.string()}, {"share", options.share}, {"failed", outcome.failed}};
      print_json(answer);
    } else {
      std::cout << fmt::format(
          "share {} is recorded in {}; `moelab claims` and `moelab plot` read all shares\n", options.share,
          directory.string());
    }
    shown_hint(outcome, scenario, {});
    return status_of(outcome);
  }
  const RunResults results = load_results(directory, scenario, outcome.plan);
  print_notes(results);
  const std::vector<ClaimResult> claims = judge_claims(results, directory);
  const auto print_claims = [&] {
    if (!options.json) std::cout << fmt::format("\n{}", claims_text(claims)) << std::flush;
  };
  if (!options.json) {
    std::string crossings = crossings_text(results), note = main_metric_note(results.head);
    if (!crossings.empty()) crossings += '\n';
    if (!note.empty()) note += '\n';
    const std::optional<TerminalSize> terminal = terminal_size(STDOUT_FILENO);
    const auto most_columns = terminal ? std::optional(terminal->columns) : std::nullopt;
    std::cout << fmt::format("{}{}\n{}{}results in {}\n",
                             summary_text(results.table, main_metric(results.head), most_columns), note,
                             crossings, rates_text(results), directory.string())
              << std::flush;
  }
  const std::string hint = shown_hint(outcome, scenario, results.table);
  const std::vector<std::string> hints = result_hints(results);
  print_hints(hints);
  std::vector<std::filesystem::path> figures;
  if (is_read_only(directory)) {
    std::cerr << fmt::format("moelab: note: {} is read-only; no figures were drawn\n", directory.string());
  } else {
    try {
      figures = draw_figures(results, directory);
    } catch (...) {
      print_claims();  // without gnuplot, the program still prints everything else
      throw;
    }
  }
  if (options.json) {
    Json answer = answer_json(results, directory, outcome.failed, claims, figures);
    if (!hint.empty()) answer["hint"] = hint;
    if (!hints.empty()) answer["hints"] = hints;
    print_json(answer);
  } else {
    std::cout << figures_text(figures)
              << fmt::format("all of it on one page: moelab report {}\n", directory.string());
  }
  print_claims();
  return status_of(outcome);
}

// `plan`: what `run` would do.

/// The swept values of each path, in the order of their first cell.
Json swept_values(const Scenario& scenario) {
  Json values = Json::object();
  for (const std::string& path : scenario.sweep_paths) values[path] = Json::array();
  std::set<std::pair<std::string, std::string>> known;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    for (const auto& [path, value] : cell.point) {
      if (known.emplace(path, value.text()).second) values[path].push_back(to_json(value));
    }
  }
  return values;
}

/// "[1, 2, 3]". Of many values it shows the first ones and the last.
std::string list_text(const Json& values) {
  constexpr std::size_t most = 12;
  if (values.size() <= most) return values.dump();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 2 < most; ++i) texts.push_back(values[i].dump());
  return fmt::format("[{},…,{}], {} values", fmt::join(texts, ","), values.back().dump(), values.size());
}

struct PlanOptions {
  PlanChoice plan;
  int threads = 0;
  bool json = false;

  void bind(VerbOptions& options) {
    plan.bind(options);
    bind_threads(options, threads, kCellThreads);
    bind_json(options, json);
  }
};

/// Prints what `run` would do. Writes nothing.
int print_plan(const PlanOptions& options) {
  const auto [scenario, directory] = planned_run(options.plan);
  print_hints(scenario_hints(scenario));
  const Records records = read_records(directory);

  std::set<std::string> distinct;
  std::map<std::string, std::size_t> points_of_arms;
  for (const Cell& cell : scenario.cells) {
    distinct.insert(point_key(cell.point));
    if (cell.seed == 0) ++points_of_arms[cell.arm];
  }
  const std::size_t points = distinct.size();
  std::set<std::string> cells;  // two arms may have the same cell
  for (const Cell& cell : scenario.cells) cells.insert(cell.id);
  const auto recorded =
      std::ranges::count_if(cells, [&](const std::string& id) { return records.contains(id); });
  const auto [fewest_seeds, most_seeds] = std::ranges::minmax(seeds_of(scenario));  // equal unless decided
  const int threads = thread_count(options.threads);
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
  if (options.json) {
    print_json(answer);
    return 0;
  }
  Table table;
  std::vector<std::vector<std::string>>& rows = table.rows;
  rows = {
      {"scenario", scenario.name + (scenario.profile.empty() ? "" : " (profile " + scenario.profile + ")")},
      {"arms", fmt::format("{}: {}", scenario.arms.size(), fmt::join(scenario.arms, ", "))}};
  for (const auto& [path, values] : answer.at("sweep").items())
    rows.push_back({"sweep", path + " in " + list_text(values)});
  std::vector<std::string> arm_points;
  for (const auto& [arm, count] : points_of_arms) arm_points.push_back(fmt::format("{} of {}", count, arm));
  const bool is_alike = std::ranges::all_of(
      points_of_arms, [&](const auto& one) { return one.second == points_of_arms.begin()->second; });
  rows.push_back(
      {"sweep points", is_alike ? std::to_string(points) : fmt::format("{}", fmt::join(arm_points, ", "))});
  rows.push_back({"seeds", fewest_seeds == most_seeds
                               ? std::to_string(most_seeds)
                               : fmt::format("{} to {}, by what claims needed", fewest_seeds, most_seeds)});
  const std::string shared =
      cells.size() < scenario.cells.size() ? fmt::format(" ({} without equal ones)", cells.size()) : "";
  rows.push_back({"cells", fmt::format("{}{}: {} recorded, {} to run", scenario.cells.size(), shared,
                                       recorded, missing)});
  if (scenario.crossing) {
    const Json& search = answer.at("crossing");
    rows.push_back(
        {"", fmt::format("{} in all at most: the search along {} places points by what is recorded",
                         search.at("most_cells").get<std::size_t>(), scenario.crossing->path)});
  }
  rows.push_back({"folder", directory.string()});
  rows.push_back({"plan", answer.at("plan")});
  if (missing > 0) {
    const std::string time = cost.seconds < 1 ? "less than a second" : "about " + clock_text(cost.seconds);
    rows.push_back({"time left", fmt::format("{} on {}", time, counted(threads, "thread"))});
    rows.push_back({"", "estimated from " + cost.source});
    rows.push_back(
        {"memory", fmt::format("about {:.0f} MB on {}, {:.0f} MB for each cell at a time", cost.bytes / 1e6,
                               counted(cost.threads, "thread"), cost.cell_bytes / 1e6)});
  }
  std::cout << text_table(table);
  return 0;
}

}  // namespace

Verb run_verb() {
  return make_verb("run", "Run a scenario's missing cells, test its claims, draw its figures",
                   "run scenarios/dikkala2023/fig2a.json --profile quick", run_scenario);
}

Verb plan_verb() {
  return make_verb("plan", "Show what run would do, without writing anything",
                   "plan scenarios/dikkala2023/fig2a.json --set seeds.count=3", print_plan);
}

}  // namespace moelab
