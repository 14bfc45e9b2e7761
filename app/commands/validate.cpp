#include <fmt/format.h>

#include <iostream>

#include "app/commands/documents.h"
#include "app/commands/verbs.h"
#include "app/scenario/scenario.h"

namespace moelab {

namespace {

int validate(const Arguments& arguments) {
  const Scenario scenario = load_scenario(arguments.file, arguments.profile, arguments.settings);
  if (arguments.json) {
    const Json answer = {{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}};
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format("valid: {} cells\n", scenario.cells.size());
  }
  return 0;
}

int print_schema() {
  std::cout << scenario_schema();
  return 0;
}

}  // namespace

Verb validate_verb() {
  return {"validate", "Check a scenario, every cell of it", "validate my_scenario.json",
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
