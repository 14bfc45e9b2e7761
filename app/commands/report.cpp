#include "plots/report.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <map>

#include "app/commands/claims.h"
#include "app/commands/verbs.h"
#include "app/run/durable_file.h"
#include "app/run/figures.h"
#include "app/run/heat_maps.h"
#include "app/run/provenance.h"
#include "app/run/summary.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

ReportedClaim reported_claim(const ClaimResult& claim) {
  ReportedClaim reported = {claim.id, to_string(claim.verdict), claim.text, claim.source, "", {}};
  if (!claim.reported.is_null()) reported.reported = text_of(claim.reported);
  for (const ClaimPoint& point : claim.points) {
    reported.points.push_back({place_text(point), estimate_text(point.left), estimate_text(point.right),
                               difference_text(point), to_string(point.verdict), point.note});
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

ReportedRun reported_run(const std::filesystem::path& directory) {
  const RunResults results = load_results(directory);
  const Json& plan = results.plan;
  ReportedRun run;
  run.name = plan.at("name");
  if (!plan.value("profile", "").empty()) run.name += " (" + plan.at("profile").get<std::string>() + ")";
  run.title = plan.value("title", "");
  run.source = plan.value("source", "");
  run.state = state_text(results.table);
  if (const std::string builds = builds_text(results); !builds.empty()) run.state += ". " + builds;
  run.notes = notes_of(plan.at("scenario"));
  run.summary = summary_table(results.table, main_metric(results));
  run.summary_caption = main_metric(results) + ", mean over seeds ± half of the 95 % interval";
  for (const ClaimResult& claim : claim_results(results)) run.claims.push_back(reported_claim(claim));
  for (const Json& figure : plan.at("figures")) {
    const std::string kind = figure.value("kind", "lines");
    if (kind == "heat_map") {
      run.heat_maps.push_back(build_heat_map(figure, results));
    } else if (kind == "lines") {  // the others have thousands of points, or a layout: `plot` draws them
      run.figures.push_back(build_figure(figure, results));
    }
  }
  run.unfinished = unfinished_cells(results.table);
  run.provenance = {{"directory", directory.string()}};
  std::ifstream stream(directory / "provenance.json");
  const Json provenance = stream ? Json::parse(stream, nullptr, false) : Json();
  if (provenance.is_object()) {
    for (const auto& [what, value] : provenance.items()) run.provenance.emplace_back(what, text_of(value));
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
      checks.push_back({check.at("id"), check.at("source"), "", rounded(check.at("predicted")),
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
