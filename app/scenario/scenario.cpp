#include "app/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>

#include "app/scenario/cell_expansion.h"
#include "app/scenario/claim_arms.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/label_checks.h"
#include "app/scenario/override_effects.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_file.h"
#include "app/scenario/scenario_shape.h"
#include "app/scenario/sweep.h"
#include "app/scenario/tune_ranges.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr double kMaxCells = 1e6;

std::vector<Override> profile_overrides(const Json& document, const std::string& profile) {
  if (profile.empty()) return {};
  std::vector<std::string> names;
  if (document.is_object() && document.contains("profiles") && document.at("profiles").is_object()) {
    for (const auto& [name, overrides] : document.at("profiles").items()) names.push_back(name);
    if (document.at("profiles").contains(profile)) {
      const Json& overrides = document.at("profiles").at(profile);
      const std::string place = "profiles." + profile;
      if (!overrides.is_object())
        throw UserError(place, "got " + abbreviated(overrides) + ", needs an object");
      return kept(read_overrides(overrides, place));
    }
  }
  throw UserError("--profile", unknown_name("profile", profile, names));
}

/// The first key of an override's path is a field of `shape`.
void check_roots(std::span<const Override> overrides, const Shape& shape) {
  std::vector<std::string> roots;
  for (const Field& field : shape.fields) {
    if (field.name != "profiles" && field.name != "extends" && field.name != "version")
      roots.push_back(field.name);
  }
  for (const Override& change : overrides) {
    const std::string root = change.path.substr(0, change.path.find('.'));
    if (std::find(roots.begin(), roots.end(), root) == roots.end()) {
      throw UserError(change.place, unknown_name("field", root, roots));
    }
  }
}

/// What changes the document before it is expanded.
struct Changes {
  std::vector<Override> profile, settings;
};

std::vector<Arm> read_arms(const Json& document) {
  if (!document.contains("arms")) return {{"base", {}}};
  if (document.at("arms").empty())
    throw UserError("arms", "got {}, needs at least one arm, or no \"arms\" at all");
  std::vector<Arm> arms;
  for (const auto& [name, overrides] : document.at("arms").items()) {
    if (name.empty() || name.find_first_of("\n\r\t") != std::string::npos) {
      throw UserError("arms", "got the name " + Json(name).dump() + ", needs a non-empty name on one line");
    }
    arms.push_back({name, kept(read_overrides(overrides, join_path("arms", name)))});
    check_roots(arms.back().overrides, config_shape());
  }
  return arms;
}

std::vector<SweepAxis> read_axes(const Json& document, std::span<const Arm> arms, const Changes& changes) {
  std::vector<SweepAxis> axes;
  if (document.contains("sweep")) {
    if (document.at("sweep").empty())
      throw UserError("sweep", "got {}, needs at least one path, or no \"sweep\" at all");
    axes = read_sweep(document.at("sweep"));
  }
  for (const SweepAxis& axis : axes) check_roots(axis.steps.front(), config_shape());
  if (document.contains("tune")) read_tune_ranges(document.at("tune"), document, axes);
  for (const Arm& arm : arms) check_not_swept(arm.overrides, axes);
  check_not_swept(changes.profile, axes);
  check_settings(changes.settings, arms, axes);
  return axes;
}

/// The points of every arm: the grid, or where a crossing is searched the values placed at each of its
/// points.
std::vector<std::vector<std::vector<Override>>> placed_points(const std::vector<SweepAxis>& axes,
                                                              const CrossingSearch& crossing,
                                                              std::size_t arms) {
  const std::vector<SweepAxis> others(axes.begin(), axes.end() - 1);
  const std::size_t columns = count_points(others, static_cast<std::size_t>(kMaxCells));
  if (crossing.placed.size() != arms * columns)
    throw std::invalid_argument("points of other arms and columns than the scenario has");
  std::vector<std::vector<std::vector<Override>>> points(arms);
  for (std::size_t place = 0; place < crossing.placed.size(); ++place)
    for (const Json& value : crossing.placed[place]) {
      std::vector<Override> point = sweep_point(others, place % columns);
      point.push_back(searched_override(axes.back(), value));
      points[place / columns].push_back(std::move(point));
    }
  return points;
}

void expand_cells(const Json& document, const Json& resolved, const Changes& changes, Scenario& scenario) {
  const std::vector<Arm> arms = read_arms(resolved);
  const std::vector<SweepAxis> axes = read_axes(resolved, arms, changes);
  const Json& seeds = resolved.at("seeds");
  const std::size_t points = count_points(axes, static_cast<std::size_t>(kMaxCells));
  const double settings = static_cast<double>(arms.size()) * static_cast<double>(points);
  const double count = settings * seeds.at("count").get<double>();
  if (count > kMaxCells) {
    throw UserError(settings > kMaxCells ? "sweep" : "seeds.count",
                    fmt::format("asks for {:.0f} cells or more (arms × points × seeds), needs at most {:.0f}",
                                count, kMaxCells));
  }
  scenario.arms.clear();
  scenario.sweep_paths.clear();
  scenario.cells.clear();
  for (const Arm& arm : arms) scenario.arms.push_back(arm.name);
  for (const SweepAxis& axis : axes) {
    scenario.sweep_paths.insert(scenario.sweep_paths.end(), axis.paths.begin(), axis.paths.end());
  }
  Json base = Json::object();
  for (const Field& field : config_shape().fields) {
    if (document.contains(field.name)) base[field.name] = document.at(field.name);
  }
  scenario.cells.reserve(static_cast<std::size_t>(count));
  CellExpansion expansion(base, seeds);
  if (!axes.empty() && !axes.back().crossing.is_null()) {
    CrossingSearch crossing = CrossingSearch::read(axes.back().paths.front(), axes.back().crossing, resolved);
    if (scenario.crossing) crossing.placed = scenario.crossing->placed;
    if (crossing.placed.empty()) {
      crossing.placed.assign(arms.size() * points / 2,
                             {CrossingSearch::value(crossing.low), CrossingSearch::value(crossing.high)});
    }
    scenario.crossing = std::move(crossing);
    const auto placed = placed_points(axes, *scenario.crossing, arms.size());
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      expansion.add_cells(
          arms[arm], placed[arm].size(), [&](std::size_t i) { return placed[arm][i]; }, scenario.cells);
    return;
  }
  for (const Arm& arm : arms)
    expansion.add_cells(
        arm, points, [&](std::size_t i) { return sweep_point(axes, i); }, scenario.cells);
}

