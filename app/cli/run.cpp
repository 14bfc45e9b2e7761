#include "app/cli/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "analysis/stats/intervals.h"
#include "app/cli/verbs.h"
#include "app/report/claim_results.h"
#include "app/run/cell.h"
#include "app/run/cost.h"
#include "app/run/figures.h"
#include "app/run/memory.h"
#include "app/run/results.h"
#include "app/run/scheduler.h"
#include "app/run/search.h"
#include "app/run/session.h"
#include "app/store/durable_file.h"
#include "app/store/plan.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"

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

namespace {

constexpr int kMostDecidedSeeds = 100;
constexpr double kMaximumHours = 1e6;  // a century

/// The seeds of each arm at each point.
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

/// Why no seed is added where a claim is open.
std::string end_reason(int most) {
  if (most >= kLeastSequentialPairs)
    return "no claim is open that more seeds, up to --max-seeds, could decide";
  return fmt::format("--max-seeds {} lies below the {} pairs that a verdict needs", most,
                     kLeastSequentialPairs);
}

}  // namespace

std::vector<Option> deciding_options(Arguments& arguments, const std::string& help) {
  const auto check_hours = [](const std::string& text) {
    return number_problem(text, "hours", kMaximumHours);
  };
  return {{"--until-decided", &arguments.until_decided, help},
          {"--max-seeds", &arguments.max_seeds,
           fmt::format("with --until-decided: the most seeds of an arm at a point (default {})", kMostDecidedSeeds),
           false, whole_number(1, 1'000'000)},
          {"--hours", &arguments.hours, "with --until-decided: add no seeds after that time (default: none)",
           false, check_hours}};
}

void check_deciding(const Arguments& arguments, const Scenario& scenario) {
  if (!arguments.until_decided) {
    if (arguments.max_seeds > 0) throw UserError("--max-seeds", "given without --until-decided");
    if (arguments.hours > 0) throw UserError("--hours", "given without --until-decided");
    return;
  }
  if (scenario.crossing) {
    throw UserError("--until-decided",
                    "the sweep searches a crossing, whose points depend on the seeds; "
                    "--seeds adds the same to all of them");
  }
  if (scenario.claims.empty()) throw UserError("--until-decided", "the scenario has no claims to decide");
  const int planned =
      scenario.decided.is_null() ? seed_count(scenario) : scenario.decided.at("fixed_seeds").get<int>();
  if (arguments.max_seeds > 0 && arguments.max_seeds < planned) {
    throw UserError("--max-seeds", fmt::format("got {}, needs at least the {} seeds that the run begins with",
                                               arguments.max_seeds, planned));
  }
}

int most_seeds(const Arguments& arguments) {
  return arguments.max_seeds > 0 ? arguments.max_seeds : kMostDecidedSeeds;
}

Scenario largest_decided_run(const Arguments& arguments, const Scenario& scenario) {
  const std::vector<int> seeds = seeds_of(scenario);
  Json decided = scenario.decided;
  if (decided.is_null()) decided = {{"fixed_seeds", seeds.front()}};
  decided["seeds"] = most_wanted_seeds(scenario, seeds, most_seeds(arguments));
  return with_seeds(decided, arguments.settings, loader_of(arguments));
}

SessionOutcome run_until_decided(const Arguments& arguments, const SessionOptions& options, PlannedRun& run,
                                 const CellRunner& runner) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  if (run.scenario.decided.is_null()) {
    const std::vector<int> seeds = seeds_of(run.scenario);
    keep_decided(run.scenario, {{"fixed_seeds", seeds.front()}, {"seeds", seeds}});
  }
  for (SessionOptions round = options;; round.retry_failed = false) {  // once: a cell fails alike each time
    const SessionOutcome outcome = run_session(run.scenario, round, runner);
    if (outcome.interrupted || outcome.stopped) return outcome;
    const std::vector<ClaimResult> claims =
        claim_results(load_results(run.directory, run.scenario, outcome.plan));
    const std::vector<int> seeds = seeds_of(run.scenario);
    const std::vector<int> wanted = wanted_seeds(run.scenario, claims, seeds, most_seeds(arguments));
    if (wanted == seeds) {
      report_end(claims, end_reason(most_seeds(arguments)));
      return outcome;
    }
    if (arguments.hours > 0 &&
        Clock::now() - start > std::chrono::duration<double, std::ratio<3600>>(arguments.hours)) {
      report_end(claims, "--hours have passed; the same command goes on");
      return outcome;
    }
    Json decided = run.scenario.decided;
    decided["seeds"] = wanted;
    run.scenario = with_seeds(decided, arguments.settings, loader_of(arguments));
  }
}

