#include "app/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/rates.h"
#include "app/scenario/arms.h"
#include "app/scenario/cells.h"
#include "app/scenario/checks.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"
#include "sim/train/experiment.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Whether `given` names a kind that differs from the kind of `base`.
bool names_another_kind(const Json& base, const Json& given, const Shape* shape) {
  if (shape == nullptr || shape->type != Shape::Type::variant || !given.contains(shape->tag)) return false;
  const Json& kind = given.at(shape->tag);
  return base.is_object() ? base.value(shape->tag, Json()) != kind : base != kind;
}

/// Converts the fields of `given` at `path` to overrides of `base`.
void add_overrides(const Json& document, const Json& base, const std::string& path, const Json& given,
                   std::vector<Override>& overrides) {
  for (const auto& [key, value] : given.items()) {
    const std::string here = join_path(path, key);
    const Json known = base.is_object() ? base.value(key, Json()) : Json();
    if (!value.is_object() ||
        names_another_kind(known, value, find_shape(scenario_shape(), document, here))) {
      overrides.push_back({here, value, here, ""});
    } else {
      add_overrides(document, known, here, value, overrides);
    }
  }
}

bool is_map(const std::string& key) {
  const std::vector<Field>& fields = scenario_shape().fields;
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.name == key && field.shape.type == Shape::Type::map;
  });
}

/// Rejects a null for an entry that does not exist.
[[noreturn]] void refuse_to_remove(const std::string& place, const std::string& name, const Json& known) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : known.items()) names.push_back(key);
  throw UserError(place, "got null, which takes an entry of the extended scenario away: " +
                             unknown_name("entry", name, names));
}

void extend(Json& document, const Json& given) {
  Json fields = given;
  fields.erase("extends");
  for (const auto& [key, entries] : given.items()) {
    if (!is_map(key) || !entries.is_object()) continue;
    fields.erase(key);
    Json& known = document[key];
    if (!known.is_object()) known = Json::object();
    for (const auto& [name, entry] : entries.items()) {
      if (entry.is_null()) {
        if (!known.contains(name)) refuse_to_remove(join_path(key, name), name, known);
        known.erase(name);
      } else {
        known[name] = entry;
      }
    }
  }
  std::vector<Override> overrides;
  add_overrides(document, document, "", fields, overrides);
  apply_overrides(scenario_shape(), overrides, document);
}

/// The scenario in the folder of `file` whose name without its end is nearest; empty if none is near.
std::string nearest_file(const fs::path& file) {
  const fs::path folder = file.parent_path();
  std::vector<std::string> others;
  try {
    for (const fs::path& other : entries_of(folder.empty() ? "." : folder))
      if (other.extension() == ".json") others.push_back(other.stem().string());
  } catch (const EnvironmentError&) {
    return "";
  }
  const std::string nearest = nearest_name(file.stem().string(), others);
  return nearest.empty() ? "" : nearest + ".json";
}

