#include "app/store/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/uuid/name_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "app/scenario/checks.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdBytes = 6;
constexpr const char* kPlanWayOut = "run the scenario again, which writes it anew";

/// Computes a plan's id from its document and the cell ids of seed 0, one per line. If `seeds` is not 0, the
/// id also covers the number of seeds.
std::string id_from(const Json& document, const std::string& cells, int seeds) {
  std::string text = json_text(without_seed_count(document), -1) + "\n" + cells;
  if (seeds > 0) text += fmt::format("{} seeds", seeds);
  const boost::uuids::uuid hash = boost::uuids::name_generator_sha1(boost::uuids::ns::oid())(text);
  std::string id;
  for (std::size_t byte = 0; byte < kIdBytes; ++byte) id += fmt::format("{:02x}", hash.data[byte]);
  return id;
}

/// Whether the cell at `point` does not depend on search results. True for every cell if nothing is searched.
bool is_at_end(const std::optional<CrossingSearch>& crossing, const SweepPoint& point) {
  if (!crossing) return true;
  for (const auto& [path, value] : point)
    if (path == crossing->path) return crossing->is_end(value.number().value_or(crossing->low));
  return true;
}

template <class Cells>
int seeds_of(const Cells& cells) {
  int count = 0;
  for (const auto& cell : cells) count = std::max(count, cell.seed + 1);
  return count;
}

/// Returns the metric names at the first and the last point of each arm. A run has columns for these metrics
/// even if no cell has a value.
std::vector<std::string> planned_metrics(const Scenario& scenario) {
  std::set<std::string> names;
  for (const std::string& arm : scenario.arms) {
    const auto is_own = [&](const Cell& cell) { return cell.arm == arm; };
    const auto first = std::find_if(scenario.cells.begin(), scenario.cells.end(), is_own);
    const auto last = std::find_if(scenario.cells.rbegin(), scenario.cells.rend(), is_own);
    if (first == scenario.cells.end() || !first->options) continue;
    std::vector<const Cell*> cells = {&*first};
    if (last->options != first->options) cells.push_back(&*last);
    for (const Cell* const cell : cells) {
      for (std::string& name : MeasuredMetrics(*cell->options).names()) names.insert(std::move(name));
    }
  }
  return {names.begin(), names.end()};
}

/// Visits the fields of plan.json before its cells, for writing and for reading. The last four are absent
/// without a value.
template <class AnyPlan, class Visit>
void visit_fields(AnyPlan& plan, const Visit& visit) {
  constexpr bool kRequired = true;
  visit("id", plan.id, kRequired);
  visit("name", plan.head.name, kRequired);
  visit("title", plan.head.title, kRequired);
  visit("source", plan.head.source, kRequired);
  visit("profile", plan.head.profile, kRequired);
  visit("scenario", plan.head.document, kRequired);
  visit("claims", plan.head.written_claims, kRequired);
  visit("figures", plan.head.written_figures, kRequired);
  visit("arms", plan.head.arms, kRequired);
  visit("sweep", plan.head.sweep_paths, kRequired);
  visit("metrics", plan.metrics, kRequired);
  visit("added_seeds_to", plan.head.added_seeds_to, !kRequired);
  visit("fixed", plan.fixed, !kRequired);
  visit("decided", plan.head.decided, !kRequired);
  visit("crossing", plan.head.crossing, !kRequired);
}

template <class Value>
Json json_of(const Value& value) {
  return value;
}
template <class Part>
Json json_of(const std::optional<Part>& part) {
  return part ? part->to_json() : Json();
}

template <class Value>
void read_value(const Json& json, Value& value) {
  value = json.get<Value>();
}
template <class Part>
void read_value(const Json& json, std::optional<Part>& part) {
  part = Part::of_plan(json);
}

/// Reads what to_json() writes.
Plan read_head(const Json& json) {
  Plan plan;
  visit_fields(plan, [&](const char* name, auto& value, bool is_required) {
    if (is_required || json.contains(name)) read_value(json.at(name), value);
  });
  try {
    plan.head.read_document();
  } catch (const InvalidOption& error) {
    throw std::invalid_argument(error.what());  // damage of the plan, and no error of the user's scenario
  }
  return plan;
}

ResultRow planned_row(const Json& cell) {
  ResultRow row;
  row.cell = cell.at("id").get<std::string>();
  row.arm = cell.at("arm").get<std::string>();
  row.seed = cell.at("seed").get<int>();
  row.point = read_point(cell.at("point"));
  row.state = "missing";
  row.is_untaught = cell.value("untaught", false);
  return row;
}

/// Throws UserError for a plan of another version, whose fields may have another meaning.
void check_plan_version(const Json& plan, const std::string& file) {
  const Json version = plan.value("version", Json(1));  // plans of version 1 have no such field
  if (version != kPlanVersion) {
    throw UserError(
        file + ": version",
        fmt::format("got {}, but this program reads version {} of the plan format; read the folder "
                    "with the program that wrote it, or run the scenario in another folder",
                    abbreviated(version), kPlanVersion));
  }
  if (plan.contains("scenario")) check_version(plan.at("scenario"), file + ": scenario.version");
}

