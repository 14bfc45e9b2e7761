#include "app/run/results.h"

#include <fmt/format.h>

#include <future>
#include <iostream>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "app/run/imported_arms.h"
#include "app/run/store.h"
#include "sim/base/error.h"

namespace moelab {

namespace {

/// Throws UserError where `directory` is the folder of one of a run directory's plans, which has no cells.
void check_not_of_plan(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(directory / ".", error);
  const fs::path own = whole.has_filename() ? whole : whole.parent_path();
  const fs::path plans = own.parent_path(), run = plans.parent_path();
  const auto has_store = [](const fs::path& folder) {
    return fs::is_directory(folder / "journal") || fs::is_directory(folder / "sessions");
  };
  if (plans.filename() != "plans" || !has_store(run) || has_store(own)) return;
  throw UserError(directory.string(), fmt::format("is the folder of a plan of '{0}'; give {0}@{1}",
                                                  run.string(), own.filename().string()));
}

RunResults results_of(Plan plan, Records records) {
  RunResults results;
  results.plan = std::move(plan.head);
  results.table.arms = results.plan.at("arms").get<std::vector<std::string>>();
  results.table.sweep_paths = results.plan.at("sweep").get<std::vector<std::string>>();
  results.table.fixed = results.plan.value("fixed", Json::object()).get<std::map<std::string, double>>();
  if (const Json crossing = results.plan.value("crossing", Json()); !crossing.is_null())
    results.table.searched_path = crossing.at("path").get<std::string>();
  results.table.is_decided = results.plan.contains("decided");
  std::vector<ResultRow>& rows = results.table.rows = std::move(plan.cells);
  std::unordered_map<const Record*, const ResultRow*> first_rows;  // two arms may have the same cell
  for (ResultRow& row : rows) {
    const auto found = records.find(row.cell);
    if (found == records.end()) continue;
    Record& record = found->second;
    ++results.builds[*record.build];
    results.seconds += record.seconds;
    if (record.spent) {
      results.told_seconds += record.seconds;
      results.spent.training += record.spent->training;
      results.spent.measuring += record.spent->measuring;
    }
    row.state = record.state;
    if (!record.arrays.empty()) results.arrays[row.cell] = record.arrays;
    const auto [first, is_first] = first_rows.try_emplace(&record, &row);
    if (!is_first) {
      row.metrics = first->second->metrics;
      row.trace = first->second->trace;
      continue;
    }
    row.metrics = std::move(record.metrics);
    row.trace = std::move(record.trace);
  }
  return results;
}

}  // namespace

RunResults load_results(const RunAddress& address, RecordPart part) {
  check_not_of_plan(address.directory());
  // Beside the plan; after it where no thread can be started.
  std::future<Records> recorded = std::async([&] { return read_records(address.directory(), part); });
  FoundPlan found = find_plan(address);
  RunResults results = results_of(std::move(found.plan), recorded.get());
  results.outputs = std::move(found.outputs);
  results.notes = std::move(found.notes);
  add_imported_arms(results, address.directory());
  return results;
}

RunResults load_results(const std::filesystem::path& directory, const Scenario& scenario,
                        const std::string& id) {
  RunResults results = results_of(plan_of(scenario, id), read_records(directory));
  results.outputs = outputs_of(directory, id);
  add_imported_arms(results, directory);
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

void print_notes(const RunResults& results) {
  print_notes(results.notes);
  if (const std::string text = builds_text(results); !text.empty())
    std::cerr << "moelab: note: " << text << '\n';
}

}  // namespace moelab
