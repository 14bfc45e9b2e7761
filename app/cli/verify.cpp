#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "app/cli/verbs.h"
#include "app/run/results.h"
#include "app/scenario/cells.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/imported_arms.h"
#include "app/store/provenance.h"
#include "app/store/store.h"
#include "sim/base/error.h"
#include "sim/data/npy.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Problems of the plans and of what is gathered from the sessions: damage that readers find a way around.
/// The sessions themselves are read with their journals.
void check_documents(const fs::path& directory, std::vector<std::string>& problems) {
  const auto check = [&](const auto& read) {
    try {
      read();
    } catch (const UserError& error) {
      problems.push_back(error.what());
    }
  };
  std::vector<fs::path> plans = {directory / "plan.json"};
  std::set<std::string> started;
  for (const Json& session : read_sessions(directory)) started.insert(session.value("plan", ""));
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / "plans", none)) {
    // A start that was killed before its plan took its place leaves an empty folder and no session.
    if (fs::exists(entry.path() / "plan.json") || started.contains(entry.path().filename().string()))
      plans.push_back(entry.path() / "plan.json");
  }
  std::sort(plans.begin() + 1, plans.end());
  for (const fs::path& file : plans) {
    check([&] {
      if (!fs::exists(file))
        throw UserError(file.string(), "missing; run the scenario again, which writes it anew");
      read_plan(file);
    });
  }
  for (const std::string& plan : plan_ids(directory)) {
    for (const fs::path& file : imported_files(directory, plan))
      check([&] { read_sealed(file, "import the arm again"); });
  }
  // A run that found every cell recorded has written none.
  if (const fs::path file = directory / "provenance.json"; fs::exists(file))
    check([&] { read_sealed(file, "the next session writes it anew"); });
}

/// Expands the plan's scenario again and holds its cells against those planned. A cell whose id is another
/// now reads files that changed, those that no unchanged cell reads; or else the numerics are of another
/// version.
void check_cells(const Plan& plan, std::vector<std::string>& problems) {
  Scenario scenario;
  try {
    scenario = scenario_of(plan.head);
  } catch (const InvalidOption& error) {
    problems.push_back(fmt::format("plan {}: its scenario is refused now: {}", plan.id, error.what()));
    return;
  }
  if (scenario.cells.size() != plan.cells.size()) {
    problems.push_back(fmt::format("plan {}: has {} cells, but its scenario {}", plan.id, plan.cells.size(),
                                   scenario.cells.size()));
    return;
  }
  std::vector<const Cell*> same, other;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = scenario.cells[i];
    const ResultRow& row = plan.cells[i];
    const bool is_placed =
        cell.arm == row.arm && cell.seed == row.seed && read_point(cell.point) == row.point;
    if (!is_placed) {
      problems.push_back(fmt::format(
          "plan {}: cell {} has another arm, seed or sweep point than in its scenario", plan.id, row.cell));
    }
    (is_placed && cell.id == row.cell ? same : other).push_back(&cell);
  }
  if (other.empty()) return;
  const auto files_of_all = [](const std::vector<const Cell*>& cells) {
    std::set<std::string> files;
    for (const Cell* cell : cells) {
      for (std::string& file : files_read_by(*cell)) files.insert(std::move(file));
    }
    return files;
  };
  std::set<std::string> changed = files_of_all(other);
  const std::set<std::string> unchanged = files_of_all(same);
  for (const std::string& file : unchanged) changed.erase(file);
  problems.push_back(
      fmt::format("plan {}: {} of {} cells have other ids now: {}", plan.id, other.size(), plan.cells.size(),
                  changed.empty() ? "this program's numerics are of another version"
                                  : fmt::format("the content of {} changed", fmt::join(changed, ", "))));
}

/// Problems of the arrays: those that do not read, or are missing or others than their records say. Folders
/// without a record are of cells that were interrupted; so are temporary files.
void check_arrays(const std::filesystem::path& directory, const Records& records,
                  std::vector<std::string>& problems, int& arrays) {
  for (const auto& [id, record] : records) {
    for (const auto& [name, sum] : record.arrays) {
      const std::filesystem::path file = array_file(directory, id, name);
      if (const std::string problem = array_problem(file, sum); !problem.empty())
        problems.push_back(file.string() + ": " + problem);
    }
    const std::filesystem::path folder = directory / "cells" / id;
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (is_temporary_name(file.path().filename().string())) continue;
      ++arrays;
      try {
        const NpyReader reader(file.path(), file.path().string());
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception& error) {
        problems.push_back(error.what());
      }
    }
  }
}

/// Reads every record and every array of a run directory; 1 when one is damaged.
int verify(const Arguments& arguments) {
  std::vector<std::string> problems;
  const RunAddress run = run_address(arguments);
  const fs::path& directory = run.directory();
  const FoundPlan found = find_plan(run);
  print_notes(found.notes);
  SetAside aside;
  if (!arguments.keep.empty()) aside = set_others_aside(directory, arguments.keep);
  check_documents(directory, problems);
  check_cells(found.plan, problems);
  const Records records = read_records(directory, problems);
  std::set<std::string> planned, planned_elsewhere;
  for (const ResultRow& cell : found.plan.cells) planned.insert(cell.cell);
  for (const std::string& id : plan_ids(directory)) {
    const std::optional<Plan> plan = id == found.plan.id ? std::nullopt : plan_with_id(directory, id);
    for (const ResultRow& cell : plan ? plan->cells : std::vector<ResultRow>())
      planned_elsewhere.insert(cell.cell);
  }
  int recorded = 0, elsewhere = 0, others = 0, arrays = 0;
  std::vector<std::string> array_problems;
  for (const auto& record : records) {
    ++(planned.contains(record.first)             ? recorded
       : planned_elsewhere.contains(record.first) ? elsewhere
                                                  : others);
  }
  check_arrays(directory, records, array_problems, arrays);
  std::sort(array_problems.begin(), array_problems.end());
  problems.insert(problems.end(), array_problems.begin(), array_problems.end());
  if (arguments.json) {
    Json answer = {{"planned", planned.size()},      {"recorded", recorded}, {"of_other_plans", elsewhere},
                   {"not_planned_any_more", others}, {"arrays", arrays},     {"problems", problems}};
    if (!arguments.keep.empty()) answer["set_aside"] = aside.records;
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format(
        "{} cells planned, {} recorded ({} more of other plans, {} not planned any more), {} arrays\n",
        planned.size(), recorded, elsewhere, others, arrays);
    for (const fs::path& file : aside.files)
      std::cout << "records were set aside in " << file.string() << '\n';
    for (const std::string& problem : problems) std::cout << "problem: " << problem << '\n';
    if (problems.empty()) std::cout << "every record and every array is whole\n";
  }
  return problems.empty() ? 0 : 1;
}

}  // namespace

Verb verify_verb() {
  return {"verify", "Read every record and array; status 1 when one is damaged", "verify runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {
                joined(directory_options(arguments),
                       {{{"--keep", &arguments.keep,
                          "where cells are recorded twice with other numbers: the journal (or its beginning, "
                          "or newest) whose records count; the others are set aside",
                          false, nullptr, offer_journals},
                         json_option(arguments)}}),
                [&] { return verify(arguments); }};
          }};
}

}  // namespace moelab