void check_id(const Plan& plan) {
  const Json& document = plan.head.document;
  std::string cells;
  for (const ResultRow& row : plan.cells)
    if (row.seed == 0 && is_at_end(plan.head.crossing, row.point)) cells += row.cell + "\n";
  if (plan.id != id_from(document, cells, 0) && plan.id != id_from(document, cells, seed_count(plan.cells))) {
    throw std::invalid_argument("its id does not match its scenario and its cells");
  }
}

void add_differences(const Json& left, const Json& right, const std::string& path,
                     std::vector<std::string>& paths) {
  if (!left.is_object() || !right.is_object()) {
    if (left != right) paths.push_back(path);
    return;
  }
  for (const auto& [key, value] : left.items())
    add_differences(value, right.value(key, Json()), join_path(path, key), paths);
  for (const auto& [key, value] : right.items()) {
    if (!left.contains(key)) add_differences(Json(), value, join_path(path, key), paths);
  }
}

}  // namespace

std::vector<std::string> differing_paths(const Json& left, const Json& right) {
  std::vector<std::string> paths;
  add_differences(left, right, "", paths);
  return paths;
}

int seed_count(const Scenario& scenario) {
  return seeds_of(scenario.cells);
}

int seed_count(const std::vector<ResultRow>& cells) {
  return seeds_of(cells);
}

std::string plan_id(const Scenario& scenario, bool of_its_seeds) {
  std::string cells;
  for (const Cell& cell : scenario.cells)
    if (cell.seed == 0 && is_at_end(scenario.crossing, cell.point)) cells += cell.id + "\n";
  return id_from(scenario.document, cells, of_its_seeds ? seed_count(scenario) : 0);
}

Plan plan_of(const Scenario& scenario, std::string id) {
  Plan plan{std::move(id), scenario, planned_metrics(scenario), fixed_numbers(scenario)};
  for (const Cell& cell : scenario.cells)
    plan.cells.push_back({cell.id,
                          cell.arm,
                          cell.seed,
                          cell.point,
                          "missing",
                          {},
                          {},
                          false,
                          cell.options && is_untaught(cell.options->experiment.model)});
  return plan;
}

Json to_json(const Plan& plan) {
  Json json = {{"version", kPlanVersion}};
  visit_fields(plan, [&](const char* name, const auto& value, bool is_required) {
    Json own = json_of(value);
    const bool is_absent = own.empty() || own == 0;
    if (is_required || !is_absent) json[name] = std::move(own);
  });
  return json;
}

Scenario scenario_of(const PlanHead& head) {
  Scenario scenario = expand_scenario(head.document, "", {});
  if (head.crossing && scenario.crossing) keep_placed(scenario, head.crossing->placed);
  keep_decided(scenario, head.decided);
  return scenario;
}

std::string plan_text(const Scenario& scenario, const std::string& id) {
  const Plan plan = plan_of(scenario, id);
  Json json = to_json(plan), cells = Json::array();
  for (const ResultRow& cell : plan.cells) {
    cells.push_back(
        {{"id", cell.cell}, {"arm", cell.arm}, {"seed", cell.seed}, {"point", point_json(cell.point)}});
    if (cell.is_untaught) cells.back()["untaught"] = true;
  }
  json["cells"] = std::move(cells);
  return sealed_text(json);
}

Plan read_plan(const fs::path& file) {
  const auto damaged = [&](const std::string& problem) {
    return DamagedPlan(file.string(), fmt::format("damaged: {}; {}", problem, kPlanWayOut));
  };
  const std::string text = read_bytes(file);
  if (const std::string problem = seal_problem(text); !problem.empty()) {
    const Json unsealed = Json::parse(text, nullptr, false);
    const bool is_first_version =
        unsealed.is_object() && unsealed.contains("cells") && !unsealed.contains("checksum");
    if (is_first_version) check_plan_version(unsealed, file.string());
    throw damaged(problem);
  }
  try {
    // Moves cells into rows one at a time. In a large sweep they are almost the whole plan.
    std::vector<ResultRow> cells;
    bool in_cells = false;
    const Json json = parse_sealed(text, [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::key && depth == 1) in_cells = parsed == "cells";
      if (event != Json::parse_event_t::object_end || depth != 2 || !in_cells) return true;
      cells.push_back(planned_row(parsed));
      return false;
    });
    if (json.is_null()) throw damaged("it is not a JSON object");
    check_plan_version(json, file.string());
    // The callback has removed every cell, so the array must be empty.
    if (const Json& left = json.at("cells"); !left.is_array() || !left.empty())
      throw damaged("'cells' holds no cells");
    Plan plan = read_head(json);
    plan.cells = std::move(cells);
    check_id(plan);
    return plan;
  } catch (const Json::exception& error) {
    throw damaged(error.what());
  } catch (const UserError&) {
    throw;
  } catch (const std::invalid_argument& error) {
    throw damaged(error.what());
  }
}

}  // namespace moelab
