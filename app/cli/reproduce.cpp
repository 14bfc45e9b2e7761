#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "app/cli/verbs.h"
#include "app/scenario/cells.h"
#include "app/store/run_folder.h"
#include "app/store/store.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Throws EnvironmentError where the plan has a cell of this id, which is another's now by what its files
/// hold.
void check_planned_files(const Plan& plan, const Scenario& scenario, const std::string& given) {
  for (std::size_t i = 0; i < std::min(plan.cells.size(), scenario.cells.size()); ++i) {
    if (!plan.cells[i].cell.starts_with(given)) continue;
    const std::vector<std::string> files = files_read_by(scenario.cells[i]);
    if (files.empty()) return;
    throw EnvironmentError(fmt::format(
        "cell {} cannot be run again: one of its files holds other bytes than when it was planned: {}",
        plan.cells[i].cell, fmt::join(files, ", ")));
  }
}

/// The planned cell whose id is, or begins with, `given`.
Cell planned_cell(const RunAddress& run, const std::string& given) {
  const FoundPlan found_plan = find_plan(run);
  print_notes(found_plan.notes);
  const Scenario scenario = scenario_of(found_plan.plan.head);
  std::vector<std::string> ids;
  const Cell* found = nullptr;
  for (const Cell& cell : scenario.cells) {
    ids.push_back(cell.id);
    if (!cell.id.starts_with(given)) continue;
    if (found && found->id != cell.id) {
      throw UserError("CELL",
                      fmt::format("'{}' begins more than one cell: {}, {}", given, found->id, cell.id));
    }
    found = &cell;
  }
  if (!found) {
    check_planned_files(found_plan.plan, scenario, given);
    throw UserError("CELL", unknown_name("cell", given, ids));
  }
  return *found;
}

/// Runs one recorded cell again and compares its numbers and arrays to the last bit; 1 when they differ.
int reproduce(const Arguments& arguments) {
  const RunAddress run = run_address(arguments);
  const Records records = read_records(run.directory());
  const Cell cell = planned_cell(run, arguments.cell);
  const auto recorded = records.find(cell.id);
  if (recorded == records.end()) {
    throw UserError("CELL", fmt::format("{} is planned, but not recorded yet; run it first", cell.id));
  }
  const CellResult result = run_cell(cell, [](double) { return false; });
  const Record again = numbers_of(cell.id, result, 0);
  std::vector<std::string> lines = record_differences(recorded->second, again);
  for (const SavedArray& array : result.arrays) {
    const std::filesystem::path file = array_file(run.directory(), cell.id, array.name);
    if (!std::filesystem::exists(file)) {
      lines.push_back(file.string() + ": missing");
      continue;
    }
    if (read_bytes(file) != array_bytes(array)) lines.push_back(file.string() + ": other bytes");
  }
  if (arguments.json) {
    const Json answer = {{"cell", cell.id},
                         {"arm", cell.arm},
                         {"seed", cell.seed},
                         {"identical", lines.empty()},
                         {"arrays", result.arrays.size()},
                         {"differences", lines}};
    std::cout << answer.dump(2) << '\n';
  } else if (lines.empty()) {
    std::cout << fmt::format(
        "cell {} (arm {}, seed {}): identical to the last bit, {} metrics, {} steps of the trace, {} "
        "arrays\n",
        cell.id, cell.arm, cell.seed, result.metrics.size(), result.trace.size(), result.arrays.size());
  } else {
    std::cout << fmt::format("cell {} (arm {}, seed {}) differs, recorded and now:\n", cell.id, cell.arm,
                             cell.seed);
    for (const std::string& line : lines) std::cout << "  " << line << '\n';
  }
  return lines.empty() ? 0 : 1;
}

}  // namespace

Verb reproduce_verb() {
  return {"reproduce", "Run a recorded cell again; status 1 when a bit differs",
          "reproduce runs/fig2a-quick 0123abcd", [](Arguments& arguments) -> VerbCall {
            return {
                joined(directory_options(arguments), {{{"CELL", &arguments.cell, "cell id, or its beginning",
                                                        true, nullptr, offer_cells_of_run},
                                                       json_option(arguments)}}),
                [&] { return reproduce(arguments); }};
          }};
}

}  // namespace moelab