/// The path of the file that `file` extends. Errors are at `place`.
fs::path extended_file(const fs::path& file, const Json& document, const std::string& place) {
  const Json& given = document.at("extends");
  if (!given.is_string() || given.get_ref<const std::string&>().empty()) {
    throw UserError(place, "got " + abbreviated(given) + ", needs the path of a scenario file");
  }
  const fs::path extended = (file.parent_path() / given.get<std::string>()).lexically_normal();
  if (fs::is_regular_file(extended)) return extended;
  const std::string nearest = nearest_file(extended);
  throw UserError(place,
                  fmt::format("got {}, but there is no file {}{}", abbreviated(given), extended.string(),
                              nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

/// The paths of the data's fields that name files.
std::vector<std::string> file_paths(const std::string& generator) {
  std::vector<std::string> paths;
  for (const GeneratorKind& kind : GeneratorAxis::table()) {
    if (kind.name != generator) continue;
    for (const std::string& field : kind.file_fields) paths.push_back(join_path("data", field));
  }
  return paths;
}

/// Changes a name of a file.
using FileChange = std::function<fs::path(const fs::path&)>;

/// Changes relative names of files. `value` is a name, a list of them, or swept "values".
void place_names(const FileChange& change, Json& value) {
  if (value.is_array())
    for (Json& element : value) place_names(change, element);
  if (value.is_object() && value.contains("values")) place_names(change, value.at("values"));
  if (!value.is_string()) return;
  const fs::path name = value.get<std::string>();
  if (!name.empty() && name.is_relative()) value = change(name).lexically_normal().string();
}

/// Does so for the values at `paths` below `part`, the value at `path`. Keys may be dotted paths.
void place_files(const FileChange& change, const std::vector<std::string>& paths, const std::string& path,
                 Json& part) {
  if (std::find(paths.begin(), paths.end(), path) != paths.end()) return place_names(change, part);
  if (!part.is_object()) return;
  for (auto member = part.begin(); member != part.end(); ++member)
    place_files(change, paths, join_path(path, member.key()), member.value());
}

/// Does so in a scenario's data, arms, sweep, phases, evaluations and profiles.
void place_files(const FileChange& change, const std::string& generator, Json& document) {
  const std::vector<std::string> paths = file_paths(generator);
  if (paths.empty()) return;
  place_files(change, paths, "", document);
  for (const char* name : {"arms", "phases", "evaluations", "profiles"}) {
    if (!document.contains(name) || !document.at(name).is_structured()) continue;
    for (Json& part : document.at(name)) {
      place_files(change, paths, "", part);
      if (part.is_object() && part.contains("set")) place_files(change, paths, "", part.at("set"));
    }
  }
  if (!document.contains("sweep")) return;
  place_files(change, paths, "", document.at("sweep"));
  if (document.at("sweep").is_object() && document.at("sweep").contains("zip"))
    place_files(change, paths, "", document.at("sweep").at("zip"));
}

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

/// The dotted paths of the fields of a value of this shape, at most four keys long.
std::vector<std::string> paths_below(const Shape& shape, const Json& value, const std::string& above = "") {
  constexpr std::ptrdiff_t kMostDots = 3;
  std::vector<std::string> paths;
  visit_parts(shape, value, [&](const ShapePart& part) {
    if (!part.field && !part.is_tag) return;
    const std::string path = join_path(above, part.key);
    if (!above.empty()) paths.push_back(path);
    if (part.is_tag || std::count(path.begin(), path.end(), '.') >= kMostDots) return;
    const std::vector<std::string> below = paths_below(*part.shape, *part.value, path);
    paths.insert(paths.end(), below.begin(), below.end());
  });
  return paths;
}

/// Checks that each override's path starts with a field of `shape`. `document` is the scenario, whose kinds
/// have the fields that messages suggest.
void check_roots(std::span<const Override> overrides, const Shape& shape, const Json& document) {
  std::vector<std::string> roots;
  for (const Field& field : shape.fields) {
    if (field.name != "profiles" && field.name != "extends" && field.name != "version")
      roots.push_back(field.name);
  }
  ErrorList errors;
  for (const Override& change : overrides) {
    const std::string root = change.path.substr(0, change.path.find('.'));
    if (std::find(roots.begin(), roots.end(), root) != roots.end()) continue;
    // A path of one key may be the end of a path: weight_decay of train.weight_decay.
    std::vector<std::string> allowed = roots;
    if (root == change.path) {
      const std::vector<std::string> paths = paths_below(shape, document);
      allowed.insert(allowed.end(), paths.begin(), paths.end());
    }
    const std::string nearest = nearest_name(root, allowed), message = unknown_name("field", root, roots);
    const bool is_path = nearest.find('.') != std::string::npos;
    errors.add(UserError(change.place, is_path
                                           ? fmt::format("unknown field '{}'; did you mean '{}'? A{}", root,
                                                         nearest, message.substr(message.find("llowed: ")))
                                           : message));
  }
  errors.throw_any();
}

/// The overrides that are applied before the document is expanded.
struct Changes {
  std::vector<Override> profile, settings;
};

std::vector<Arm> read_arms(const Json& document) {
  if (!document.contains("arms")) return {{"base", {}}};
  if (document.at("arms").empty())
    throw UserError("arms", "got {}, needs at least one arm, or no \"arms\" at all");
  std::vector<Arm> arms;
  ErrorList errors;
  for (const WrittenArm& arm : written_arms(document.at("arms"))) {
    if (arm.name.empty() || arm.name.find_first_of("\n\r\t") != std::string::npos) {
      throw UserError("arms",
                      "got the name " + Json(arm.name).dump() + ", needs a non-empty name on one line");
    }
    errors.check([&] {
      arms.push_back({arm.name, kept(read_overrides(arm.overrides, arm.place))});
      check_roots(arms.back().overrides, config_shape(), document);
    });
  }
  errors.throw_any();
  return arms;
}

std::vector<std::string> arm_names_of(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name);
  return names;
}

std::vector<SweepAxis> read_axes(const Json& document, const std::vector<Arm>& arms, const Changes& changes,
                                 std::vector<TuneRange>& tune) {
  std::vector<SweepAxis> axes;
  if (document.contains("sweep")) {
    if (document.at("sweep").empty())
      throw UserError("sweep", "got {}, needs at least one path, or no \"sweep\" at all");
    axes = read_sweep(document.at("sweep"));
  }
  std::vector<SweepAxis> of_all;
  for (SweepAxis& axis : axes) {
    check_roots(axis.steps.front(), config_shape(), document);
    if (axis.arms.is_null())
      of_all.push_back(axis);
    else
      axis.arms = matching_arms(axis.arms, arm_names_of(arms),
                                join_path(join_path("sweep", axis.paths.front()), "arms"));
  }
  if (document.contains("tune")) tune = read_tune_ranges(document.at("tune"), document, axes);
  for (const Arm& arm : arms) check_not_swept(arm.overrides, axes_of_arm(axes, arm.name));
  check_not_swept(changes.profile, of_all);
  check_settings(changes.settings, arms, axes);
  return axes;
}

/// The points of every arm. A grid has the same points for all arms. A crossing search has the values placed
/// at each grid point.
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

std::string parent_of(const std::string& path) {
  const std::size_t end = path.find_last_of(".[");
  return end == std::string::npos ? path : path.substr(0, end);
}

/// Adds the errors of an arm at each step of each axis. The other axes stay at their first step, so the
/// number of points is the sum of the axes' lengths.
void check_each_step(const CellExpansion& expansion, const Arm& arm, const std::vector<SweepAxis>& axes,
                     ErrorList& errors) {
  constexpr std::size_t kMostSteps = 200;  // of an axis; a wrong value seldom stands behind so many
  std::size_t stride = count_points(axes, static_cast<std::size_t>(kMaxCells));
  for (const SweepAxis& axis : axes) {
    stride /= axis.steps.size();
    for (std::size_t step = 0; step < std::min(axis.steps.size(), kMostSteps); ++step) {
      ErrorList found;
      found.check([&] { expansion.check_point(arm, sweep_point(axes, step * stride)); });
      for (const ScenarioError& error : found.all()) {
        // A path that is wrong whatever its value is told once.
        const bool is_told =
            std::any_of(errors.all().begin(), errors.all().end(), [&](const ScenarioError& other) {
              return error.message().starts_with("makes ") && error.message() == other.message() &&
                     parent_of(error.path()) == parent_of(other.path());
            });
        if (!is_told) errors.add(error);
      }
    }
  }
}

void expand_cells(const Json& document, const Json& resolved, const Changes& changes, Scenario& scenario) {
  const std::vector<Arm> arms = read_arms(resolved);
  const std::vector<SweepAxis> axes = read_axes(resolved, arms, changes, scenario.tune);
  const SeedFields seeds = read_options<SeedFields>(resolved.at("seeds"));
  double settings = 0;  // arms × points
  for (const Arm& arm : arms)
    settings +=
        static_cast<double>(count_points(axes_of_arm(axes, arm.name), static_cast<std::size_t>(kMaxCells)));
  const double count = settings * static_cast<double>(seeds.count);
  if (count > kMaxCells) {
    throw UserError(settings > kMaxCells ? "sweep" : "seeds.count",
                    fmt::format("asks for {:.0f} cells or more (arms × points × seeds), needs at most {:.0f}",
                                count, kMaxCells));
  }
  scenario.sweep_paths.clear();
  scenario.cells.clear();
  scenario.arms = arm_names_of(arms);
  scenario.arm_overrides = arms;
  for (const SweepAxis& axis : axes) {
    scenario.sweep_paths.insert(scenario.sweep_paths.end(), axis.paths.begin(), axis.paths.end());
  }
  Json base = Json::object();
  for (const Field& field : config_shape().fields) {
    if (document.contains(field.name)) base[field.name] = document.at(field.name);
  }
  scenario.cells.reserve(static_cast<std::size_t>(count));
  CellExpansion expansion(base, seeds);
  ErrorList errors;
  if (!axes.empty() && !axes.back().crossing.is_null()) {
    CrossingSearch crossing = CrossingSearch::read(axes.back().paths.front(), axes.back().crossing, resolved);
    if (scenario.crossing) crossing.placed = scenario.crossing->placed;
    if (crossing.placed.empty()) {
      crossing.placed.assign(static_cast<std::size_t>(settings) / 2,
                             {CrossingSearch::value(crossing.low), CrossingSearch::value(crossing.high)});
    }
    scenario.crossing = std::move(crossing);
    const auto placed = placed_points(axes, *scenario.crossing, arms.size());
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      errors.check([&] {
        expansion.add_cells(
            arms[arm], placed[arm].size(), [&](std::size_t i) { return placed[arm][i]; }, scenario.cells);
      });
    return errors.throw_any();
  }
  for (const Arm& arm : arms) {
    const std::vector<SweepAxis> own = axes_of_arm(axes, arm.name);
    const bool is_right = errors.check([&] {
      expansion.add_cells(
          arm, count_points(own, static_cast<std::size_t>(kMaxCells)),
          [&](std::size_t i) { return sweep_point(own, i); }, scenario.cells);
    });
    if (!is_right) check_each_step(expansion, arm, own, errors);
  }
  errors.throw_any();
}

/// The resolved document; null if a field or value is wrong. Does not check cells.
Json resolved_if_right(const Json& document) {
  try {
    return resolve(scenario_shape(), document, "");
  } catch (const InvalidOption&) {
    return nullptr;
  }
}

/// Applies `told` to each error.
template <class Told>
ScenarioErrors each_error(const InvalidOption& errors, const Told& told) {
  std::vector<ScenarioError> all;
  for (const ScenarioError& error : errors_of(errors)) all.emplace_back(told(error));
  return ScenarioErrors(std::move(all));
}

/// The parts of a resolved document that check_labels() reads.
Json labelled_parts(const Json& resolved) {
  Json parts = Json::object();
  for (const char* name : {"arms", "sweep", "labels"})
    if (resolved.contains(name)) parts[name] = resolved.at(name);
  return parts;
}

/// The labelled parts of the plain scenario and of each profile. Checks the paths and values of all
/// profiles; only `validate` checks the cells of unchosen profiles. Returns nothing if `document` is valid
/// only with command-line settings.
std::vector<Json> checked_variants(const Json& document, const std::string& chosen) {
  std::vector<Json> variants;
  const Json plain = resolved_if_right(document);
  if (!plain.is_null()) variants.push_back(labelled_parts(plain));
  const Json profiles = document.value("profiles", Json::object());
  Json without_profiles = document;
  without_profiles.erase("profiles");
  ErrorList errors;
  const auto add_variant = [&](const std::string& name, const Json& overrides) {
    const std::string place = join_path("profiles", name);
    check_name(name, place);
    const std::vector<Override> changes = kept(read_overrides(overrides, place));
    check_roots(changes, scenario_shape(), document);
    if (name == chosen || plain.is_null()) return;
    Json changed = without_profiles;
    apply_overrides(scenario_shape(), changes, changed);
    try {
      variants.push_back(labelled_parts(resolve(scenario_shape(), changed, "")));
    } catch (const InvalidOption& found) {
      throw each_error(found, [&](const InvalidOption& error) {
        return at_override(error, scenario_shape(), changes, changed);
      });
    }
  };
  for (const auto& profile : profiles.items())
    if (profile.value().is_object()) errors.check([&] { add_variant(profile.key(), profile.value()); });
  errors.throw_any();
  return variants;
}

/// The figures with names of arms in place of patterns.
Json with_matching_arms(Json figures, const std::vector<std::string>& arms) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (!figures[i].contains("arms")) continue;
    Json& list = figures[i].at("arms");
    const bool has_pattern = std::any_of(list.begin(), list.end(), [](const Json& name) {
      return name.get_ref<const std::string&>().find('*') != std::string::npos;
    });
    if (has_pattern) list = matching_arms(list, arms, join_path(join_path("figures", i), "arms"));
  }
  return figures;
}