/// The document resolved; null where its fields or values are not right, whatever its cells are.
Json resolved_if_right(const Json& document) {
  try {
    return resolve(scenario_shape(), document, "");
  } catch (const InvalidOption&) {
    return nullptr;
  }
}

/// The document as it stands and by each of its profiles, resolved. Profiles that are not chosen have right
/// paths and values, too; `validate` alone looks at their cells. `document` may be one that only settings
/// make right: then nothing can be said.
std::vector<Json> checked_variants(const Json& document, const std::string& chosen) {
  std::vector<Json> variants;
  const Json plain = resolved_if_right(document);
  if (!plain.is_null()) variants.push_back(plain);
  const Json profiles = document.value("profiles", Json::object());
  for (const auto& [name, overrides] : profiles.items()) {
    const std::string place = join_path("profiles", name);
    check_name(name, place);
    const std::vector<Override> changes = kept(read_overrides(overrides, place));
    check_roots(changes, scenario_shape());
    if (name == chosen || plain.is_null()) continue;
    Json changed = document;
    apply_overrides(scenario_shape(), changes, changed);
    try {
      variants.push_back(resolve(scenario_shape(), changed, ""));
    } catch (const InvalidOption& error) {
      throw at_override(error, scenario_shape(), changes, changed);
    }
  }
  return variants;
}

/// The resolved document.
Json expand(const Json& document, const Changes& changes, Scenario& scenario) {
  check_zip(document);
  Json resolved = resolve(scenario_shape(), document, "");
  scenario.name = resolved.at("name");
  check_name(scenario.name, "name");
  scenario.title = resolved.value("title", "");
  scenario.source = resolved.value("source", "");
  expand_cells(document, resolved, changes, scenario);
  const ExpandedClaims expanded = expand_claims(resolved.at("claims"));
  scenario.claims = expanded.claims;
  scenario.figures = resolved.at("figures");
  check_crossing(scenario);
  try {
    check_claims(scenario);
  } catch (const InvalidOption& error) {
    throw UserError(expanded.path_in_scenario(error.path()), error.message());
  }
  check_figures(scenario);
  check_separation(scenario);
  check_files(scenario);
  return resolved;
}

}  // namespace

Scenario load_scenario(const std::filesystem::path& file, const std::string& profile,
                       const std::vector<std::string>& settings) {
  const ScenarioFile read = read_scenario_file(file);
  try {
    Scenario scenario = expand_scenario(read.document, profile, settings);
    scenario.files = read.files;
    return scenario;
  } catch (const InvalidOption& error) {
    throw at_file(error, read);
  }
}

Scenario expand_scenario(const Json& document, const std::string& profile,
                         const std::vector<std::string>& settings) {
  if (!document.is_object())
    throw UserError("", "got " + abbreviated(document) + ", needs a scenario: an object");
  check_version(document, "version");
  if (document.contains("extends"))
    throw UserError("extends", "is for files: only they know what it is relative to");
  const Changes changes = {profile_overrides(document, profile), kept(read_settings(settings))};
  check_roots(changes.profile, scenario_shape());
  check_roots(changes.settings, scenario_shape());

  Scenario scenario;
  scenario.profile = profile;
  scenario.document = document;
  apply_overrides(scenario_shape(), changes.profile, scenario.document);
  apply_overrides(scenario_shape(), changes.settings, scenario.document);
  Json resolved;
  try {
    resolved = expand(scenario.document, changes, scenario);
  } catch (const InvalidOption& error) {
    std::vector<Override> overrides = changes.profile;
    overrides.insert(overrides.end(), changes.settings.begin(), changes.settings.end());
    throw at_override(error, scenario_shape(), overrides, scenario.document);
  }
  std::vector<Json> variants = checked_variants(document, profile);
  variants.push_back(std::move(resolved));
  check_labels(variants);
  return scenario;
}

void keep_placed(Scenario& scenario, std::vector<std::vector<Json>> placed) {
  scenario.crossing->placed = std::move(placed);
  expand_cells(scenario.document, resolve(scenario_shape(), scenario.document, ""), {}, scenario);
}

void keep_decided(Scenario& scenario, Json decided) {
  scenario.decided = std::move(decided);
  if (scenario.decided.is_null()) return;
  const std::vector<int> seeds = scenario.decided.at("seeds").get<std::vector<int>>();
  std::size_t place = 0;
  bool has_all = true;
  std::vector<Cell> kept;
  for (Cell& cell : scenario.cells) {
    place += cell.seed == 0 ? 1 : 0;
    has_all &= place <= seeds.size();
    if (has_all && cell.seed < seeds[place - 1]) kept.push_back(std::move(cell));
  }
  if (!has_all || place != seeds.size())
    throw std::invalid_argument("seeds of other arms and points than the scenario has");
  scenario.cells = std::move(kept);
}

}  // namespace moelab
