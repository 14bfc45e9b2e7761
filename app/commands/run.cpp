#include <fmt/format.h>

#include <iostream>

#include "app/commands/decided_run.h"
#include "app/commands/verbs.h"
#include "app/report/claim_results.h"
#include "app/report/live_claims.h"
#include "app/run/available_memory.h"
#include "app/run/cost.h"
#include "app/run/crossing_run.h"
#include "app/run/divergence.h"
#include "app/run/durable_file.h"
#include "app/run/figures.h"
#include "app/run/interrupt.h"
#include "app/run/progress.h"
#include "app/run/rate_results.h"
#include "app/run/session.h"
#include "app/run/summary.h"
#include "sim/base/error.h"

namespace moelab {
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
