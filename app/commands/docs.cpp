#include <fmt/format.h>

#include <iostream>

#include "app/commands/check.h"
#include "app/commands/documents.h"
#include "app/commands/verbs.h"
#include "app/run/durable_file.h"
#include "app/scenario/scenario.h"

namespace moelab {

namespace {

constexpr const char *kScenarioPage = "scenario.md", *kSchemaDocument = "scenario.schema.json",
                     *kTheoremsPage = "theorems.md";

/// Writes the documents that are made from the program's tables.
int write_documents(const Arguments& arguments) {
  const std::filesystem::path directory = arguments.out.empty() ? "docs" : arguments.out;
  check_output_folder(directory, "--out");
  for (const char* name : {kScenarioPage, kSchemaDocument, kTheoremsPage})
    check_output_file(directory / name, "--out");
  const std::vector<const Check*> all = chosen_checks(checks(), {});
  const std::vector<CheckFinding> findings = run_checks(all, {}, thread_count(arguments));
  Json files = Json::array();
  const auto write = [&](const char* name, const std::string& text) {
    replace_file(directory / name, text);
    files.push_back((directory / name).string());
  };
  write(kScenarioPage, scenario_reference());
  write(kSchemaDocument, scenario_schema());
  write(kTheoremsPage, theorem_catalogue(all, findings));
  if (arguments.json) {
    std::cout << json_text({{"files", files}}) << '\n';
  } else {
    for (const Json& file : files) std::cout << file.get<std::string>() << '\n';
  }
  return 0;
}

}  // namespace

Verb docs_verb() {
  return {"docs",
          "Write the documents made from the program's tables: scenario.md, theorems.md and "
          "scenario.schema.json",
          "docs --out docs", [](Arguments& arguments) -> VerbCall {
            return {{{"--out", &arguments.out, "folder (default: docs)", false, nullptr, offer_folders},
                     threads_option(arguments, "checks run at a time (default: one per processor)"),
                     json_option(arguments)},
                    [&] { return write_documents(arguments); }};
          }};
}

}  // namespace moelab