/// Expands the document into `scenario` and returns the resolved document.
Json expand(const Json& document, const Changes& changes, Scenario& scenario) {
  check_zip(document);
  Json resolved = resolve(scenario_shape(), document, "");
  const ScenarioFields fields = read_options<ScenarioFields>(resolved);
  ErrorList outside_claims;
  scenario.name = fields.name;
  outside_claims.check([&] { check_name(scenario.name, "name"); });
  scenario.title = fields.title;
  scenario.source = fields.source;
  outside_claims.check([&] { expand_cells(document, resolved, changes, scenario); });
  outside_claims.throw_any();
  const ExpandedClaims expanded = expand_claims(resolved.at("claims"), scenario.arms);
  scenario.written_claims = expanded.claims;
  scenario.written_figures = with_matching_arms(resolved.at("figures"), scenario.arms);
  const auto in_own_list = [&](const InvalidOption& error) {
    return UserError(expanded.path_in_scenario(error.path()), error.message());
  };
  try {
    scenario.read_document();
    ErrorList errors;
    errors.check([&] { check_crossing(scenario); });
    errors.check([&] { check_objective(scenario); });
    check_claims(scenario, errors);
    errors.check([&] { check_figures(scenario); });
    errors.check([&] { check_separation(scenario); });
    errors.check([&] { check_files(scenario); });
    errors.throw_any();
  } catch (const InvalidOption& errors) {
    throw each_error(errors, in_own_list);
  }
  return resolved;
}

