#include "app/cli/documents.h"

#include <algorithm>

#include "app/cli/check.h"
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

std::string list_checks(const std::vector<std::string>& ids) {
  return released([&] {
    Json list = Json::array();
    for (const Check* check : chosen_checks(checks(), ids)) list.push_back(check_json(*check));
    return json_text(list);
  });
}

/// Runs one check and returns its finding.
std::string check(const std::string& id, int seeds) {
  return released([&] {
    CheckEffort effort;
    effort.seeds = seeds;
    const Check& chosen = *chosen_checks(checks(), {id}).front();
    return json_text(finding_json(chosen, chosen.run(effort)));
  });
}

}  // namespace

void bind_documents(nb::module_& module) {
  using namespace nb::literals;
  module.def("list_kinds", list_kinds, "axis"_a,
             "The answer of `moelab list NAME --json`, of all axes for an empty name.");
  module.def("validate", validate, "file"_a, "document"_a, "profile"_a, "settings"_a,
             "The answer of `moelab validate --json`.");
  module.def("list_checks", list_checks, "ids"_a, "The answer of `moelab check --list --json`.");
  module.def("check", check, "id"_a, "seeds"_a, "One entry of the answer of `moelab check --json`.");
}

}  // namespace moelab::python
