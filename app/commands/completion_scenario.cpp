#include "app/commands/completion_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/commands/completion.h"
#include "app/run/journal.h"
#include "app/scenario/experiment_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_file.h"
#include "app/scenario/scenario_shape.h"
#include "app/scenario/sweep.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

/// Ids of more cells than these take too long to wait for at a key.
constexpr std::size_t kOfferedCells = 200;

/// What can be applied.
void apply_where_possible(const std::vector<Override>& overrides, Json& document) {
  for (const Override& change : overrides) {
    Json changed = document;
    try {
      apply_overrides(scenario_shape(), std::vector<Override>{change}, changed);
    } catch (const InvalidOption&) {
      continue;
    }
    document = std::move(changed);
  }
}

Candidates names_in(const Json& object) {
  Candidates candidates;
  for (const auto& [name, value] : object.items()) candidates.words.push_back({name, value.dump()});
  return candidates;
}

/// The number of seeds, unless the scenario says no such number: 0.
std::size_t offered_seeds(const Json& scenario) {
  const Json count = object_at(scenario, "seeds").value("count", Json(5));
  return count.is_number_unsigned() ? count.get<std::size_t>() : 0;
}

/// Whether the scenario has few cells, and no files of data that their ids would depend on.
bool has_quick_cells(const Json& scenario) {
  const std::size_t arms = std::max<std::size_t>(object_at(scenario, "arms").size(), 1);
  const std::size_t seeds = offered_seeds(scenario);
  const std::size_t points = count_points(read_sweep(object_at(scenario, "sweep")), kOfferedCells);
  if (seeds > kOfferedCells || arms * points * seeds > kOfferedCells) return false;
  return files_of(read_data(resolve(data_shape(), object_at(scenario, "data"), "data"))).empty();
}

std::string cell_help(const std::string& arm, const Json& point, const Json& seed) {
  std::string text = arm;
  for (const auto& [path, value] : point.items()) text += fmt::format(", {} = {}", path, value.dump());
  return fmt::format("{}, seed {}", text, seed.dump());
}

}  // namespace

Json object_at(const Json& scenario, const std::string& key) {
  const bool is_there = scenario.is_object() && scenario.contains(key) && scenario.at(key).is_object();
  return is_there ? scenario.at(key) : Json::object();
}

Json given_scenario(const Arguments& given) {
  Json document;
  try {
    // Other than a file, a pipe could be waited for.
    if (!std::filesystem::is_regular_file(given.file)) return Json::object();
    document = read_scenario_file(given.file).document;
  } catch (const std::exception&) {
    return Json::object();
  }
  apply_where_possible(read_overrides(object_at(object_at(document, "profiles"), given.profile), "profiles"),
                       document);
  for (const std::string& setting : given.settings) {
    if (setting.find('=') != std::string::npos && !setting.starts_with('='))
      apply_where_possible(read_settings({setting}), document);
  }
  return document;
}

std::vector<std::string> fixed_paths(const Json& scenario) {
  std::vector<std::string> paths;
  const Json sweep = object_at(scenario, "sweep"), arms = object_at(scenario, "arms");
  for (const auto& [path, values] : sweep.items()) paths.push_back(path);
  const Json zip = object_at(sweep, "zip");
  for (const auto& [path, values] : zip.items()) paths.push_back(path);
  for (const auto& [name, arm] : arms.items()) {
    if (!arm.is_object()) continue;
    for (const auto& [path, value] : arm.items()) paths.push_back(path);
  }
  return paths;
}

Candidates offer_profiles(const Arguments& given, const std::string&) {
  return names_in(object_at(given_scenario(given), "profiles"));
}

Candidates offer_arms(const Arguments& given, const std::string&) {
  const Json scenario = given_scenario(given);
  return names_in(scenario.contains("arms") ? object_at(scenario, "arms") : Json::parse(R"({"base": {}})"));
}

Candidates offer_seeds(const Arguments& given, const std::string&) {
  Candidates candidates;
  const std::size_t count = std::min(offered_seeds(given_scenario(given)), kOfferedCells);
  for (std::size_t seed = 0; seed < count; ++seed) candidates.words.push_back({std::to_string(seed)});
  return candidates;
}

Candidates offer_swept_values(const Arguments& given, const std::string& word) {
  Candidates candidates;
  const auto add = [&](const std::string& text) {
    const bool known = std::any_of(candidates.words.begin(), candidates.words.end(),
                                   [&](const Candidates::Word& other) { return other.text == text; });
    if (!known) candidates.words.push_back({text});
  };
  for (const SweepAxis& axis : read_sweep(object_at(given_scenario(given), "sweep"))) {
    for (const std::vector<Override>& step : axis.steps) {
      for (const Override& change : step) {
        const std::string path = change.path + "=";
        add(word.starts_with(path) ? path + value_text(read_sweep_value(change.value)) : path);
      }
    }
  }
  return candidates;
}

Candidates offer_cells_of_scenario(const Arguments& given, const std::string&) {
  Candidates candidates{{{"first", "the first cell"}}};
  const Json document = given_scenario(given);
  try {
    if (!has_quick_cells(document)) return candidates;
    for (const Cell& cell : expand_scenario(document, "", {}).cells)
      candidates.words.push_back({cell.id, cell_help(cell.arm, point_json(cell.point), cell.seed)});
  } catch (const std::exception&) {
    // A scenario that is not whole yet has no cells.
  }
  return candidates;
}

Candidates offer_cells_of_run(const Arguments& given, const std::string&) {
  Candidates candidates;
  for (const ResultRow& cell : find_plan(run_address(given)).plan.cells)
    candidates.words.push_back({cell.cell, cell_help(cell.arm, point_json(cell.point), cell.seed)});
  return candidates;
}

Candidates offer_journals(const Arguments& given, const std::string&) {
  Candidates candidates{{{"newest", "of each cell the record that finished last"}}};
  for (const std::filesystem::path& journal : journal_files(given.directory))
    candidates.words.push_back({journal.filename().string()});
  return candidates;
}

Candidates offer_run_folders(const Arguments& given, const std::string& word) {
  const std::size_t at = word.rfind('@');
  if (at == std::string::npos) return offer_folders(given, word);
  Arguments run;
  run.directory = word.substr(0, at);
  Candidates candidates = offer_plans(run, "");
  if (candidates.words.empty()) return offer_folders(given, word);
  for (Candidates::Word& plan : candidates.words) plan.text.insert(0, word, 0, at + 1);
  return candidates;
}

Candidates offer_plans(const Arguments& given, const std::string&) {
  Candidates candidates;
  std::vector<std::filesystem::path> folders = given.directories;
  if (!given.directory.empty()) folders.push_back(given.directory);
  for (const std::filesystem::path& folder : folders) {
    for (const std::string& id : plan_ids(folder)) {
      const std::optional<Plan> plan = plan_with_id(folder, id);
      candidates.words.push_back({id, plan ? plan->head.value("profile", "") : ""});
    }
  }
  return candidates;
}

}  // namespace moelab
