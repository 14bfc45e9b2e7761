#include "app/cli/documents.h"

#include <algorithm>

#include "app/cli/check.h"
#include "app/cli/command_line.h"
#include "bindings/bindings.h"

namespace moelab::python {
namespace {

/// The kinds that documents can name. Routers defined in Python are not listed.
std::string list_kinds(const std::string& axis) {
  return released([&] {
    Json axes = list_json(axis);
    if (axes.contains("routers")) {
      Json& kinds = axes["routers"]["kinds"];
      kinds.erase(std::remove_if(kinds.begin(), kinds.end(),
                                 [](const Json& kind) { return kind.at("name") == kPythonRouter; }),
                  kinds.end());
    }
    return json_text(axes);
  });
}

std::string validate(const std::string& file, const std::string& document, const std::string& profile,
                     const std::vector<std::string>& settings) {
  return released([&] {
    const Scenario scenario = GivenScenario{file, document, profile}.load(settings);
    return json_text(Json{{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}});
  });
}

/// The complete document of a scenario file. It contains the scenario that the file extends.
std::string scenario_document(const std::string& file) {
  return released([&] { return json_text(read_scenario_file(file).document); });
}

std::string list_checks(const std::vector<std::string>& ids) {
  return released([&] {
    Json list = Json::array();
    for (const Check* check : chosen_checks(checks(), ids)) list.push_back(check_json(*check));
    return json_text(list);
  });
}

/// Runs the command line `moelab WORDS…` and returns its exit status.
int main_program(const std::vector<std::string>& words) {
  std::vector<const char*> given = {"moelab"};
  for (const std::string& word : words) given.push_back(word.c_str());
  const nb::gil_scoped_release unlocked;
  return run_command_line(static_cast<int>(given.size()), given.data());
}

}  // namespace

void bind_documents(nb::module_& module) {
  using namespace nb::literals;
  module.def("list_kinds", list_kinds, "axis"_a,
             "The answer of `moelab list NAME --json`, of all axes for an empty name.");
  module.def("validate", validate, "file"_a, "document"_a, "profile"_a, "settings"_a,
             "The answer of `moelab validate --json`.");
  module.def("scenario_document", scenario_document, "file"_a,
             "The document of a scenario file, with what it extends (JSON).");
  module.def("list_checks", list_checks, "ids"_a, "The answer of `moelab check --list --json`.");
  module.def("main", main_program, "words"_a,
             "The program `moelab`, for a process of its own: its exit status.");
}

}  // namespace moelab::python
