#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "app/cli/completion.h"
#include "app/cli/verbs.h"
#include "app/run/results.h"
#include "app/run/search.h"
#include "app/scenario/cells.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/imported_arms.h"
#include "app/store/provenance.h"
#include "app/store/run_folder.h"
#include "app/store/store.h"
#include "plots/report/table.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"
#include "sim/data/npy.h"

// Verbs on the store of a run directory: how many cells are recorded (`status`), whether every record and
// array is whole (`verify`), and whether a cell comes out the same again (`reproduce`).

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Every plan of the directory, including the plan of `results`, as JSON and as a table.
struct PlansAnswer {
  Json json = Json::array();
  Table table = {{"plan", "", "profile", "seeds", "cells", "recorded", "differs in"}};
};

PlansAnswer plans_of(const fs::path& directory, const RunResults& results) {
  PlansAnswer answer;
  const std::vector<std::string> ids = plan_ids(directory);
  const Records records = ids.size() > 1 ? read_records(directory, RecordPart::state) : Records();
  const std::string last = shown_plan(directory);
  for (const std::string& id : ids) {
    const bool is_own = id == results.id, is_last = id == last;
    const std::optional<Plan> other = is_own ? std::nullopt : plan_with_id(directory, id);
    if (!is_own && !other) {
      answer.json.push_back({{"id", id}, {"damaged", true}});
      answer.table.rows.push_back({id, "damaged"});
      continue;
    }
    const PlanHead& head = is_own ? results.head : other->head;
    const std::vector<ResultRow>& cells = is_own ? results.table.rows : other->cells;
    const auto planned = is_own ? results.table.cell_count() : cells.size();
    const auto recorded = std::count_if(cells.begin(), cells.end(), [&](const ResultRow& row) {
      if (row.is_copy) return false;
      return is_own ? row.state != "missing" : records.contains(row.cell);
    });
    const std::vector<std::string> differs = differing_paths(results.head.document, head.document);
    answer.json.push_back({{"id", id},
                           {"profile", head.profile},
                           {"seeds", seed_count(cells)},
                           {"cells", planned},
                           {"recorded", recorded},
                           {"last_run", is_last},
                           {"differs_in", differs}});
    answer.table.rows.push_back({id, is_last ? "last run" : "", head.profile,
                                 std::to_string(seed_count(cells)), std::to_string(planned),
                                 std::to_string(recorded), fmt::format("{}", fmt::join(differs, ", "))});
  }
  return answer;
}

struct StatusOptions {
  RunChoice run;
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    bind_json(options, json);
  }
};

/// Counts the cells of a run directory by state.
int print_status(const StatusOptions& options) {
  const RunAddress run = options.run.address();
  RunResults results = load_results(run, RecordPart::state);
  if (results.head.crossing) results = load_results(run, RecordPart::metrics);
  print_notes(results);
  const std::vector<std::string> states = {"done", "diverged", "failed", "missing"};
  std::map<std::string, std::map<std::string, int>> counts;
  for (const ResultRow& row : results.table.rows)
    if (!row.is_copy) ++counts[row.arm][row.state];

  Json arms = Json::object();
  Json total = Json::object();
  for (const std::string& state : states) total[state] = 0;
  Table table = {{"arm"}};
  table.head.insert(table.head.end(), states.begin(), states.end());
  for (const std::string& arm : results.table.arms) {
    table.rows.push_back({arm});
    arms[arm] = Json::object();
    for (const std::string& state : states) {
      const int count = counts[arm][state];
      arms[arm][state] = count;
      total[state] = total[state].get<int>() + count;
      table.rows.back().push_back(std::to_string(count));
    }
  }
  table.rows.push_back({"total"});
  for (const std::string& state : states) table.rows.back().push_back(total[state].dump());
  const PlansAnswer plans = plans_of(run.directory(), results);
  if (options.json) {
    Json answer = {{"name", results.head.name},
                   {"plan", results.id},
                   {"plans", plans.json},
                   {"profile", results.head.profile},
                   {"cells", results.table.cell_count()},
                   {"total", total},
                   {"arms", arms}};
    if (Json crossings = crossings_json(results); !crossings.empty())
      answer["crossings"] = std::move(crossings);
    print_json(answer);
  } else {
    std::cout << text_table(table);
    if (const std::string crossings = crossings_text(results); !crossings.empty())
      std::cout << '\n' << crossings;
    if (plans.table.rows.size() > 1) std::cout << '\n' << text_table(plans.table);
  }
  return 0;
}

