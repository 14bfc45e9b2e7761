#include "app/run/results.h"

#include "app/run/store.h"
#include "sim/base/error.h"

namespace moelab {

RunResults load_results(const std::filesystem::path& directory) {
  RunResults results;
  results.plan = read_plan(directory);
  const Records records = read_records(directory);
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
        row.state = record->second.state;
        row.metrics = record->second.metrics;
        row.trace = record->second.trace;
      }
      results.table.rows.push_back(std::move(row));
    }
  } catch (const Json::exception& error) {
    throw UserError((directory / "plan.json").string(),
                    std::string("not a plan of this program: ") + error.what());
  }
  return results;
}

}  // namespace moelab
