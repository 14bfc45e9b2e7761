#include "app/run/results.h"

#include <fmt/format.h>

#include <future>
#include <iostream>
#include <unordered_map>
#include <utility>

#include "app/run/store.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"

namespace moelab {

namespace {

/// A planned cell of plan.json.
ResultRow planned_row(const Json& cell) {
  ResultRow row;
  row.cell = cell.at("id").get<std::string>();
  row.arm = cell.at("arm").get<std::string>();
  row.seed = cell.at("seed").get<int>();
  row.point = read_point(cell.at("point"));
  row.state = "missing";
  return row;
}

/// Reads the plan, its cells into `rows` one by one: of a large sweep they are nearly all of it.
Json read_plan_into(const std::filesystem::path& directory, std::vector<ResultRow>& rows) {
  bool in_cells = false;
  return read_plan(directory, [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) in_cells = parsed == "cells";
    if (event != Json::parse_event_t::object_end || depth != 2 || !in_cells) return true;
    rows.push_back(planned_row(parsed));
    return false;
  });
}

}  // namespace

RunResults load_results(const std::filesystem::path& directory, RecordPart part) {
  RunResults results;
  std::vector<ResultRow>& rows = results.table.rows;
  std::future<Records> recorded =
      std::async(std::launch::async, [&] { return read_records(directory, part); });
  try {
    results.plan = read_plan_into(directory, rows);
    for (const char* key : {"name", "scenario", "claims", "figures"}) results.plan.at(key);
    // Every cell has been taken out.
    if (const Json& left = results.plan.at("cells"); !left.is_array() || !left.empty())
      throw UserError((directory / "plan.json").string(),
                      "not a plan of this program: 'cells' holds no cells");
    results.plan.erase("cells");
    results.table.arms = results.plan.at("arms").get<std::vector<std::string>>();
    results.table.sweep_paths = results.plan.at("sweep").get<std::vector<std::string>>();
  } catch (const Json::exception& error) {
    throw UserError((directory / "plan.json").string(),
                    std::string("not a plan of this program: ") + error.what());
  }
  Records records = recorded.get();
  std::unordered_map<const Record*, const ResultRow*> first_rows;  // two arms may have the same cell
  for (ResultRow& row : rows) {
    const auto found = records.find(row.cell);
    if (found == records.end()) continue;
    Record& record = found->second;
    ++results.builds[*record.build];
    results.seconds += record.seconds;
    row.state = record.state;
    const auto [first, is_first] = first_rows.try_emplace(&record, &row);
    row.metrics = is_first ? std::move(record.metrics) : first->second->metrics;
    row.trace = is_first ? std::move(record.trace) : first->second->trace;
  }
  return results;
}

std::string builds_text(const RunResults& results) {
  if (results.builds.size() < 2) return "";
  std::vector<std::string> builds;
  for (const auto& [name, cells] : results.builds)
    builds.push_back(fmt::format("{} ({} cells)", name, cells));
  return fmt::format("Cells come from {} builds of moelab: {}.", builds.size(), fmt::join(builds, ", "));
}

std::string builds_footnote(const RunResults& results) {
  return results.builds.size() < 2
             ? ""
             : fmt::format(" Cells come from {} builds of moelab.", results.builds.size());
}

void warn_of_builds(const RunResults& results) {
  if (const std::string text = builds_text(results); !text.empty())
    std::cerr << "moelab: note: " << text << '\n';
}

}  // namespace moelab
