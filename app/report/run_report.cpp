#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_set>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/result_table.h"
#include "app/report/claim_results.h"
#include "app/report/ledger.h"
#include "app/run/figures.h"
#include "app/run/search.h"
#include "app/run/session.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/export.h"
#include "app/store/provenance.h"
#include "plots/texts.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Returns the provenance of the sessions that ran the plan. If there is none, all cells had been recorded
/// for another plan, from an earlier text of the scenario. Then the function returns the provenance of that
/// plan, unless its command used --set.
Json provenance_of(const RunResults& results, const std::filesystem::path& directory) {
  Json own = gathered_provenance(directory, results.id);
  if (own.is_object()) return own;
  Json other = gathered_provenance(directory);
  if (!other.is_object() || other.value("profile", "") != results.head.profile) return {};
  for (const Json& word : other.value("arguments", Json::array())) {
    if (word.is_string() && word.get<std::string>().starts_with("--set")) return {};
  }
  return other;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Returns the arms that a claim compares, each with its metric, without duplicates.
std::vector<std::pair<std::string, std::string>> sides_of(const Claim& claim) {
  std::vector<std::pair<std::string, std::string>> sides;
  const auto add = [&](const std::string& arm, const std::string& metric) {
    const std::pair<std::string, std::string> named(arm, metric);
    if (!arm.empty() && std::find(sides.begin(), sides.end(), named) == sides.end()) sides.push_back(named);
  };
  const auto add_side = [&](const ClaimSide& side) {
    for (const std::string& arm : {side.arm, side.relative_to, side.distance_from}) add(arm, side.metric);
  };
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    add_side(comparison->left);
    add_side(comparison->right);
  } else if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) {
    add_side(trend->side);
  } else {
    const RateClaim& rate = std::get<RateClaim>(claim.statement);
    add(rate.query.arm, rate.query.metric);
    if (const std::string* const than = std::get_if<std::string>(&rate.against))
      add(*than, rate.query.metric);
  }
  return sides;
}

/// Returns the cells that a claim compares, by arm, with the metrics that it names.
std::vector<ReportedCell> cells_of(const Claim& claim, const ClaimResult& result, const ResultTable& table) {
  const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement);
  std::unordered_set<std::string> compared;
  for (const ClaimPoint& point : result.points) {
    compared.insert(point_key(point.left_at));
    compared.insert(point_key(point.right_at));
  }
  const auto is_compared = [&](const ResultRow& row) {
    return rate ? row.is_at(rate->query.where) : compared.contains(point_key(row.point));
  };
  std::vector<ReportedCell> cells;
  for (const auto& [arm, metric] : sides_of(claim)) {
    for (const ResultRow& row : table.rows) {
      if (row.arm != arm || !is_compared(row)) continue;
      cells.push_back({row.arm, point_text(row.point), metric, row.cell, row.state});
    }
  }
  return cells;
}

/// Describes a side of a claim: "learned", "test loss", factor "0.6", and its location if it differs from the
/// point's.
std::vector<std::string> side_terms(const std::string& name, const ClaimSide& side,
                                    const DisplayNames& names) {
  std::string arm = names.arm(side.arm), where = names.point(side.where);
  if (side.is_constant()) arm = names.axis(side.value);
  if (!side.relative_to.empty()) arm += " ÷ " + names.arm(side.relative_to);
  if (!side.distance_from.empty()) arm += " to " + names.arm(side.distance_from);
  if (side.step && side.step->at != ClaimStep::At::end)
    where += (where.empty() ? "" : ", ") +
             (side.step->at == ClaimStep::At::start ? "start" : fmt::format("step {}", side.step->step));
  return {name, arm, side.is_constant() ? "" : names.axis(side.metric), fmt::format("{:g}", side.factor),
          where};
}