/// Corrects the value at a path, whose keys may contain dots. A misspelt part `unknown` of the key, or a
/// misspelt name, becomes `nearest`. A number, or a value in the place of one (`needs_number`), becomes a
/// number that most fields take. Any other value is removed, with its list if that gets empty. Returns
/// whether the document has the value.
bool correct(Json& value, std::string path, const std::string& unknown, const std::string& nearest,
             bool needs_number) {
  constexpr int kTypicalNumber = 2;
  if (path.starts_with('.')) path.erase(0, 1);
  std::size_t index = 0, length = 0;
  if (value.is_array() && path.starts_with('[')) {
    const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
    if (error != std::errc() || index >= value.size()) return false;
    length = static_cast<std::size_t>(end - path.data()) + 1;
    if (length < path.size())
      return correct(value[index], path.substr(length), unknown, nearest, needs_number);
    if (nearest.empty() || !unknown.empty() || !value[index].is_string())
      value.erase(index);
    else
      value[index] = nearest;
    return true;
  }
  if (!value.is_object()) return false;
  for (auto member = value.begin(); member != value.end(); ++member) {
    const std::string key = member.key();
    if (!is_within(path, key)) continue;
    if (key.size() < path.size()) {
      if (!correct(member.value(), path.substr(key.size()), unknown, nearest, needs_number)) continue;
      if (member.value() == Json::array()) value.erase(key);  // an empty list may be an error of its own
      return true;
    }
    const Json given = member.value();
    if (unknown.empty() && !nearest.empty() && given.is_string()) {
      member.value() = nearest;
      return true;
    }
    if (unknown.empty() && (given.is_number() || needs_number) && given != kTypicalNumber) {
      member.value() = kTypicalNumber;
      return true;
    }
    value.erase(key);
    const std::size_t part = unknown.empty() ? std::string::npos : key.find(unknown);
    if (part == std::string::npos || nearest.empty()) return true;
    const std::string corrected = key.substr(0, part) + nearest + key.substr(part + unknown.size());
    if (!value.contains(corrected)) value[corrected] = given;
    return true;
  }
  return false;
}

