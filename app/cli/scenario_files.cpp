#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "app/cli/documents.h"
#include "app/cli/starting_points.h"
#include "app/cli/verbs.h"
#include "app/report/hints.h"
#include "app/run/session.h"
#include "app/scenario/checks.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char* kSchemaFile = "scenario.schema.json";

void fill_in(std::string& text, const std::string& place, const std::string& value) {
  text.replace(text.find(place), place.size(), value);
}

struct NewOptions {
  std::string name;
  std::string from = starting_points().front().name;
  std::filesystem::path out;  ///< empty for <name>.json
  bool json = false;

  void bind(VerbOptions& options) {
    options.add("NAME", &name, "the scenario's name", {.required = true});
    options.add("--from", &from, "the starting point: idea (default), sweep, balance, language or router",
                {.check = one_of("starting point", names_of(starting_points()))});
    options.add("--out", &out, "file to write (default: NAME.json)");
    bind_json(options, json);
  }
};

/// Writes a scenario to start from and the JSON Schema that it names. Refuses a file that exists.
int write_scenario(const NewOptions& options) {
  check_name(options.name, "NAME");
  const std::string place = options.out.empty() ? "NAME" : "--out";
  const std::filesystem::path file =
      options.out.empty() ? std::filesystem::path(options.name + ".json") : options.out;
  if (std::filesystem::exists(file))
    throw UserError(place, fmt::format("'{}' exists; choose another name, or remove it", file.string()));
  check_output_file(file, place);
  const std::filesystem::path schema = file.parent_path() / kSchemaFile;
  std::string text = std::ranges::find(starting_points(), options.from, &StartingPoint::name)->text;
  fill_in(text, "@NAME@", options.name);
  fill_in(text, "@SCHEMA@", std::string("./") + kSchemaFile);
  replace_file(file, text);
  if (!std::filesystem::exists(schema)) replace_file(schema, scenario_schema());
  if (options.json) {
    print_json({{"file", file.string()}, {"schema", schema.string()}});
  } else {
    std::cout << fmt::format("{}\nrun it with: moelab run {}\n", file.string(), shell_word(file.string()));
  }
  return 0;
}

struct ValidateOptions {
  ScenarioChoice scenario;
  bool json = false;

  void bind(VerbOptions& options) {
    scenario.bind(options);
    bind_json(options, json);
  }
};

int validate(const ValidateOptions& options) {
  const Scenario scenario = options.scenario.load();
  // A profile or settings may suit the plain scenario alone.
  if (options.scenario.profile.empty() && options.scenario.settings.empty() && !scenario.profiles.empty())
    check_cells_of_profiles(read_scenario_file(options.scenario.file));
  print_hints(scenario_hints(scenario));
  if (options.json) {
    print_json({{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}});
  } else {
    std::cout << fmt::format("valid: {}\n", counted(scenario.cells.size(), "cell"));
  }
  return 0;
}

struct SchemaOptions {
  bool json = false;  ///< changes nothing: the schema is JSON
  void bind(VerbOptions& options) { bind_json(options, json); }
};

int print_schema(const SchemaOptions&) {
  std::cout << scenario_schema();
  return 0;
}

}  // namespace

Verb new_verb() {
  return make_verb("new", "Write a small scenario to start from; its comments explain the parts",
                   "new my_idea", write_scenario);
}

Verb validate_verb() {
  return make_verb("validate", "Check every cell of a scenario and of its profiles",
                   "validate my_scenario.json", validate);
}

Verb schema_verb() {
  return make_verb("schema", "Print the JSON Schema of scenario files", "schema > moelab.schema.json",
                   print_schema);
}

}  // namespace moelab
