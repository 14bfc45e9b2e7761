#include "plots/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>

#include "analysis/stats/claim_sides.h"
#include "analysis/stats/rate_claims.h"
#include "app/commands/claims.h"
#include "app/commands/ledger.h"
#include "app/commands/reported_figures.h"
#include "app/commands/verbs.h"
#include "app/run/durable_file.h"
#include "app/run/export.h"
#include "app/run/metric_groups.h"
#include "app/run/provenance.h"
#include "app/run/summary.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The cells of the claim's arms at the points that it compares, with the metrics it names, arm by arm.
std::vector<ReportedCell> cells_of(const Json& claim, const ClaimResult& result, const ResultTable& table) {
  std::vector<std::pair<std::string, std::string>> sides;  // arm, metric
  const auto add = [&](const Json& side, const Json& metric) {
    for (const char* name : {"arm", "relative_to", "distance_from", "than"}) {
      if (!side.contains(name) || !side.at(name).is_string()) continue;
      std::pair<std::string, std::string> named(side.at(name), metric);
      if (std::find(sides.begin(), sides.end(), named) == sides.end()) sides.push_back(std::move(named));
    }
  };
  add(claim, claim.value("metric", Json("")));
  for (const char* name : {"left", "right"}) {
    if (claim.contains(name)) add(claim.at(name), claim.at(name).value("metric", Json("")));
  }
  const auto is_compared = [&](const ResultRow& row) {
    if (is_rate_claim(claim)) return row.is_at(claim.value("where", Json::object()));
    return std::any_of(result.points.begin(), result.points.end(), [&](const ClaimPoint& point) {
      return row.point == point.left_at || row.point == point.right_at;
    });
  };
  std::vector<ReportedCell> cells;
  for (const auto& [arm, metric] : sides) {
    for (const ResultRow& row : table.rows) {
      if (row.arm != arm || !is_compared(row)) continue;
      cells.push_back({row.arm, point_text(row.point), metric, row.cell, row.state});
    }
  }
  return cells;
}

ReportedClaim reported_claim(const Json& description, const ClaimResult& claim, const ResultTable& table) {
  ReportedClaim reported = {claim.id, to_string(claim.verdict),           claim.text, claim.source, "",
                            {},       cells_of(description, claim, table)};
  reported.reported = reported_text(claim.reported);
  for (const ClaimPoint& point : claim.points) {
    reported.points.push_back({place_text(point), side_text(point.left, point.left_factor),
                               side_text(point.right, point.right_factor), difference_text(point),
                               to_string(point.verdict), point.note});
  }
  return reported;
}

/// Cells by state, "100 cells: 98 done, 2 diverged".
std::string state_text(const ResultTable& table) {
  std::map<std::string, int> counts;
  for (const ResultRow& row : table.rows) ++counts[row.state];
  std::string text = fmt::format("{} cells:", table.rows.size());
  for (const auto& [state, count] : counts)
    text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", count, state);
  return text;
}

ReportedTable unfinished_cells(const ResultTable& table) {
  ReportedTable cells = {{"cell", "arm", "seed", "at", "state"}};
  for (const ResultRow& row : table.rows) {
    if (row.state == "done" || row.state == "missing") continue;
    cells.push_back({row.cell, row.arm, std::to_string(row.seed), point_json(row.point).dump(), row.state});
  }
  return cells;
}

std::vector<std::string> notes_of(const Json& scenario) {
  std::vector<std::string> notes;
  const Json given = scenario.value("notes", Json::array());
  if (given.is_string()) return {given.get<std::string>()};
  for (const Json& note : given) notes.push_back(text_of(note));
  return notes;
}

/// The command that ran the cells, without where this program and its results lie.
std::string command_of(const Json& provenance) {
  const Json words = provenance.value("arguments", Json::array());
  std::string command;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--out") {
      ++i;
    } else {
      command += " " + text_of(words[i]);
    }
  }
  return command.empty() ? "" : "moelab" + command;
}