/// Writes a small value for a missing field. Returns whether the document has a place for it.
bool fill_in(Json& document, const std::string& path) {
  const Shape* const shape = find_shape(scenario_shape(), document, path);
  const std::size_t dot = path.rfind('.');
  const Json* const parent = dot == std::string::npos ? &document : find_value(document, path.substr(0, dot));
  if (shape == nullptr || parent == nullptr || !parent->is_object() || find_value(document, path))
    return false;
  const std::vector<Override> filled = {{path, small_value(*shape), path, ""}};
  apply_overrides(scenario_shape(), filled, document);
  return true;
}

/// Whether the path is in a section that no cell depends on.
bool is_in_study(const std::string& path) {
  for (const char* section : {"claims", "figures", "objective", "metrics", "seeds", "profiles", "labels"})
    if (is_within(path, section)) return true;
  return false;
}

/// Whether the error of a corrected document says something new, whatever the corrections were. It stands
/// apart from the corrected values, and a reader would make the same corrections, or it is an error of names.
bool is_new_error(const ScenarioError& error, const std::vector<ScenarioError>& before) {
  const std::string& path = error.path();
  const auto nearest_of = [](const ScenarioError& other) {
    const Json nearest = error_json(other).at("nearest");
    return nearest.is_string() ? nearest.get<std::string>() : std::string();
  };
  // A misspelt name leaves its neighbours as they are. Its own key may have become another one.
  const bool is_apart = std::none_of(before.begin(), before.end(), [&](const ScenarioError& other) {
    const std::string parent = parent_of(other.path()), nearest = nearest_of(other);
    const bool is_beside = is_within(path, parent) && !is_within(path, other.path());
    return is_within(other.path(), path) ||
           (is_within(path, parent) &&
            (nearest.empty() || !is_beside || is_within(path, join_path(parent, nearest))));
  });
  // A correction may have removed the arm, the swept path or the claim.
  const std::string& message = error.message();
  const auto is_in_template = [](const std::string& place) {
    return is_within(place, "arms") &&
           (place.find(".for") != std::string::npos || place.find(".set") != std::string::npos);
  };
  constexpr std::string_view kSwept = "swept path '";
  const std::size_t at = message.find(kSwept);
  const std::string swept =
      at == std::string::npos
          ? ""
          : message.substr(at + kSwept.size(), message.find('\'', at + kSwept.size()) - at - kSwept.size());
  const bool is_of_removed = std::any_of(before.begin(), before.end(), [&](const ScenarioError& other) {
    return (is_in_template(other.path()) && message.starts_with("unknown arm ")) ||
           (is_within(other.path(), "sweep") && !swept.empty() &&
            (error_json(other).at("nearest").is_null() || other.path().find(swept) != std::string::npos)) ||
           (is_within(other.path(), "claims") && message.starts_with("unknown claim ")) ||
           (is_within(other.path(), "metrics") &&
            message.find("which \"metrics\" leaves out") != std::string::npos) ||
           message.starts_with("unknown arm '" + other.path().substr(other.path().find('.') + 1) + "'");
  });
  if (!is_apart || is_of_removed) return false;
  const bool is_value = is_within(path, "arms") || is_within(path, "sweep");
  const bool is_own = is_within(path, "claims") || is_within(path, "figures");
  const auto is_as_read = [&](const ScenarioError& other) {
    return is_in_study(other.path()) || !nearest_of(other).empty();
  };
  const bool is_corrected_as_read = std::all_of(before.begin(), before.end(), is_as_read);
  // The names of a section were misspelt alone, so its values are judged as a reader would correct it.
  const std::string section = path.substr(0, path.find_first_of(".["));
  const bool is_section_as_read = std::all_of(before.begin(), before.end(), [&](const ScenarioError& other) {
    return !is_within(other.path(), section) || is_as_read(other);
  });
  return is_corrected_as_read || (is_section_as_read && message.starts_with("got ")) || path == "name" ||
         message.starts_with("unknown ") || (is_value && message.starts_with("got ")) ||
         (is_own && (message.starts_with("missing") || message.find("a second time") != std::string::npos));
}

/// The claims and figures of a corrected document: those that cannot be corrected are set aside.
class KeptEntries {
 public:
  explicit KeptEntries(Json& document) : document_(document) {
    for (const char* list : {"claims", "figures"}) {
      if (!document.is_object() || !document.contains(list) || !document.at(list).is_array()) continue;
      std::vector<std::size_t>& places = places_[list];
      for (std::size_t i = 0; i < document.at(list).size(); ++i) places.push_back(i);
    }
  }
  /// The path in the uncorrected document.
  std::string path_before(const std::string& path) const {
    const auto [list, i] = entry_of(path);
    if (list.empty()) return path;
    const std::string entry = join_path(list, i);
    return join_path(list, places_.at(list)[i]) + path.substr(entry.size());
  }
  /// Whether the path is in an entry, which set_aside() then removes.
  bool mark(const std::string& path) {
    const auto [list, i] = entry_of(path);
    if (!list.empty()) marked_.emplace(list, i);
    return !list.empty();
  }
  void set_aside() {
    for (auto entry = marked_.rbegin(); entry != marked_.rend(); ++entry) {
      const auto& [list, i] = *entry;
      document_.at(list).erase(i);
      places_.at(list).erase(places_.at(list).begin() + static_cast<std::ptrdiff_t>(i));
    }
    marked_.clear();
  }

