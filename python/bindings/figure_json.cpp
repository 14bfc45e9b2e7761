#include "bindings/figure_json.h"

#include "app/figures/figure_kind.h"
#include "app/run/figures.h"
#include "sim/base/error.h"

namespace moelab::python {

Json figure_json(const RunResults& results, const std::filesystem::path& directory, const std::string& id) {
  std::vector<std::string> ids;
  for (const Json& description : results.plan.at("figures")) {
    ids.push_back(description.at("id").get<std::string>());
    if (ids.back() != id) continue;
    const AnyFigure figure = kind_of(description).build(description, figure_source(results, directory));
    return std::visit([](const auto& own) { return Json(data_json(own)); }, figure);
  }
  throw UserError("figure", ids.empty() ? "the run has no figures" : unknown_name("figure", id, ids));
}

}  // namespace moelab::python
