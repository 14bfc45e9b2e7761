#include <iostream>
#include <map>

#include "app/commands/verbs.h"
#include "app/run/results.h"
#include "app/run/summary.h"

namespace moelab {

namespace {

/// Counts the cells of a run directory by state.
int print_status(const Arguments& arguments) {
  const RunResults results = load_results(arguments.directory, RecordPart::state);
  warn_of_builds(results);
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
    for (const std::string& state : states) {
      const int count = counts[arm][state];
      arms[arm][state] = count;
      total[state] = total[state].get<int>() + count;
      rows.back().push_back(std::to_string(count));
    }
  }
  rows.push_back({"total"});
  for (const std::string& state : states) rows.back().push_back(total[state].dump());
  if (arguments.json) {
    const Json answer = {{"name", results.plan.at("name")},
                         {"profile", results.plan.value("profile", "")},
                         {"cells", results.table.rows.size()},
                         {"total", total},
                         {"arms", arms}};
    std::cout << answer.dump(2) << '\n';
  } else {
    std::cout << aligned_columns(rows);
  }
  return 0;
}

}  // namespace

Verb status_verb() {
  return {"status", "Count the cells by arm and state", "status runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {{directory_option(arguments), json_option(arguments)},
                    [&] { return print_status(arguments); }};
          }};
}

}  // namespace moelab