 private:
  /// The list and the index of a path such as claims[2].left; no list for other paths.
  std::pair<std::string, std::size_t> entry_of(const std::string& path) const {
    for (const auto& [list, places] : places_)
      for (std::size_t i = 0; i < places.size(); ++i)
        if (is_within(path, join_path(list, i))) return {list, i};
    return {};
  }

  Json& document_;
  std::map<std::string, std::vector<std::size_t>> places_;
  std::set<std::pair<std::string, std::size_t>> marked_;
};

/// All errors of a document whose first are `first`. An error ends a stage of expand(); this function
/// corrects the value in the document and looks at the later stages.
ErrorList later_errors(const InvalidOption& first, Json& document, const Changes& changes) {
  constexpr int kMostRounds = 16;
  ErrorList errors;
  errors.add(first);
  std::vector<ScenarioError> found = errors.all();
  KeptEntries entries(document);
  bool has_name = false;
  for (int round = 0; round < kMostRounds; ++round) {
    bool is_changed = false;
    for (const ScenarioError& error : found) {
      if (error.path() == "name") {  // no other field depends on it
        is_changed |= !std::exchange(has_name, true);
        document["name"] = "name";
        continue;
      }
      const Json told = error_json(error);
      const auto text_of = [&](const char* key) {
        return told.at(key).is_string() ? told.at(key).get<std::string>() : std::string();
      };
      const bool is_key =
          error.message().starts_with("unknown key") || error.message().starts_with("unknown field");
      const std::string nearest = text_of("nearest");
      const bool needs_number = text_of("allowed").find("number") != std::string::npos;
      const bool is_missing = error.message().starts_with("missing; needs ");
      is_changed |= (!is_key && nearest.empty() && entries.mark(error.path())) ||
                    (is_missing && fill_in(document, error.path())) ||
                    correct(document, error.path(), is_key ? text_of("given") : "", nearest, needs_number) ||
                    entries.mark(error.path());
    }
    if (!is_changed) break;
    entries.set_aside();
    try {
      Scenario scenario;
      scenario.document = document;
      expand(document, changes, scenario);
      break;
    } catch (const InvalidOption& next) {
      const std::vector<ScenarioError> before = errors.all();
      found = errors_of(next);
      for (const ScenarioError& error : found) {
        const ScenarioError placed(UserError(entries.path_before(error.path()), error.message()));
        if (is_new_error(placed, before)) errors.add(placed);
      }
    }
  }
  return errors;
}

/// Applies the changes to the scenario's document, expands it, and returns the resolved document. If that
/// fails, `check_others` adds the errors that it finds in the corrected document.
Json expand_changed(const Changes& changes, const std::function<void(const Json&)>& check_others,
                    Scenario& scenario) {
  apply_overrides(scenario_shape(), changes.profile, scenario.document);
  apply_overrides(scenario_shape(), changes.settings, scenario.document);
  std::vector<Override> overrides = changes.profile;
  overrides.insert(overrides.end(), changes.settings.begin(), changes.settings.end());
  const auto at_place = [&](const InvalidOption& error) {
    return at_override(error, scenario_shape(), overrides, scenario.document);
  };
  try {
    return expand(scenario.document, changes, scenario);
  } catch (const InvalidOption& first) {
    ErrorList errors;
    Json corrected = scenario.document;
    errors.add(each_error(ScenarioErrors(later_errors(first, corrected, changes).all()), at_place));
    errors.check([&] { check_others(corrected); });
    errors.throw_any();
    throw;
  }
}

/// read_scenario_file(); the errors of duplicate keys go to `duplicates`.
ScenarioFile read_files(const fs::path& file, std::vector<UserError>& duplicates) {
  ScenarioFile read;
  std::error_code unseen;
  if (file != "-" && !fs::exists(file, unseen)) {
    if (const std::string nearest = nearest_file(file); !nearest.empty())
      throw UserError(file.string(), fmt::format("no such file; did you mean '{}'?",
                                                 (file.parent_path() / nearest).string()));
  }
  std::set<fs::path> earlier;
  for (fs::path next = file; !next.empty();) {
    std::string text;
    const Json own = read_json_file(next, &text, &duplicates);
    if (!own.is_object()) {
      throw UserError(read.files.empty() ? "" : next.string(),
                      "got " + abbreviated(own) + ", needs a scenario: an object");
    }
    const std::string before = read.files.empty() ? "" : next.string() + ": ";
    read.files.push_back(next.string());
    read.own_documents.push_back(own);
    read.texts.push_back(std::move(text));
    fs::path extended;
    try {
      check_version(own, before + "version");
      if (!own.contains("extends")) break;
      extended = extended_file(next, own, before + "extends");
    } catch (const InvalidOption& error) {
      throw at_file(error, read);
    }
    if (next != "-") earlier.insert(fs::canonical(next));
    if (earlier.contains(fs::canonical(extended))) {
      throw UserError(
          next.string() + ": extends",
          fmt::format("goes in a circle: {} → {}", fmt::join(read.files, " → "), extended.string()));
    }
    next = extended;
  }
  if (read.files.size() > 1 && !read.own_documents.front().contains("name")) {
    throw UserError("name", "missing: a scenario that extends another needs a name of its own");
  }
  std::string generator;
  for (std::size_t i = read.files.size(); i-- > 0;) {
    Json& own = read.own_documents[i];
    generator = moelab::value_at<std::string>(own, "data.generator").value_or(generator);
    const fs::path folder = fs::path(read.files[i]).parent_path();
    if (!folder.empty()) place_files([&](const fs::path& name) { return folder / name; }, generator, own);
  }
  read.document = read.own_documents.back();
  for (std::size_t i = read.files.size() - 1; i-- > 0;) {
    try {
      extend(read.document, read.own_documents[i]);
    } catch (const InvalidOption& error) {
      if (i == 0) throw;
      throw UserError(read.files[i] + ": " + error.path(), error.message());
    }
  }
  return read;
}

}  // namespace

