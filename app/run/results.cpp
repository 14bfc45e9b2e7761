#include "app/run/results.h"

#include <fmt/format.h>

#include <iostream>
#include <unordered_map>
#include <utility>

#include "app/run/store.h"
#include "sim/base/error.h"

namespace moelab {

RunResults load_results(const std::filesystem::path& directory, RecordPart part) {
  RunResults results;
  results.plan = read_plan(directory);
  Records records = read_records(directory, part);
  std::unordered_map<std::string, std::size_t> rows;  // of the cells so far: two arms may have the same cell
  try {
    for (const char* key : {"name", "scenario", "claims", "figures"}) results.plan.at(key);
    results.table.arms = results.plan.at("arms").get<std::vector<std::string>>();
    results.table.sweep_paths = results.plan.at("sweep").get<std::vector<std::string>>();
    for (const Json& cell : results.plan.at("cells")) {
      ResultRow row;
      row.cell = cell.at("id").get<std::string>();
      row.arm = cell.at("arm").get<std::string>();
      row.seed = cell.at("seed").get<int>();
      for (const auto& [path, value] : cell.at("point").items()) row.point.emplace_back(path, value);
      row.state = "missing";
      if (const auto record = records.find(row.cell); record != records.end()) {
        ++results.builds[record->second.build];
        row.state = record->second.state;
        const auto [place, is_first] = rows.try_emplace(row.cell, results.table.rows.size());
        if (is_first) {
          row.metrics = std::move(record->second.metrics);
          row.trace = std::move(record->second.trace);
        } else {
          row.metrics = results.table.rows[place->second].metrics;
          row.trace = results.table.rows[place->second].trace;
        }
      }
      results.table.rows.push_back(std::move(row));
    }
  } catch (const Json::exception& error) {
    throw UserError((directory / "plan.json").string(),
                    std::string("not a plan of this program: ") + error.what());
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
