#include <fmt/format.h>

#include <iostream>

#include "app/commands/verbs.h"
#include "app/run/store.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The planned cell whose id is, or begins with, `given`.
Cell planned_cell(const std::filesystem::path& directory, const std::string& given) {
  const Scenario scenario = expand_scenario(read_plan(directory).at("scenario"), "", {});
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
  if (!found) throw UserError("CELL", unknown_name("cell", given, ids));
  return *found;
}

/// Lines that say where two results differ; none for equal ones.
std::vector<std::string> differences(const Record& recorded, const Record& again) {
  std::vector<std::string> lines;
  if (recorded.state != again.state)
    lines.push_back(fmt::format("state: {} and {}", recorded.state, again.state));
  MetricValues all = recorded.metrics;
  all.insert(again.metrics.begin(), again.metrics.end());
  const auto text_of = [](const MetricValues& metrics, const std::string& name) {
    const auto metric = metrics.find(name);
    return metric == metrics.end() ? std::string("absent") : fmt::format("{}", metric->second);
  };
  for (const auto& metric : all) {
    const std::string was = text_of(recorded.metrics, metric.first),
                      is = text_of(again.metrics, metric.first);
    if (was != is) lines.push_back(fmt::format("{}: {} and {}", metric.first, was, is));
  }
  if (lines.empty() && !same_numbers(recorded, again)) lines.push_back("the traces differ");
  return lines;
}

/// Runs one recorded cell again and compares its numbers and arrays to the last bit; 1 when they differ.
int reproduce(const Arguments& arguments) {
  const Records records = read_records(arguments.directory);
  const Cell cell = planned_cell(arguments.directory, arguments.cell);
  const auto recorded = records.find(cell.id);
  if (recorded == records.end()) {
    throw UserError("CELL", fmt::format("{} is planned, but not recorded yet; run it first", cell.id));
  }
  const CellResult result = run_cell(cell, [](double) { return false; });
  const Record again = {cell.id, state_name(result.state), result.message, result.metrics, result.trace, 0,
                        ""};
  std::vector<std::string> lines = differences(recorded->second, again);
  for (const SavedArray& array : result.arrays) {
    const std::filesystem::path file = array_file(arguments.directory, cell.id, array.name);
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
                {directory_option(arguments),
                 {"CELL", &arguments.cell, "cell id, or its beginning", true, nullptr, offer_cells_of_run},
                 json_option(arguments)},
                [&] { return reproduce(arguments); }};
          }};
}

}  // namespace moelab
