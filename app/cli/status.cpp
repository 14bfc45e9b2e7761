#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "app/cli/verbs.h"
#include "app/run/results.h"
#include "app/run/search.h"
#include "app/store/store.h"

namespace moelab {

namespace {

/// A plan's line: where its scenario differs from that of `shown`, and how far it is.
Json plan_json(const Json& head, const std::vector<ResultRow>& cells, std::size_t recorded,
               const Json& shown) {
  return {{"id", head.at("id")},
          {"profile", head.value("profile", "")},
          {"seeds", seed_count(cells)},
          {"cells", cells.size()},
          {"recorded", recorded},
          {"last_run", false},
          {"differs_in", differing_paths(shown.at("scenario"), head.at("scenario"))}};
}

/// Every plan of the directory, that of `results` among them.
Json plans_json(const std::filesystem::path& directory, const RunResults& results) {
  Json list = Json::array();
  const std::vector<std::string> ids = plan_ids(directory);
  const Records records = ids.size() > 1 ? read_records(directory, RecordPart::state) : Records();
  const std::string last = shown_plan(directory);
  const auto count = [](const std::vector<ResultRow>& cells, const auto& is_recorded) {
    return static_cast<std::size_t>(std::count_if(cells.begin(), cells.end(), is_recorded));
  };
  for (const std::string& id : ids) {
    if (id == results.plan.at("id")) {
      const auto& rows = results.table.rows;
      const auto is_recorded = [](const ResultRow& row) { return row.state != "missing"; };
      list.push_back(plan_json(results.plan, rows, count(rows, is_recorded), results.plan));
    } else if (const std::optional<Plan> plan = plan_with_id(directory, id)) {
      const auto is_recorded = [&](const ResultRow& row) { return records.contains(row.cell); };
      list.push_back(plan_json(plan->head, plan->cells, count(plan->cells, is_recorded), results.plan));
    } else {
      list.push_back({{"id", id}, {"damaged", true}});
      continue;
    }
    list.back()["last_run"] = id == last;
  }
  return list;
}

std::string plans_text(const Json& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"plan", "", "profile", "seeds", "cells", "recorded", "differs in"}};
  for (const Json& plan : plans) {
    const std::string id = plan.at("id");
    if (plan.contains("damaged")) {
      rows.push_back({id, "damaged"});
      continue;
    }
    const auto differs = plan.at("differs_in").get<std::vector<std::string>>();
    rows.push_back({id, plan.at("last_run") ? "last run" : "", plan.at("profile"), plan.at("seeds").dump(),
                    plan.at("cells").dump(), plan.at("recorded").dump(),
                    fmt::format("{}", fmt::join(differs, ", "))});
  }
  return aligned_columns(rows);
}

/// Counts the cells of a run directory by state.
int print_status(const Arguments& arguments) {
  const RunAddress run = run_address(arguments);
  RunResults results = load_results(run, RecordPart::state);
  if (results.plan.contains("crossing")) results = load_results(run, RecordPart::metrics);
  print_notes(results);
  const std::vector<std::string> states = {"done", "diverged", "failed", "missing"};
  std::map<std::string, std::map<std::string, int>> counts;
  for (const ResultRow& row : results.table.rows) ++counts[row.arm][row.state];

  Json arms = Json::object();
  Json total = Json::object();
  for (const std::string& state : states) total[state] = 0;
  std::vector<std::vector<std::string>> rows = {{"arm"}};
  rows[0].insert(rows[0].end(), states.begin(), states.end());
  for (const std::string& arm : results.table.arms) {
    rows.push_back({arm});
    arms[arm] = Json::object();
    for (const std::string& state : states) {
      const int count = counts[arm][state];
      arms[arm][state] = count;
      total[state] = total[state].get<int>() + count;
      rows.back().push_back(std::to_string(count));
    }
  }
  rows.push_back({"total"});
  for (const std::string& state : states) rows.back().push_back(total[state].dump());
  const Json plans = plans_json(run.directory(), results);
  if (arguments.json) {
    Json answer = {{"name", results.plan.at("name")},
                   {"plan", results.plan.at("id")},
                   {"plans", plans},
                   {"profile", results.plan.value("profile", "")},
                   {"cells", results.table.rows.size()},
                   {"total", total},
                   {"arms", arms}};
    if (Json crossings = crossings_json(results); !crossings.empty())
      answer["crossings"] = std::move(crossings);
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << aligned_columns(rows);
    if (const std::string crossings = crossings_text(results); !crossings.empty())
      std::cout << '\n' << crossings;
    if (plans.size() > 1) std::cout << '\n' << plans_text(plans);
  }
  return 0;
}

}  // namespace

Verb status_verb() {
  return {"status", "Count the cells by arm and state", "status runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {joined(directory_options(arguments), {{json_option(arguments)}}),
                    [&] { return print_status(arguments); }};
          }};
}

}  // namespace moelab