/// Describes what the claim compares, in the terms of the scenario.
Table terms_of(const Claim& claim, const DisplayNames& names) {
  Table terms = {{"", "arm or value", "metric", "factor", "where"}};
  std::vector<std::string> limits;
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    terms.rows.push_back(side_terms("left", comparison->left, names));
    terms.rows.push_back(side_terms(fmt::format("{} right", comparison->rule.op), comparison->right, names));
    if (comparison->rule.has_tolerance)
      limits.push_back(fmt::format("tolerance {:g}", comparison->tolerance));
  } else if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) {
    terms.rows.push_back(side_terms(trend->increases ? "increases" : "decreases", trend->side, names));
    terms.rows.back().back() = "along " + names.axis(trend->along);
  } else {
    const RateClaim& rate = std::get<RateClaim>(claim.statement);
    terms.rows.push_back({rate.slower ? "slower" : "rate", names.arm(rate.query.arm),
                          names.axis(rate.query.metric), "", "along " + names.axis(rate.query.along)});
    const double* const slope = std::get_if<double>(&rate.against);
    limits.push_back(slope ? fmt::format("slope {:g}", *slope)
                           : "than " + names.arm(std::get<std::string>(rate.against)));
    if (!rate.slower) limits.push_back(fmt::format("tolerance {:g}", rate.tolerance));
  }
  if (claim.smallest_effect) limits.push_back(fmt::format("smallest effect {:g}", *claim.smallest_effect));
  if (!limits.empty()) terms.rows.push_back({fmt::format("{}", fmt::join(limits, ", ")), "", "", "", ""});
  return terms;
}

ReportedClaim reported_claim(const Claim& claim, ClaimResult result, const ResultTable& table,
                             const DisplayNames& names) {
  const bool is_named_by_statement = result.text == result.statement;
  result.statement = shown_statement(claim, result, names);
  if (is_named_by_statement) result.text = result.statement;
  ReportedClaim reported;
  reported.id = result.id;
  reported.verdict = to_string(result.verdict);
  reported.text = result.text;
  reported.source = result.source;
  reported.cells = cells_of(claim, result, table);
  reported.reported = reported_text(reported_json(result));
  reported.origin = to_string(result.origin);
  reported.statement = statement_text(result);
  reported.seeds_to_decide = result.seeds_to_decide;
  reported.terms = terms_of(claim, names);
  for (const ClaimPoint& point : result.points) {
    reported.points.push_back({shown_point(point, names), left_text(point), right_text(point),
                               difference_text(point), to_string(point.verdict), point.note});
  }
  return reported;
}

/// Counts cells by state: "100 cells: 98 done, 2 diverged".
std::string state_text(const ResultTable& table) {
  std::map<std::string, int> counts;
  for (const ResultRow& row : table.rows)
    if (!row.is_copy) ++counts[row.state];
  return fmt::format("{} cells: {}", table.cell_count(), counts_text(counts));
}

Table unfinished_cells(const ResultTable& table, const DisplayNames& names) {
  Table cells = {{"cell", "arm", "seed", "at", "state"}};
  for (const ResultRow& row : table.rows) {
    if (row.is_copy || row.state == "done" || row.state == "missing") continue;
    cells.rows.push_back(
        {row.cell, names.arm(row.arm), std::to_string(row.seed), names.point(row.point), row.state});
  }
  return cells;
}

/// Returns the command that ran the cells, without the paths of the program and of its results.
std::string command_of(const Json& provenance) {
  const Json words = provenance.value("arguments", Json::array());
  if (!words.is_array()) return "";
  std::string command;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--out") {
      ++i;
    } else {
      command += " " + shell_word(text_of(words[i]));
    }
  }
  return command.empty() ? "" : "moelab" + command;
}

std::string run_name(const PlanHead& plan) {
  return plan.profile.empty() ? plan.name : plan.name + " (" + plan.profile + ")";
}