ScenarioFile read_scenario_file(const fs::path& file) {
  std::vector<UserError> duplicates;
  ScenarioFile read = read_files(file, duplicates);
  if (!duplicates.empty()) throw UserError(duplicates.front());
  return read;
}

Json moved_to(const fs::path& folder, Json document) {
  const std::string generator = value_at<std::string>(document, "data.generator").value_or("");
  place_files([&](const fs::path& name) { return fs::proximate(name, folder.empty() ? "." : folder); },
              generator, document);
  return document;
}

ScenarioErrors at_file(const InvalidOption& errors, const ScenarioFile& file) {
  std::vector<ScenarioError> located;
  for (const ScenarioError& error : errors_of(errors)) {
    TextPlace best;
    std::size_t in = 0;
    for (std::size_t i = 0; i < file.texts.size(); ++i) {
      const TextPlace place = find_place(file.texts[i], error.path());
      if (place.found <= best.found) continue;
      best = place;
      in = i;
    }
    ScenarioError placed = error;
    if (in > 0)
      placed = UserError(error.path(), fmt::format("{} (written in {}:{}:{})", error.message(),
                                                   file.files[in], best.line, best.column));
    else
      placed.file = file.files.front();
    placed.line = best.line;
    placed.column = best.column;
    located.push_back(std::move(placed));
  }
  return ScenarioErrors(std::move(located));
}

void check_version(const Json& document, const std::string& place) {
  if (!document.is_object() || !document.contains("version")) return;
  const Json& version = document.at("version");
  if (version == kScenarioVersion) return;
  throw UserError(place, fmt::format("got {}, but this program reads version {} of the scenario format{}",
                                     abbreviated(version), kScenarioVersion,
                                     version.is_number_integer() && version > kScenarioVersion
                                         ? "; a newer one may read it"
                                         : ""));
}

Scenario load_scenario(const std::filesystem::path& file, const std::string& profile,
                       const std::vector<std::string>& settings) {
  std::vector<UserError> duplicates;
  const ScenarioFile read = read_files(file, duplicates);
  ErrorList errors;
  for (const UserError& duplicate : duplicates) errors.add(duplicate);
  Scenario scenario;
  errors.check([&] {
    try {
      scenario = expand_scenario(read.document, profile, settings);
    } catch (const InvalidOption& found) {
      throw at_file(found, read);
    }
  });
  if (!duplicates.empty()) {
    // A key that is there twice may stand for one that is missing.
    ErrorList without_missing;
    for (const ScenarioError& error : errors.all())
      if (!error.message().starts_with("missing")) without_missing.add(ScenarioErrors({error}));
    without_missing.throw_any();
  }
  errors.throw_any();
  scenario.files = read.files;
  return scenario;
}

Scenario expand_scenario(const Json& document, const std::string& profile,
                         const std::vector<std::string>& settings) {
  if (!document.is_object())
    throw UserError("", "got " + abbreviated(document) + ", needs a scenario: an object");
  check_version(document, "version");
  if (document.contains("extends"))
    throw UserError("extends", "is for files: only they know what it is relative to");
  const Changes changes = {profile_overrides(document, profile), kept(read_settings(settings))};
  check_roots(changes.profile, scenario_shape(), document);
  check_roots(changes.settings, scenario_shape(), document);

  Scenario scenario;
  scenario.profile = profile;
  scenario.document = document;
  const Json profiles = document.value("profiles", Json::object());
  for (const auto& [name, overrides] : profiles.items()) scenario.profiles.push_back(name);
  const auto check_others = [&](const Json& corrected) {
    const bool is_right = !resolved_if_right(document).is_null();
    checked_variants(is_right ? document : corrected, profile);
  };
  const Json resolved = expand_changed(changes, check_others, scenario);
  std::vector<Json> variants = checked_variants(document, profile);
  variants.push_back(labelled_parts(resolved));
  check_labels(variants);
  return scenario;
}

