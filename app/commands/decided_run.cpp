#include "app/commands/decided_run.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>

#include "analysis/stats/sequences.h"
#include "app/report/claim_results.h"
#include "app/report/open_claims.h"
#include "app/run/plan.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kMostSeeds = 100;
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
           fmt::format("with --until-decided: the most seeds of an arm at a point (default {})", kMostSeeds),
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
  return arguments.max_seeds > 0 ? arguments.max_seeds : kMostSeeds;
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

}  // namespace moelab