/// Adds the plan's figures and the files of those that can be drawn.
void add_plan_figures(const RunResults& results, const FigureSource& source,
                      const std::filesystem::path& directory, ReportedRun& run) {
  for (const FigureOptions& figure : results.head.figures) {
    DrawnFigure drawn = drawn_figure(figure, source);
    const std::string id = common_of(figure).id;
    if (!drawn.drawing) {
      // An existing file with this name is from an earlier run, so it is not shown.
      ReportedFigure& missing = run.figures.emplace_back();
      missing.drawing.id = id;
      missing.drawing.title = common_of(figure).title.value_or(id);
      missing.failure = "Not drawn: " + drawn.failure;
      continue;
    }
    run.drawn.push_back(directory / results.outputs / "figures" / (id + ".svg"));
    const std::filesystem::path& file = run.drawn.back();
    ReportedFigure reported{std::move(*drawn.drawing), ""};
    if (reported.drawing.html.empty() && std::filesystem::exists(file)) reported.svg = read_bytes(file);
    run.figures.push_back(std::move(reported));
  }
}

ReportedRun reported_run(const RunAddress& address) {
  const std::filesystem::path& directory = address.directory();
  const RunResults results = load_results(address);
  print_notes(results);
  const PlanHead& plan = results.head;
  ReportedRun run;
  run.name = run_name(plan);
  run.title = plan.title;
  run.source = plan.source;
  run.state = state_text(results.table);
  run.builds = results.builds;
  run.builds_note = builds_text(results);
  run.notes = plan.notes;
  const std::string metric = main_metric(plan);
  run.summary = summary_table(results.table, metric);
  // Tables name arms and paths as figures do.
  const DisplayNames names(figure_source(results, directory).run);
  const std::vector<std::string>& paths = results.table.sweep_paths;
  const auto label = [&](const std::string& head) {
    return std::find(paths.begin(), paths.end(), head) != paths.end() ? names.axis(head) : names.arm(head);
  };
  run.crossings = crossings_table(results);
  for (Table* const table : {&run.summary, &run.crossings})
    std::transform(table->head.begin(), table->head.end(), table->head.begin(), label);
  run.summary.caption.replace(0, metric.size(), names.axis(metric));
  for (std::vector<std::string>& row : run.crossings.rows) row.front() = names.arm(row.front());
  run.rates = rate_tables(results);
  for (Table& table : run.rates)
    for (std::vector<std::string>& row : table.rows)
      std::transform(row.begin(), row.end(), row.begin(), math_text);
  const std::vector<Claim> claims = claims_of(results);
  const std::vector<ClaimResult> judged = claim_results(results);
  for (std::size_t i = 0; i < claims.size(); ++i)
    run.claims.push_back(reported_claim(claims[i], judged[i], results.table, names));
  run.seconds = results.seconds;
  add_figures(results, directory, run);
  run.unfinished = unfinished_cells(results.table, names);
  run.cells_csv = export_csv(results, false, metric_names());
  const bool is_of_one_build = run.builds_note.empty() && !run.builds.empty();
  run.provenance = {{"directory", directory.string()},
                    {"builds", is_of_one_build ? run.builds.begin()->first : run.builds_note}};
  const Json provenance = provenance_of(results, directory);
  if (provenance.is_object()) {
    for (const auto& [what, value] : provenance.items()) run.provenance.emplace_back(what, text_of(value));
    run.command = command_of(provenance);
  }
  run.scenario = json_text(plan.document);
  return run;
}

