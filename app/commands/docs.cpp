#include <fmt/format.h>

#include <iostream>

#include "app/commands/check.h"
#include "app/commands/documents.h"
#include "app/commands/verbs.h"
#include "app/run/durable_file.h"
#include "app/scenario/scenario.h"

namespace moelab {

namespace {

/// Writes the documents that are made from the program's tables.
int write_documents(const Arguments& arguments) {
  const std::filesystem::path directory = arguments.out.empty() ? "docs" : arguments.out;
  const std::vector<const Check*> all = chosen_checks(checks(), {});
  const std::vector<CheckFinding> findings = run_checks(all, {}, thread_count(arguments));
  Json files = Json::array();
  const auto write = [&](const char* name, const std::string& text) {
    replace_file(directory / name, text);
    files.push_back((directory / name).string());
  };
  write("scenario.md", scenario_reference());
  write("scenario.schema.json", scenario_schema());
  write("theorems.md", theorem_catalogue(all, findings));
  if (arguments.json) {
    std::cout << Json({{"files", files}}).dump(2) << '\n';
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