ReportedRun reported_run(const std::filesystem::path& directory) {
  const RunResults results = load_results(directory);
  const Json& plan = results.plan;
  ReportedRun run;
  run.name = plan.at("name");
  if (!plan.value("profile", "").empty()) run.name += " (" + plan.at("profile").get<std::string>() + ")";
  run.title = plan.value("title", "");
  run.source = plan.value("source", "");
  run.state = state_text(results.table);
  const std::string mixed = builds_text(results);
  run.builds = mixed.empty() && !results.builds.empty() ? results.builds.begin()->first : mixed;
  run.mixed_builds = !mixed.empty();
  run.notes = notes_of(plan.at("scenario"));
  run.summary = summary_table(results.table, main_metric(results));
  run.summary_caption = main_metric(results) + ", mean over seeds ± half of the 95 % interval";
  const std::vector<ClaimResult> claims = claim_results(results);
  for (std::size_t i = 0; i < claims.size(); ++i)
    run.claims.push_back(reported_claim(plan.at("claims").at(i), claims[i], results.table));
  run.seconds = results.seconds;
  add_figures(results, directory, run);
  run.unfinished = unfinished_cells(results.table);
  run.cells_csv = export_csv(results, false, metric_names());
  run.provenance = {{"directory", directory.string()}, {"builds", run.builds}};
  std::ifstream stream(directory / "provenance.json");
  const Json provenance = stream ? Json::parse(stream, nullptr, false) : Json();
  if (provenance.is_object()) {
    for (const auto& [what, value] : provenance.items()) run.provenance.emplace_back(what, text_of(value));
    run.command = command_of(provenance);
  }
  run.scenario = plan.at("scenario").dump(2, ' ', false, Json::error_handler_t::replace);
  return run;
}

/// The answers of `moelab check --json`.
std::vector<ReportedCheck> reported_checks(const std::filesystem::path& file) {
  std::vector<ReportedCheck> checks;
  const auto rounded = [](const Json& value) {
    return value.is_number() ? fmt::format("{:.5g}", value.get<double>()) : text_of(value);
  };
  try {
    for (const Json& check : read_json_file(file)) {
      const std::string relation = check.at("relation");
      checks.push_back({check.at("id"), check.at("source"), check.at("statement"),
                        (relation == "equal" ? "" : relation + " ") + rounded(check.at("predicted")),
                        rounded(check.at("measured")), rounded(check.at("error_bound")), check.at("verdict"),
                        check.at("verdict") == check.at("expected")});
    }
  } catch (const Json::exception& error) {
    throw UserError(file.string(), std::string("not an answer of check --json: ") + error.what());
  }
  return checks;
}

}  // namespace

int run_report_command(const Arguments& arguments) {
  Report report;
  for (const std::filesystem::path& directory : arguments.directories)
    report.runs.push_back(reported_run(directory));
  if (!arguments.checks.empty()) report.checks = reported_checks(arguments.checks);
  const ReportedRun& first = report.runs.front();
  report.title = report.runs.size() > 1 ? fmt::format("{} runs of moelab", report.runs.size())
                                        : (first.title.empty() ? first.name : first.title);
  report.program = fmt::format("moelab {} (commit {})", program_version(), program_commit());
  if (!arguments.ledger.empty()) {
    const std::vector<std::filesystem::path> written = write_ledger(report, arguments.ledger);
    Json files = Json::array();
    for (const std::filesystem::path& each : written) files.push_back(each.string());
    if (arguments.json) {
      std::cout << Json({{"files", files}, {"runs", report.runs.size()}}).dump(2) << '\n';
    } else {
      for (const Json& each : files) std::cout << each.get<std::string>() << '\n';
    }
    return 0;
  }
  const std::filesystem::path file =
      !arguments.out.empty() ? arguments.out : arguments.directories.front() / "report.html";
  replace_file(file, report_html(report));
  if (arguments.json) {
    std::cout << Json({{"file", file.string()}, {"runs", report.runs.size()}}).dump(2) << '\n';
  } else {
    std::cout << file.string() << '\n';
  }
  return 0;
}

}  // namespace moelab