namespace {

Json answer_json(const RunResults& results, const std::filesystem::path& directory, int failed,
                 const std::vector<ClaimResult>& claims, const std::vector<std::filesystem::path>& figures) {
  Json answer = {{"directory", directory.string()},
                 {"plan", results.plan.at("id")},
                 {"cells", results.table.rows.size()},
                 {"failed", failed},
                 {"summary", summary_json(results.table, main_metric(results.plan))},
                 {"claims", Json::array()},
                 {"figures", Json::array()}};
  for (const ClaimResult& claim : claims) answer["claims"].push_back(to_json(claim));
  if (Json crossings = crossings_json(results); !crossings.empty())
    answer["crossings"] = std::move(crossings);
  if (Json rates = rates_json(results); !rates.empty()) answer["rates"] = std::move(rates);
  for (const std::filesystem::path& figure : figures) answer["figures"].push_back(figure.string());
  return answer;
}

/// 1 where a cell failed, its arrays are lost, or every cell diverged; divergence of some cells is a result.
/// The verdicts of claims do not count here.
int status_of(const SessionOutcome& outcome) {
  return outcome.failed > 0 || outcome.not_restored > 0 || outcome.all_diverged ? 1 : 0;
}

/// The hint, also shown on stderr; empty where some cell did not diverge.
std::string shown_hint(const SessionOutcome& outcome, const Scenario& scenario, const ResultTable& table) {
  if (!outcome.all_diverged) return "";
  const std::string hint = divergence_hint(scenario, table);
  std::cerr << "moelab: " << hint << std::endl;
  return hint;
}

/// What goes with --share: neither leases nor runs that look at all cells.
void check_sharing(const Arguments& arguments, const Scenario& scenario) {
  if (arguments.leases && !arguments.share.empty())
    throw UserError("--share", "given beside --leases, by which processes share the cells");
  if (scenario.crossing && !arguments.share.empty())
    throw UserError("--share",
                    "the sweep searches a crossing, which looks at all cells; --leases shares them");
  if (arguments.until_decided && !arguments.share.empty())
    throw UserError("--share",
                    "given beside --until-decided, which looks at all cells; --leases shares them");
}

/// Runs the missing cells, then judges the claims and draws the figures.
int run_scenario(const Arguments& arguments) {
  exit_when_interrupted();
  const Share share = arguments.share.empty() ? Share{} : read_share(arguments.share);
  PlannedRun run = planned_run(arguments);
  const std::filesystem::path& directory = run.directory;
  check_sharing(arguments, run.scenario);
  check_deciding(arguments, run.scenario);
  const auto admit = [&](const Records& records) {
    if (arguments.force) return;
    const RunCost cost = run_cost(run.scenario, records, thread_count(arguments));
    check_memory(cost.process_bytes, cost.cell_bytes, cost.threads, available_bytes());
  };
  LiveClaims live;
  const SessionOptions options = {.directory = directory,
                                  .threads = thread_count(arguments),
                                  .arguments = arguments.all,
                                  .share = share,
                                  .retry_failed = !arguments.retry.empty(),
                                  .leases = arguments.leases,
                                  .view = is_live_terminal() ? &live : nullptr,
                                  .fail_fast = arguments.fail_fast,
                                  .admit = admit};
  const SessionOutcome outcome = arguments.until_decided
                                     ? run_until_decided(arguments, options, run, run_cell)
                                     : run_and_search(run.scenario, options, run_cell);
  const Scenario& scenario = run.scenario;
  if (outcome.interrupted || outcome.stopped) {
    if (arguments.json) {
      const std::string reason = outcome.interrupted ? "interrupted" : "stopped at a failed cell";
      const Json answer = {{"error", {{"path", ""}, {"message", reason + "; the same command resumes"}}}};
      std::cout << json_text(answer) << '\n';
    }
    return outcome.interrupted ? kInterruptedStatus : 1;
  }

  // Claims and figures are for whoever comes last: other processes may still be at work.
  if (share.count > 1) {
    if (arguments.json) {
      const Json answer = {
          {"directory", directory.string()}, {"share", arguments.share}, {"failed", outcome.failed}};
      std::cout << json_text(answer) << '\n';
    } else {
      std::cout << fmt::format(
          "share {} is recorded in {}; `moelab claims` and `moelab plot` read all shares\n", arguments.share,
          directory.string());
    }
    shown_hint(outcome, scenario, {});
    return status_of(outcome);
  }
  const RunResults results = load_results(directory, scenario, outcome.plan);
  print_notes(results);
  const std::vector<ClaimResult> claims = judge_claims(results, directory);
  // Figures come last: without gnuplot everything else is kept and shown.
  if (!arguments.json) {
    std::string crossings = crossings_text(results);
    if (!crossings.empty()) crossings += '\n';
    std::cout << fmt::format("{}\n{}\n{}{}results in {}\n",
                             summary_text(results.table, main_metric(results.plan)), claims_text(claims),
                             crossings, rates_text(results), directory.string())
              << std::flush;
  }
  const std::string hint = shown_hint(outcome, scenario, results.table);
  std::vector<std::filesystem::path> figures;
  if (is_read_only(directory)) {
    std::cerr << fmt::format("moelab: note: {} is read-only; no figures were drawn\n", directory.string());
  } else {
    figures = draw_figures(results, directory);
  }
  if (arguments.json) {
    Json answer = answer_json(results, directory, outcome.failed, claims, figures);
    if (!hint.empty()) answer["hint"] = hint;
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << figures_text(figures)
              << fmt::format("all of it on one page: moelab report {}\n", directory.string());
  }
  return status_of(outcome);
}

}  // namespace

Verb run_verb() {
  return {
      "run", "Run a scenario's missing cells, judge its claims, draw its figures",
      "run scenarios/dikkala2023/fig2a.json --profile quick", [](Arguments& arguments) -> VerbCall {
        return {
            joined(scenario_options(arguments),
                   {run_directory_options(arguments),
                    {threads_option(arguments, "cells run at a time (default: one per processor)"),
                     {"--share", &arguments.share,
                      "I/N: only the I-th (from 0) of N shares of the cells, for N processes on one "
                      "directory"},
                     leases_option(arguments),
                     {"--retry", &arguments.retry, "failed: run cells again that are recorded as failed",
                      false, one_of("choice", {"failed"})},
                     {"--force", &arguments.force, "run even where memory seems too small"}},
                    deciding_options(arguments,
                                     "add seeds where claims are open, judged by confidence sequences, until "
                                     "each is decided"),
                    {{"--fail-fast", &arguments.fail_fast, "stop at the first cell that fails; status 1"},
                     json_option(arguments)}}),
            [&] { return run_scenario(arguments); }};
      }};
}

}  // namespace moelab
