#include <fmt/format.h>

#include <iostream>

#include "app/commands/documents.h"
#include "app/commands/verbs.h"
#include "app/scenario/scenario.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"

namespace moelab {

namespace {

/// Without a profile the cells of each profile are checked, too; settings may be for the plain scenario
/// alone.
void check_cells_of_profiles(const Arguments& arguments, const Scenario& scenario) {
  if (!arguments.profile.empty() || !arguments.settings.empty()) return;
  const Json profiles = scenario.document.value("profiles", Json::object());
  for (const auto& [name, overrides] : profiles.items()) {
    try {
      load_scenario(arguments.file, name, {});
    } catch (const InvalidOption& error) {
      throw UserError(error.path(), fmt::format("{} (with --profile {})", error.message(), name));
    }
  }
}

int validate(const Arguments& arguments) {
  const Scenario scenario = load_scenario(arguments.file, arguments.profile, arguments.settings);
  check_cells_of_profiles(arguments, scenario);
  if (arguments.json) {
    const Json answer = {{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}};
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format("valid: {}\n", counted(scenario.cells.size(), "cell"));
  }
  return 0;
}

int print_schema() {
  std::cout << scenario_schema();
  return 0;
}

}  // namespace

Verb validate_verb() {
  return {"validate", "Check a scenario, every cell of it and of its profiles", "validate my_scenario.json",
          [](Arguments& arguments) -> VerbCall {
            return {joined(scenario_options(arguments), {{json_option(arguments)}}),
                    [&] { return validate(arguments); }};
          }};
}

Verb schema_verb() {
  return {"schema", "Print the JSON Schema of scenario files", "schema > moelab.schema.json",
          [](Arguments& arguments) -> VerbCall {
            return {{json_option(arguments)}, [] { return print_schema(); }};
          }};
}

}  // namespace moelab
