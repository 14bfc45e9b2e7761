#pragma once

/// Readers of scenario files and overrides, as targets.h says.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/fuzz/property.h"

namespace moelab {

/// A scenario of more cells is not expanded: one is as good as thousands, and faster.
constexpr std::size_t kFuzzedCells = 64;

/// The number of cells that a document asks for; 0 where it is refused before they are counted.
inline std::size_t asked_cells(const Json& document) {
  try {
    const Json resolved = resolve(scenario_shape(), document, "");
    const std::vector<SweepAxis> axes = read_sweep(resolved.value("sweep", Json::object()));
    const double arms = static_cast<double>(resolved.value("arms", Json::object()).size()) + 1;
    const double points = static_cast<double>(count_points(axes, kFuzzedCells));
    const double cells = arms * points * resolved.at("seeds").at("count").get<double>();
    return static_cast<std::size_t>(std::min(cells, 1e6));
  } catch (const UserError&) {
    return 0;
  }
}

/// Canonical text is JSON that reads back to the same canonical text.
inline void check_canonical(const Json& value) {
  const std::string text = canonical_text(value);
  require(canonical_text(parse_json(text, "canonical")) == text, "canonical text reads back as another");
}

/// What is accepted comes out the same when it is written and read once more: each cell's id, and each
/// configuration with its defaults.
inline void check_expansion(const Scenario& scenario) {
  const Json again = parse_json(scenario.document.dump(), "again");
  const Scenario second = expand_scenario(again, "", {});
  require(second.cells.size() == scenario.cells.size(), "another number of cells when read again");
  for (std::size_t i = 0; i < scenario.cells.size(); ++i) {
    require(second.cells[i].id == scenario.cells[i].id, "another cell id when read again");
    const std::string text = canonical_text(config_json(*scenario.cells[i].options));
    require(canonical_text(resolve(config_shape(), parse_json(text, "config"), "")) == text,
            "a resolved configuration resolves to another");
  }
}

/// Reads a scenario file: parse → validate → expand.
inline bool fuzz_scenario(std::string_view bytes) {
  try {
    const Json document = parse_json(bytes, "scenario.json");
    check_canonical(document);
    // Drawing means that lie far apart is no reading, and takes its time.
    if (asked_cells(document) > kFuzzedCells || bytes.find("separation") != std::string_view::npos)
      return false;
    check_expansion(expand_scenario(document, "", {}));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

/// Reads the values of --set, one a line, for a scenario that is right without them.
inline bool fuzz_setting(std::string_view bytes) {
  std::vector<std::string> settings;
  for (std::size_t start = 0; start <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
    settings.emplace_back(bytes.substr(start, end - start));
    start = end + 1;
  }
  if (settings.back().empty()) settings.pop_back();
  try {
    Json document = tiny();
    apply_overrides(scenario_shape(), read_settings(settings), document);
    if (asked_cells(document) > kFuzzedCells || bytes.find("separation") != std::string_view::npos)
      return false;
    check_expansion(expand_scenario(tiny(), "", settings));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace moelab