/// Reads the output of `moelab check --json`.
std::vector<ReportedCheck> reported_checks(const std::filesystem::path& file) {
  std::vector<ReportedCheck> checks;
  const auto rounded = [](const Json& value) {
    return value.is_number() ? fmt::format("{:.5g}", value.get<double>()) : text_of(value);
  };
  const Json answer = read_json_file(file);
  if (!answer.is_array() || answer.empty()) {
    throw UserError(file.string(),
                    "got " + abbreviated(answer) + ", needs an answer of check --json: a list of checks");
  }
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const Json& check = answer[i];
    const std::string place = fmt::format("{}: [{}]", file.string(), i);
    if (!check.is_object())
      throw UserError(place, "got " + abbreviated(check) + ", needs a check: an object");
    const auto field = [&](const char* name) -> const Json& {
      if (check.contains(name)) return check.at(name);
      throw UserError(fmt::format("{}.{}", place, name), "missing: every check of check --json has it");
    };
    const auto text = [&](const char* name) {
      if (field(name).is_string()) return field(name).get<std::string>();
      throw UserError(fmt::format("{}.{}", place, name),
                      "got " + abbreviated(field(name)) + ", needs a text");
    };
    const std::string relation = text("relation");
    checks.push_back({text("id"), text("source"), text("statement"),
                      (relation == "equal" ? "" : relation + " ") + rounded(field("predicted")),
                      rounded(field("measured")), rounded(field("error_bound")), text("verdict"),
                      text("verdict") == text("expected")});
  }
  return checks;
}

}  // namespace

Report make_report(const std::vector<RunAddress>& runs, const std::filesystem::path& checks) {
  Report report;
  for (const RunAddress& run : runs) report.runs.push_back(reported_run(run));
  if (!checks.empty()) report.checks = reported_checks(checks);
  report.program = fmt::format("moelab {} (commit {})", program_version(), program_commit());
  if (report.runs.empty()) return report;
  const ReportedRun& first = report.runs.front();
  report.title = report.runs.size() > 1 ? fmt::format("{} runs of moelab", report.runs.size())
                                        : (first.title.empty() ? first.name : first.title);
  return report;
}

LedgerRun ledger_run(const RunAddress& address) {
  const RunResults results = load_results(address);
  print_notes(results);
  const PlanHead& plan = results.head;
  std::map<std::string, int> states;
  for (const ResultRow& row : results.table.rows)
    if (!row.is_copy) ++states[row.state];
  Json builds = Json::array(), judged = Json::array();
  for (const auto& [name, count] : results.builds) builds.push_back({{"name", name}, {"cells", count}});
  for (const ClaimResult& result : claim_results(results)) judged.push_back(to_json(result));
  const Json provenance = provenance_of(results, address.directory());
  const auto share_of = [&](double seconds) {
    return results.told_seconds > 0 ? Json(seconds / results.told_seconds) : Json();
  };
  LedgerRun run;
  run.entry = {{"run", run_name(plan)},
               {"title", plan.title},
               {"source", plan.source},
               {"states", states},
               {"command", provenance.is_object() ? command_of(provenance) : ""},
               {"seconds", results.seconds},
               {"processor_seconds", results.processor_seconds ? Json(*results.processor_seconds) : Json()},
               {"training_share", share_of(results.spent.training)},
               {"measuring_share", share_of(results.spent.measuring)},
               {"builds", std::move(builds)},
               {"figure", nullptr},
               {"claims", std::move(judged)}};
  ReportedRun shown;
  add_plan_figures(results, figure_source(results, address.directory()), address.directory(), shown);
  run.figures = std::move(shown.drawn);
  return run;
}

void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run) {
  const FigureSource source = figure_source(results, directory);
  add_plan_figures(results, source, directory, run);
  if (std::optional<Drawing> forest = claims_drawing(source, "claims"))
    run.forest = ReportedFigure{std::move(*forest), ""};
  // The figure of the objective comes first.
  const std::string objective = main_metric(results.head);
  std::vector<std::string> shown;
  for (const FigureOptions& figure : results.head.figures) {
    const std::vector<std::string> metrics = metrics_of(figure);
    if (std::find(metrics.begin(), metrics.end(), objective) != metrics.end())
      shown.push_back(common_of(figure).id);
  }
  std::stable_partition(run.figures.begin(), run.figures.end(), [&](const ReportedFigure& figure) {
    return !shown.empty() && figure.drawing.id == shown.front();
  });
}

}  // namespace moelab