void check_cells_of_profiles(const ScenarioFile& file) {
  const Json profiles = file.document.value("profiles", Json::object());
  Json document = file.document;
  document.erase("profiles");
  ErrorList all;
  for (const auto& profile : profiles.items()) {
    try {
      Scenario scenario;
      scenario.document = document;
      const std::string place = join_path("profiles", profile.key());
      expand_changed(
          {kept(read_overrides(profile.value(), place)), {}}, [](const Json&) {}, scenario);
    } catch (const InvalidOption& errors) {
      for (ScenarioError error : errors_of(at_file(errors, file))) {
        const ScenarioError found = error;
        error =
            UserError(found.path(), fmt::format("{} (with --profile {})", found.message(), profile.key()));
        error.file = found.file;
        error.line = found.line;
        error.column = found.column;
        all.add(ScenarioErrors({error}));
      }
    }
  }
  all.throw_any();
}

void keep_placed(Scenario& scenario, std::vector<std::vector<Json>> placed) {
  scenario.crossing->placed = std::move(placed);
  expand_cells(scenario.document, resolve(scenario_shape(), scenario.document, ""), {}, scenario);
}

Json without_seed_count(Json document) {
  if (!document.is_object() || !document.contains("seeds") || !document.at("seeds").is_object())
    return document;
  document["seeds"].erase("count");
  if (document.at("seeds").empty()) document.erase("seeds");
  return document;
}

void PlanHead::read_document() {
  claims = read_claims(written_claims);
  figures.clear();
  notes.clear();
  labels.clear();
  shown_paths.clear();
  for (const Json& figure : written_figures) figures.push_back(read_options<FigureOptions>(figure));
  const auto at = [&](const char* path) {
    const Json* const found = find_value(document, path);
    return found ? *found : Json();
  };
  const Json given_notes = at("notes"), given_labels = at("labels"), sweep = at("sweep"),
             root = at("seeds.root"), given_task = at("loss.task");
  for (const Json& note : given_notes.is_string() ? Json::array({given_notes}) : given_notes)
    if (note.is_string()) notes.push_back(note.get<std::string>());
  for (const auto& [named, label] : given_labels.items())
    if (label.is_string()) labels[named] = label.get<std::string>();
  for (const auto& [path, values] : sweep.items()) {
    const bool is_zip = path == "zip" && values.is_object();
    if (!is_zip || !values.empty()) shown_paths.push_back(is_zip ? values.begin().key() : path);
  }
  if (root.is_number()) root_seed = static_cast<std::uint64_t>(root.get<double>());
  if (given_task.is_string()) task = given_task.get<std::string>();
  const Json given_objective = at("objective");
  objective.reset();
  if (const auto metric = given_objective.is_string() ? std::optional(given_objective.get<std::string>())
                                                      : value_at<std::string>(given_objective, "metric")) {
    objective = StudyObjective{*metric, {}};
    const std::string direction = value_at<std::string>(given_objective, "direction").value_or("");
    if (direction == "min") objective->direction = StudyObjective::Direction::min;
    if (direction == "max") objective->direction = StudyObjective::Direction::max;
  }
  for (Claim& claim : claims)
    if (claim.is_tuned) claim.tuned_by = main_metric(*this);
}

MainMetric main_choice(const PlanHead& plan) {
  MainMetric choice;
  if (plan.objective) {
    choice = {plan.objective->metric, false, "the scenario's objective"};
  } else {
    if (!plan.figures.empty()) {
      const std::vector<std::string> shown = metrics_of(plan.figures.front());
      const auto metric = std::find_if(shown.begin(), shown.end(), find_metric);
      if (metric != shown.end()) choice = {*metric, false, "the first figure's metric"};
    }
    if (choice.name.empty()) {
      const bool has_classes = task_loss_kind(plan.task).needs_classes;
      choice = {has_classes ? "test_loss_eval" : "test_nmse_top1", false,
                has_classes ? "the default for classes" : "the default"};
    }
  }
  const bool is_directed = plan.objective && plan.objective->direction;
  choice.is_maximized = is_directed ? *plan.objective->direction == StudyObjective::Direction::max
                                    : is_larger_better(choice.name);
  return choice;
}

std::string main_metric(const PlanHead& plan) {
  return main_choice(plan).name;
}

std::string main_metric_note(const PlanHead& plan) {
  if (plan.objective) return "";
  const MainMetric choice = main_choice(plan);
  return fmt::format("the scenario has no \"objective\"; took {}, {} ({} is best)", choice.name,
                     choice.reason, choice.is_maximized ? "the greatest" : "the least");
}

std::optional<DecidedSeeds> DecidedSeeds::of_plan(const Json& decided) {
  if (decided.is_null()) return std::nullopt;
  return DecidedSeeds{decided.at("fixed_seeds").get<int>(), decided.at("seeds").get<std::vector<int>>()};
}

Json DecidedSeeds::to_json() const {
  return {{"fixed_seeds", fixed_seeds}, {"seeds", seeds}};
}

void keep_decided(Scenario& scenario, std::optional<DecidedSeeds> decided) {
  scenario.decided = std::move(decided);
  if (!scenario.decided) return;
  const std::vector<int>& seeds = scenario.decided->seeds;
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
