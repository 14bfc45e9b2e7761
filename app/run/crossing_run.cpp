#include "app/run/crossing_run.h"

#include <fmt/format.h>

#include "app/figures/crossing_columns.h"
#include "app/run/summary.h"
#include "app/scenario/fixed_numbers.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

std::vector<CrossingColumn> searched_by(const RunResults& results) {
  const auto search = CrossingSearch::of_plan(results.plan.value("crossing", Json()));
  return search ? crossing_columns(*search, results.table) : std::vector<CrossingColumn>();
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

std::string column_estimate(const CrossingColumn& column) {
  if (!column.estimate) return to_string(column.progress.state);
  const auto end = [](const std::optional<double>& number) {
    return number ? fmt::format("{:.4g}", *number) : "open";
  };
  return fmt::format("{:.4g} [{}, {}]", *column.estimate, end(column.low), end(column.high));
}

}  // namespace

ResultTable recorded_table(const Scenario& scenario, const Records& records) {
  ResultTable table{
      scenario.arms, scenario.sweep_paths, fixed_numbers(scenario), {}, scenario.crossing->path};
  for (const Cell& cell : scenario.cells) {
    table.rows.push_back({cell.id, cell.arm, cell.seed, read_point(cell.point), "missing", {}, {}});
    const auto record = records.find(cell.id);
    if (record == records.end()) continue;
    table.rows.back().state = record->second.state;
    table.rows.back().metrics = record->second.metrics;
  }
  return table;
}

bool place_points(Scenario& scenario, const Records& records) {
  bool has_placed = false;
  while (scenario.crossing) {
    std::vector<std::vector<Json>> placed =
        placed_values(*scenario.crossing, recorded_table(scenario, records));
    if (placed == scenario.crossing->placed) break;
    keep_placed(scenario, std::move(placed));
    has_placed = true;
  }
  return has_placed;
}

SessionOutcome run_and_search(Scenario& scenario, const SessionOptions& options, const CellRunner& runner) {
  int not_restored = 0;
  for (SessionOptions round = options;; round.retry_failed = false) {  // once: a cell fails alike each time
    SessionOutcome outcome = run_session(scenario, round, runner);
    outcome.not_restored += not_restored;
    not_restored = outcome.not_restored;
    if (outcome.interrupted || outcome.stopped || !scenario.crossing) return outcome;
    if (!place_points(scenario, read_records(options.directory, RecordPart::metrics))) return outcome;
  }
}

Json crossings_json(const RunResults& results) {
  Json list = Json::array();
  for (const CrossingColumn& column : searched_by(results)) {
    const bool is_bracket = column.progress.state == CrossingState::crosses;
    list.push_back(
        {{"arm", column.arm},
         {"at", point_json(column.at)},
         {"path", results.plan.at("crossing").at("path")},
         {"state", to_string(column.progress.state)},
         {"estimate", number_or_null(column.estimate)},
         {"interval",
          column.estimate ? Json::array({number_or_null(column.low), number_or_null(column.high)}) : Json()},
         {"bracket", is_bracket ? Json::array({column.progress.low, column.progress.high}) : Json()},
         {"points", column.progress.visited.size()},
         {"note", column.note}});
  }
  return list;
}

std::vector<std::vector<std::string>> crossings_table(const RunResults& results) {
  const std::vector<CrossingColumn> columns = searched_by(results);
  if (columns.empty()) return {};
  std::vector<std::vector<std::string>> rows = {{"arm"}};
  for (const auto& coordinate : columns.front().at) rows[0].push_back(coordinate.first);
  rows[0].insert(rows[0].end(), {results.plan.at("crossing").at("path").get<std::string>(), "points", ""});
  for (const CrossingColumn& column : columns) {
    rows.push_back({column.arm});
    for (const auto& coordinate : column.at) rows.back().push_back(value_text(coordinate.second));
    rows.back().insert(rows.back().end(), {column_estimate(column),
                                           std::to_string(column.progress.visited.size()), column.note});
  }
  return rows;
}

std::string crossings_caption(const RunResults& results) {
  const Json crossing = results.plan.value("crossing", Json());
  if (crossing.is_null()) return "";
  const std::string level = crossing.contains("level")
                                ? fmt::format("{:g}", crossing.at("level").get<double>())
                                : "that of " + crossing.at("against").get<std::string>();
  return fmt::format("where the mean of {} crosses {}: {} and 95 % interval",
                     crossing.at("metric").get<std::string>(), level, crossing.at("path").get<std::string>());
}

std::string crossings_text(const RunResults& results) {
  const std::vector<std::vector<std::string>> table = crossings_table(results);
  return table.empty() ? "" : fmt::format("{}\n{}", crossings_caption(results), aligned_columns(table));
}

}  // namespace moelab