/// Adds the problems of plans, imported arms and provenance.json. Readers work around such damage, so only
/// `verify` reports it. The sessions are read with their journals.
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
  for (const fs::path& folder : entries_of(directory / "plans")) {
    // A run that was killed before it wrote its plan leaves an empty folder and no session.
    if (is_present(folder / "plan.json") || started.contains(folder.filename().string()))
      plans.push_back(folder / "plan.json");
  }
  for (const fs::path& file : plans) {
    check([&] {
      if (!is_present(file))
        throw UserError(file.string(), "missing; run the scenario again, which writes it anew");
      read_plan(file);
    });
  }
  for (const std::string& plan : plan_ids(directory)) {
    for (const fs::path& file : imported_files(directory, plan))
      check([&] { read_sealed(file, "import the arm again"); });
  }
  // A run that found every cell recorded writes no provenance.
  if (const fs::path file = directory / "provenance.json"; fs::exists(file))
    check([&] { read_sealed(file, "the next session writes it anew"); });
}

/// Expands the plan's scenario again and compares its cells with the planned cells. A cell gets another id
/// where a file changed that it reads, or where this program has another version of the numerics. The changed
/// files are those that no unchanged cell reads.
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
    const bool is_placed = cell.arm == row.arm && cell.seed == row.seed && cell.point == row.point;
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

/// Adds the problems of saved arrays: they are missing, unreadable, or not the bytes that were recorded.
/// Folders without a record and temporary files belong to interrupted cells; they are no problem.
void check_arrays(const fs::path& directory, const Records& records, std::vector<std::string>& problems,
                  int& arrays) {
  for (const auto& [id, record] : records) {
    for (const auto& [name, sum] : record.arrays) {
      const fs::path file = array_file(directory, id, name);
      if (const std::string problem = array_problem(file, sum); !problem.empty())
        problems.push_back(file.string() + ": " + problem);
    }
    const fs::path folder = directory / "cells" / id;
    for (const fs::path& saved : entries_of(folder)) {
      if (is_temporary_name(saved.filename().string())) continue;
      ++arrays;
      try {
        const NpyReader reader(saved, saved.string());
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception& error) {
        problems.push_back(error.what());
      }
    }
  }
}

struct VerifyOptions {
  RunChoice run;
  std::string keep;  ///< the beginning of a journal's name, "newest", or empty
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("--keep", &keep,
                "resolve cells that were recorded twice with different results: keep the records of this "
                "journal (name, its beginning, or newest), set others aside",
                {.candidates = [this](const std::string&) { return offer_journals(run.directory); }});
    bind_json(options, json);
  }
};

/// Reads every record and every array of a run directory; 1 when one is damaged.
int verify(const VerifyOptions& options) {
  std::vector<std::string> problems;
  const RunAddress run = options.run.address();
  const fs::path& directory = run.directory();
  const FoundPlan found = find_plan(run);
  print_notes(found.notes);
  SetAside aside;
  if (!options.keep.empty()) aside = set_others_aside(directory, options.keep);
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
  if (options.json) {
    Json answer = {{"planned", planned.size()},      {"recorded", recorded}, {"of_other_plans", elsewhere},
                   {"not_planned_any_more", others}, {"arrays", arrays},     {"problems", problems}};
    if (!options.keep.empty()) answer["set_aside"] = aside.records;
    print_json(answer);
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

/// Throws EnvironmentError where the plan has a cell of this id, but a file that the cell reads has changed.
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

struct ReproduceOptions {
  RunChoice run;
  std::string cell;  ///< an id, or its beginning
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("CELL", &cell, "cell id, or its beginning",
                {.required = true, .candidates = [this](const std::string&) { return offer_cells(run); }});
    bind_json(options, json);
  }
};

/// Runs one recorded cell again and compares its numbers and arrays to the last bit; 1 when they differ.
int reproduce(const ReproduceOptions& options) {
  const RunAddress run = options.run.address();
  const Records records = read_records(run.directory());
  const Cell cell = planned_cell(run, options.cell);
  const auto recorded = records.find(cell.id);
  if (recorded == records.end()) {
    throw UserError("CELL", fmt::format("{} is planned, but not recorded yet; run it first", cell.id));
  }
  const CellResult result = run_cell(cell, [](double) { return false; });
  const Record again = numbers_of(cell.id, result, 0);
  std::vector<std::string> lines = record_differences(recorded->second, again);
  for (const SavedArray& array : result.arrays) {
    const fs::path file = array_file(run.directory(), cell.id, array.name);
    if (!fs::exists(file)) {
      lines.push_back(file.string() + ": missing");
      continue;
    }
    if (read_bytes(file) != array_bytes(array)) lines.push_back(file.string() + ": other bytes");
  }
  if (options.json) {
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

Verb status_verb() {
  return make_verb("status", "Count the cells by arm and state", "status runs/fig2a-quick", print_status);
}

Verb verify_verb() {
  return make_verb("verify", "Read every record and array; status 1 when one is damaged",
                   "verify runs/fig2a-quick", verify);
}

Verb reproduce_verb() {
  return make_verb("reproduce", "Run a recorded cell again; status 1 when a bit differs",
                   "reproduce runs/fig2a-quick 0123abcd", reproduce);
}

}  // namespace moelab
