#include "app/scenario/fixed_numbers.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/stats/expression.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The names of an expression; what a text ought to be is checked elsewhere.
void add_names_of(const std::string& text, std::set<std::string>& names) {
  try {
    for (const std::string& name : Expression::parse(text, "").names()) names.insert(name);
  } catch (const InvalidOption&) {
  }
}

/// The names in every text with operators.
void add_names(const Json& part, std::set<std::string>& names) {
  if (part.is_structured()) {
    for (const Json& element : part) add_names(element, names);
  } else if (part.is_string() && part.get_ref<const std::string&>().find(' ') != std::string::npos) {
    add_names_of(part.get<std::string>(), names);
  }
}

/// A side's value is an expression without operators, too.
void add_values_of_sides(const Json& claims, std::set<std::string>& names) {
  for (const Json& claim : claims) {
    for (const char* side : {"left", "right"}) {
      const Json value = claim.value(side, Json::object()).value("value", Json());
      if (value.is_string()) add_names_of(value.get<std::string>(), names);
    }
  }
}

std::optional<double> number_of(const CellConfig& config, const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos || (path.substr(0, dot) != "data" && path.substr(0, dot) != "model" &&
                                   path.substr(0, dot) != "train" && path.substr(0, dot) != "loss"))
    return std::nullopt;
  const Json* part = &config.at(path.substr(0, dot));
  for (std::size_t begin = dot + 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (!part->is_object() || !part->contains(key)) return std::nullopt;
    part = &part->at(key);
    begin = end + 1;
  }
  if (!part->is_number()) return std::nullopt;
  return part->get<double>();
}

}  // namespace

std::map<std::string, double> fixed_numbers(const Scenario& scenario) {
  std::set<std::string> names;
  add_names(scenario.claims, names);
  add_values_of_sides(scenario.claims, names);
  add_names(scenario.figures, names);
  if (scenario.crossing) add_names(Json(scenario.crossing->metric), names);
  std::map<std::string, double> fixed;
  for (const std::string& name : names) {
    const std::vector<std::string>& swept = scenario.sweep_paths;
    if (scenario.cells.empty() || std::find(swept.begin(), swept.end(), name) != swept.end()) continue;
    const std::optional<double> number = number_of(scenario.cells.front().config, name);
    const bool is_shared =
        number && std::all_of(scenario.cells.begin(), scenario.cells.end(), [&](const Cell& cell) {
          // Seeds share their configuration.
          return cell.seed != 0 || number_of(cell.config, name) == number;
        });
    if (is_shared) fixed[name] = *number;
  }
  return fixed;
}

}  // namespace moelab
