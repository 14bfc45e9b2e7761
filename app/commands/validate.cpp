#include <fmt/format.h>

#include <iostream>

#include "app/commands/documents.h"
#include "app/commands/verbs.h"
#include "app/scenario/scenario.h"

namespace moelab {

int run_validate_command(const Arguments& arguments) {
  const Scenario scenario = load_scenario(arguments.file, arguments.profile, arguments.settings);
  if (arguments.json) {
    const Json answer = {{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}};
    std::cout << answer.dump(2) << '\n';
  } else {
    std::cout << fmt::format("valid: {} cells\n", scenario.cells.size());
  }
  return 0;
}

int run_schema_command() {
  std::cout << scenario_schema();
  return 0;
}

}  // namespace moelab
