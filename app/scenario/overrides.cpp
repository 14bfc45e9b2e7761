#include "app/scenario/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "app/scenario/arms.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The longest key of `object` that equals `path` or lies above it; empty if there is none.
std::string longest_key(const Json& object, const std::string& path) {
  std::string longest;
  if (!object.is_object()) return longest;
  for (const auto& [key, value] : object.items()) {
    if (key.size() > longest.size() && is_within(path, key)) longest = key;
  }
  return longest;
}

/// The value of `object` at `key`; null if there is none.
const Json& value_at(const Json& object, const std::string& key) {
  static const Json nothing;
  return object.is_object() && object.contains(key) ? object.at(key) : nothing;
}

/// Splits a path below "sweep" or "zip" into the swept path, and the index of a value or the field of a
/// range.
std::vector<std::string> split_swept_path(const std::string& path, const Json& lists) {
  const std::string swept = longest_key(lists, path);
  if (swept.empty() || swept == path) return {path};
  const Json& values = lists.at(swept);
  const std::string rest = path.substr(swept.size() + 1);
  if (values.is_array() && list_index(rest)) return {swept, rest};
  if (values.is_object() && values.contains(rest)) return {swept, rest};
  return {path};
}

/// Splits a dotted path into keys. Below "sweep" and below an arm's name, a dotted path is one key.
std::vector<std::string> split_path(const std::string& path, const Json& document) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return {path};
  const std::string root = path.substr(0, dot), rest = path.substr(dot + 1);
  const Json& part = value_at(document, root);
  std::vector<std::string> keys = {root};
  const auto add = [&](const std::vector<std::string>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  };
  if (root == "sweep" && rest.starts_with("zip.")) {
    keys.push_back("zip");
    return add(split_swept_path(rest.substr(4), value_at(part, "zip")));
  }
  if (root == "sweep") return add(split_swept_path(rest, part));
  if (root == "arms") {
    // Names of arms can contain dots. The longest matching name is used.
    const std::string first = rest.substr(0, rest.find('.')), known = longest_key(part, rest);
    const std::string& name = known.size() > first.size() ? known : first;
    if (name == rest) return add({name});
    return add({name, rest.substr(name.size() + 1)});
  }
  for (std::size_t start = dot + 1; start != std::string::npos + 1;) {
    const std::size_t end = path.find('.', start);
    keys.push_back(path.substr(start, end == std::string::npos ? end : end - start));
    start = end + 1;
  }
  return keys;
}

const Field* field_named(const std::vector<Field>& fields, const std::string& name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

/// The field `key` of a value of this shape; null if there is none, and for free keys.
const Field* find_field(const Shape& shape, const Json& value, const std::string& key) {
  if (shape.type == Shape::Type::object) return field_named(shape.fields, key);
  if (shape.type == Shape::Type::variant) {
    for (const Kind& kind : shape.kinds) {
      if (value.is_object() && value.contains(shape.tag) && is_text(value.at(shape.tag), kind.name)) {
        return field_named(kind.fields, key);
      }
    }
  }
  for (const Shape& alternative : shape.alternatives) {
    if (const Field* field = find_field(alternative, value, key)) return field;
  }
  return nullptr;
}

/// The shape of the entries of a possible list; null if the value cannot be a list.
const Shape* entry_shape(const Shape* shape) {
  if (shape == nullptr) return nullptr;
  if (shape->type == Shape::Type::list) return shape->element.get();
  for (const Shape& alternative : shape->alternatives) {
    if (const Shape* entry = entry_shape(&alternative)) return entry;
  }
  return nullptr;
}

/// Replaces a short form by its object, so that `key` can be set.
void expand_short_form(const Shape* shape, const std::string& key, Json& value) {
  if (value.is_null()) value = entry_shape(shape) && list_index(key) ? Json::array() : Json::object();
  if (shape == nullptr) return;
  if (shape->type == Shape::Type::variant && value.is_string()) {
    value = Json::object({{shape->tag, value}});
  } else if (shape->type == Shape::Type::either && value.is_number()) {
    for (const Shape& alternative : shape->alternatives) {
      if (alternative.type != Shape::Type::object || !field_named(alternative.fields, key)) continue;
      Json object = Json::object();
      for (const Field& field : alternative.fields) object[field.name] = value;
      value = std::move(object);
      return;
    }
  }
}

/// The list entry at index `key`. Throws UserError if there is none.
Json& list_entry(const std::string& key, const Override& change, Json& list) {
  const std::optional<std::size_t> index = list_index(key);
  if (index && *index < list.size()) return list[*index];
  std::string entries = "no entries";
  if (list.size() == 1) entries = "1 entry, 0";
  if (list.size() > 1) entries = fmt::format("{} entries, 0 … {}", list.size(), list.size() - 1);
  throw UserError(change.place, fmt::format("leads to entry '{}' of a list that has {}", key, entries));
}

/// Whether the shape is a map whose keys are dotted paths or names; its values have no fields.
bool has_whole_keys(const Shape& shape) {
  return shape.type == Shape::Type::map &&
         (shape.element->type == Shape::Type::any || shape.element->type == Shape::Type::text);
}

void assign(const Shape* shape, std::span<const std::string> keys, const Override& change, Json& target) {
  if (keys.empty()) {
    target = change.value;
    return;
  }
  const std::string& key = keys.front();
  expand_short_form(shape, key, target);
  if (target.is_array()) {
    assign(entry_shape(shape), keys.subspan(1), change, list_entry(key, change, target));
    return;
  }
  if (!target.is_object()) {
    throw UserError(change.place, "leads into " + abbreviated(target) + ", which has no field '" + key + "'");
  }
  if (shape && has_whole_keys(*shape)) {
    target[fmt::format("{}", fmt::join(keys, "."))] = change.value;
    return;
  }
  const Field* const field = shape == nullptr ? nullptr : find_field(*shape, target, key);
  if (keys.size() > 1 && field && field->default_value && !target.contains(key)) {
    target[key] = *field->default_value;
  }
  const Shape* below = field ? &field->shape : nullptr;
  if (shape && shape->type == Shape::Type::map) below = shape->element.get();
  assign(below, keys.subspan(1), change, target[key]);
}

/// The alternative field that a setting of this field replaces; empty for most fields.
std::string alternative_of(const std::string& path) {
  const std::string steps = "train.steps", epochs = "train.epochs";
  return path == steps ? epochs : path == epochs ? steps : "";
}

bool sets(std::span<const Override> overrides, const std::string& path) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const Override& change) { return change.path == path; });
}

/// Converts "figures[0].y" to "figures.0.y".
std::string dotted(std::string path) {
  std::replace(path.begin(), path.end(), '[', '.');
  path.erase(std::remove(path.begin(), path.end(), ']'), path.end());
  return path;
}

/// The remainder of `path` ("figures[0].y") below `ancestor` ("figures.0"): ".y".
std::string rest_after(const std::string& ancestor, const std::string& path) {
  std::size_t start = 0;
  while (start < path.size() && dotted(path.substr(0, start)) != dotted(ancestor)) ++start;
  if (start < path.size() && path[start] == ']') ++start;
  return path.substr(start);
}

/// Expands bounds to [low, 2 low, 4 low, …, high].
Json log2_range(const Json& bounds, const std::string& place) {
  const std::string needs = "needs [low, high], whole numbers with high = low · 2^k";
  if (!bounds.is_array()) throw UserError(place, "got " + abbreviated(bounds) + ", " + needs);
  if (bounds.size() != 2)
    throw UserError(place, "got " + std::to_string(bounds.size()) + " values, " + needs);
  const Shape bound = Shape::count(1);
  const std::int64_t low = resolve(bound, bounds[0], join_path(place, 0));
  const std::int64_t high = resolve(bound, bounds[1], join_path(place, 1));
  Json values = Json::array();
  std::int64_t value = low;
  for (; value < high; value *= 2) values.push_back(value);  // high ≤ 2^53, so doubling cannot overflow
  values.push_back(value);
  if (value != high) throw UserError(place, "got " + abbreviated(bounds) + ", " + needs);
  return values;
}

void check_distinct(const SweepAxis& axis, const std::string& place) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < axis.steps.size(); ++i) {
    Json values = Json::array();
    for (const Override& change : axis.steps[i]) values.push_back(change.value);
    if (seen.insert(canonical_text(values)).second) continue;
    throw UserError(join_path(place, i),
                    "got " + abbreviated(values[0]) + " a second time, needs distinct values");
  }
}

/// Checks an object of lists, by path.
void check_lists(const Json& lists, const std::string& place) {
  if (!lists.is_object() || lists.empty())
    throw UserError(place, "got " + abbreviated(lists) + ", needs an object {path: [values], …}");
  for (const auto& [path, values] : lists.items()) {
    if (values.is_array() && !values.empty()) continue;
    throw UserError(join_path(place, path),
                    "got " + abbreviated(values) + ", needs a list of at least one value");
  }
}

SweepAxis read_zip(const Json& lists, const std::string& place) {
  check_lists(lists, place);
  SweepAxis axis;
  const std::size_t length = lists.front().size();
  axis.steps.resize(length);
  for (const auto& [path, values] : lists.items()) {
    const std::string here = join_path(place, path);
    if (values.size() != length) {
      throw UserError(here, "got " + std::to_string(values.size()) + " values, needs " +
                                std::to_string(length) + " as the first list of the zip has");
    }
    axis.paths.push_back(path);
    for (std::size_t i = 0; i < length; ++i)
      axis.steps[i].push_back({path, values[i], here, join_path("", i)});
  }
  check_distinct(axis, join_path(place, axis.paths.front()));
  return axis;
}

/// Reads an axis with searched values. Its steps are the range ends.
SweepAxis read_searched(const std::string& path, const Json& crossing, const std::string& place) {
  static const Shape shape = shape_of<CrossingFields>();
  SweepAxis axis{{path}, {}, resolve(shape, crossing, join_path(place, "crossing")), {}};
  for (const char* end : {"low", "high"})
    axis.steps.push_back({{path, CrossingSearch::value(axis.crossing.at(end)),
                           join_path(join_path(place, "crossing"), end), ""}});
  return axis;
}

/// Checks a list of names or patterns of arms.
void check_arm_list(const Json& arms, const std::string& place) {
  const bool is_list = arms.is_array() && !arms.empty() &&
                       std::all_of(arms.begin(), arms.end(), [](const Json& arm) { return arm.is_string(); });
  if (!is_list)
    throw UserError(place,
                    "got " + abbreviated(arms) + ", needs a list of names of arms, or patterns (\"aux_*\")");
}

SweepAxis read_axis(const std::string& path, const Json& given, const std::string& place) {
  SweepAxis axis{{path}, {}, {}, {}};
  Json values = given;
  std::string values_place = place;
  if (given.is_object()) {
    const std::vector<std::string> ranges = {"values", "log2range", "crossing"};
    std::vector<std::string> found;
    for (const auto& [key, range] : given.items()) {
      if (key == "arms") continue;
      if (std::find(ranges.begin(), ranges.end(), key) == ranges.end())
        throw UserError(join_path(place, key),
                        unknown_name("range", key, {"values", "log2range", "crossing", "arms"}));
      found.push_back(key);
    }
    if (found.size() != 1) {
      throw UserError(place,
                      "got " + abbreviated(given) +
                          ", needs a list of values, or one of {\"values\": […]}, {\"log2range\": [low, "
                          "high]} and {\"crossing\": {…}}");
    }
    if (given.contains("arms")) {
      axis.arms = given.at("arms");
      check_arm_list(axis.arms, join_path(place, "arms"));
    }
    if (given.contains("crossing")) {
      if (!axis.arms.is_null())
        throw UserError(join_path(place, "arms"),
                        "cannot be combined with 'crossing', whose 'arm' names the arm");
      return read_searched(path, given.at("crossing"), place);
    }
    if (given.contains("log2range"))
      values = log2_range(given.at("log2range"), join_path(place, "log2range"));
    if (given.contains("values")) {
      values = given.at("values");
      values_place = join_path(place, "values");
      if (!values.is_array())
        throw UserError(values_place, "got " + abbreviated(values) + ", needs a list of at least one value");
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_written = !given.is_object() || given.contains("values");
    axis.steps.push_back({{path, values[i], values_place, is_written ? join_path("", i) : ""}});
  }
  check_distinct(axis, values_place);
  return axis;
}

/// Checks the ends of a searched or tuned range.
template <class SearchRange>
void check_ends(const SearchRange& range, const std::string& place) {
  if (range.low >= range.high)
    throw UserError(join_path(place, "high"),
                    fmt::format("got {}, needs more than low = {}", range.high, range.low));
  if (range.is_log && range.low <= 0)
    throw UserError(join_path(place, "low"),
                    fmt::format("got {}, needs a number above 0 on a log scale", range.low));
}

CrossingSearch search_of(const std::string& path, const Json& given) {
  CrossingSearch search;
  static_cast<CrossingFields&>(search) = read_options<CrossingFields>(given);
  search.path = path;
  return search;
}

/// Checks that no arm sets a path above or below a tuned path. Tuned values are applied last and would
/// silently replace the arm's value.
void check_arms(const std::string& path, const Json& arms, const std::string& place) {
  for (const WrittenArm& arm : written_arms(arms)) {
    for (const auto& [own, value] : arm.overrides.items()) {
      if (own == path || (!is_replaced(own, path) && !is_within(path, own))) continue;
      throw UserError(
          place, fmt::format("arm '{}' sets {}; needs arms that set {} itself, or nothing above or below it",
                             arm.name, own, path));
    }
  }
}

/// Whether a shape accepts integers or real numbers; both are false for other shapes.
struct NumberKind {
  bool is_whole = false, is_real = false;
};
NumberKind number_kind(const Shape& shape) {
  NumberKind kind{shape.type == Shape::Type::count, shape.type == Shape::Type::real};
  for (const Shape& alternative : shape.alternatives) {
    const NumberKind own = number_kind(alternative);
    kind.is_whole |= own.is_whole;
    kind.is_real |= own.is_real;
  }
  return kind;
}

/// Rejects a path without a field. Suggests the nearest name if one key is wrong.
[[noreturn]] void refuse_unknown_field(const Json& base, const std::string& path, const std::string& place) {
  Json config = Json::object();
  for (const Field& field : config_shape().fields)
    if (base.contains(field.name)) config[field.name] = base.at(field.name);
  try {
    const Override change{path, 1, place, ""};
    apply_overrides(config_shape(), {&change, 1}, config);
    resolve(config_shape(), config, "");
  } catch (const InvalidOption& error) {
    if (error.path() == place || (!error.path().empty() && is_within(path, error.path())))
      throw UserError(place, error.message());
  }
  throw UserError(place, "is no field of the scenario");
}

}  // namespace

std::vector<Override> read_overrides(const Json& object, const std::string& place) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : object.items())
    overrides.push_back({path, value, join_path(place, path), ""});
  return overrides;
}

std::vector<Override> read_settings(const std::vector<std::string>& settings, const std::string& option) {
  std::vector<Override> overrides;
  for (const std::string& text : settings) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError(option, "got '" + text + "', needs path=value");
    }
    const std::string path = text.substr(0, equals);
    Json value = text.substr(equals + 1);
    if (Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore) !=
        Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)) {
      throw UserError(option, "got bytes that are not UTF-8");
    }
    try {
      value = parse_json(text.substr(equals + 1), option);
    } catch (const NumberOutOfRange& error) {
      throw UserError(option + " " + path, error.message());
    } catch (const UserError&) {
      // The shell has removed the quotes, so the text is a string. The shape rejects wrong values.
    }
    overrides.push_back({path, std::move(value), option + " " + path, ""});
  }
  return overrides;
}

std::vector<Override> kept(std::vector<Override> overrides) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const std::string path = dotted(overrides[i].path);
    for (std::size_t later = i + 1; later < overrides.size(); ++later) {
      const std::string by = dotted(overrides[later].path);
      if (!is_within(path, by)) continue;
      throw UserError(overrides[i].place, path == by
                                              ? fmt::format("is set a second time; needs '{}' once", path)
                                              : fmt::format("is without effect: '{}', set after it, replaces "
                                                            "it; needs '{}' before it, or one of the two",
                                                            by, by));
    }
  }
  return overrides;
}

void apply_overrides(const Shape& shape, std::span<const Override> overrides, Json& document) {
  for (const Override& change : overrides) {
    const std::vector<std::string> keys = split_path(change.path, document);
    assign(&shape, keys, change, document);
    const std::string other = alternative_of(change.path);
    if (!other.empty() && !sets(overrides, other)) document["train"].erase(other.substr(other.find('.') + 1));
  }
}

bool is_replaced(const std::string& path, const std::string& by) {
  return is_within(path, by) || alternative_of(path) == by;
}

UserError at_override(const InvalidOption& error, const Shape& shape, std::span<const Override> overrides,
                      const Json& document) {
  const std::string path = dotted(error.path());
  for (std::size_t i = overrides.size(); i-- > 0;) {
    const Override& change = overrides[i];
    const bool is_below = is_within(path, dotted(change.path));
    if (is_below && find_shape(shape, document, change.path) != nullptr) {
      return {change.place + change.element + rest_after(change.path, error.path()), error.message()};
    }
    if (is_below || is_within(dotted(change.path), path)) return {change.place, error.message()};
  }
  return {error.path(), error.message()};
}

Json read_written_value(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? read_written_value(Json(text)) : value;
}

Json read_written_value(const Json& value) {
  if (!value.is_string()) return value;
  const std::string text = value.get<std::string>();
  if (Json::accept(text)) return value;  // the text was a quoted string
  const std::optional<double> number = read_written_number(text);
  return number ? Json(*number) : value;
}

std::optional<double> read_written_number(const std::string& text) {
  const char* const end = text.data() + text.size();
  const bool is_signed = text.starts_with('+') && !text.starts_with("+-");
  double number = 0;
  const auto [after, error] = std::from_chars(text.data() + (is_signed ? 1 : 0), end, number);
  if (error != std::errc() || after != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

SweepPoint read_point(const Json& object) {
  SweepPoint point;
  for (const auto& [path, value] : object.items()) point.emplace_back(path, read_sweep_value(value));
  return point;
}

Json point_json(const SweepPoint& point) {
  Json json = Json::object();
  for (const auto& [path, value] : point) json[path] = to_json(value);
  return json;
}

void check_zip(const Json& document) {
  if (!document.contains("sweep") || !document.at("sweep").is_object()) return;
  const Json& sweep = document.at("sweep");
  if (sweep.contains("zip")) check_lists(sweep.at("zip"), "sweep.zip");
}

std::vector<SweepAxis> read_sweep(const Json& sweep) {
  std::vector<SweepAxis> axes;
  std::vector<std::string> paths;
  for (const auto& [key, value] : sweep.items()) {
    const std::string place = join_path("sweep", key);
    axes.push_back(key == "zip" ? read_zip(value, place) : read_axis(key, value, place));
    for (const std::string& path : axes.back().paths) {
      for (const std::string& earlier : paths) {
        if (is_within(earlier, path))
          throw UserError(place, "'" + path + "' replaces '" + earlier + "', swept, too");
      }
      paths.push_back(path);
    }
  }
  const auto is_grid = [](const SweepAxis& axis) { return axis.crossing.is_null(); };
  const auto searched = std::stable_partition(axes.begin(), axes.end(), is_grid);
  if (axes.end() - searched > 1) {
    throw UserError(
        join_path("sweep", axes.back().paths.front()),
        "is searched for a crossing, and so is '" + searched->paths.front() + "'; needs one searched path");
  }
  for (const SweepAxis& axis : axes)
    if (searched != axes.end() && !axis.arms.is_null())
      throw UserError(join_path(join_path("sweep", axis.paths.front()), "arms"),
                      "cannot be combined with '" + searched->paths.front() +
                          "', which is searched for a crossing; needs a sweep of all arms");
  return axes;
}

std::vector<SweepAxis> axes_of_arm(const std::vector<SweepAxis>& axes, const std::string& arm) {
  std::vector<SweepAxis> own;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(own), [&](const SweepAxis& axis) {
    return axis.arms.is_null() || std::find(axis.arms.begin(), axis.arms.end(), Json(arm)) != axis.arms.end();
  });
  return own;
}

Override searched_override(const SweepAxis& axis, Json value) {
  for (const std::vector<Override>& end : axis.steps)
    if (end.front().value == value) return end.front();  // keep the scenario's place of this value
  const std::string& path = axis.paths.front();
  return {path, std::move(value), join_path(join_path("sweep", path), "crossing"), ""};
}

std::size_t count_points(const std::vector<SweepAxis>& axes, std::size_t limit) {
  std::size_t points = 1;
  for (const SweepAxis& axis : axes) {
    if (points > limit) break;
    points *= axis.steps.size();
  }
  return points;
}

std::vector<Override> sweep_point(const std::vector<SweepAxis>& axes, std::size_t index) {
  std::vector<const std::vector<Override>*> chosen(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    chosen[i] = &axes[i].steps[index % axes[i].steps.size()];
    index /= axes[i].steps.size();
  }
  std::vector<Override> point;
  for (const std::vector<Override>* step : chosen) point.insert(point.end(), step->begin(), step->end());
  return point;
}

CrossingSearch CrossingSearch::read(const std::string& path, const Json& given, const Json& document) {
  const std::string place = join_path(join_path("sweep", path), "crossing");
  CrossingSearch search = search_of(path, given);
  search.is_whole = is_whole_field(document, path, place);
  if (search.level.has_value() == !search.against.empty())
    throw UserError(place, search.level ? "has level and against; needs one of them"
                                        : "needs level (a number) or against (an arm)");
  if (!search.against.empty() && search.arm.empty())
    throw UserError(place, "has against, needs arm: the arm whose metric is compared with it");
  if (!search.against.empty() && search.arm == search.against)
    throw UserError(join_path(place, "against"), "is the arm itself");
  check_ends(search, place);
  return search;
}

std::optional<CrossingSearch> CrossingSearch::of_plan(const Json& crossing) {
  if (crossing.is_null()) return std::nullopt;
  CrossingSearch search = search_of(crossing.at("path"), crossing);
  search.is_whole = crossing.at("whole");
  search.placed = crossing.at("placed").get<std::vector<std::vector<Json>>>();
  return search;
}

Json CrossingSearch::to_json() const {
  Json json = {{"path", path},
               {"metric", metric},
               {"low", low},
               {"high", high},
               {"scale", is_log ? "log" : "linear"},
               {"whole", is_whole},
               {"resolution", resolution},
               {"placed", placed}};
  if (level) json["level"] = *level;
  if (!against.empty()) json["against"] = against;
  if (!arm.empty()) json["arm"] = arm;
  return json;
}

Json CrossingSearch::value(double number) {
  const bool is_integral = std::abs(number) < 1e15 && std::floor(number) == number;
  return is_integral ? Json(std::llround(number)) : Json(number);
}

bool is_whole_field(const Json& base, const std::string& path, const std::string& place) {
  const Shape* const shape = find_shape(config_shape(), base, path);
  if (shape == nullptr) refuse_unknown_field(base, path, place);
  const NumberKind kind = number_kind(*shape);
  if (!kind.is_whole && !kind.is_real) throw UserError(place, "is not a number of the scenario");
  return kind.is_whole && !kind.is_real;
}

Json TuneRange::at(double share, int digits) const {
  const double value = is_log ? low * std::pow(high / low, share) : low + (high - low) * share;
  const double rounded = std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
  if (is_whole)
    return static_cast<std::int64_t>(std::clamp(std::round(rounded), std::ceil(low), std::floor(high)));
  return std::clamp(rounded, low, high);
}

double TuneRange::share_of(const Json& value) const {
  const double number = value.get<double>();
  return is_log ? std::log(number / low) / std::log(high / low) : (number - low) / (high - low);
}

std::vector<TuneRange> read_tune_ranges(const Json& tune, const Json& base, std::span<const SweepAxis> axes) {
  std::vector<TuneRange> ranges;
  for (const auto& [path, range] : tune.items()) {
    const std::string place = join_path("tune", path);
    const bool is_whole = is_whole_field(base, path, place);
    for (const SweepAxis& axis : axes) {
      for (const std::string& swept : axis.paths) {
        if (is_within(path, swept) || is_within(swept, path))
          throw UserError(place, "the sweep sets '" + swept + "'; needs a field that is not swept");
      }
    }
    for (const TuneRange& earlier : ranges) {
      if (is_within(path, earlier.path) || is_within(earlier.path, path))
        throw UserError(place, fmt::format("'{}' is tuned, too; needs one of the two", earlier.path));
    }
    TuneRange read;
    static_cast<TuneFields&>(read) = read_options<TuneFields>(range);
    read.path = path;
    read.is_whole = is_whole;
    check_ends(read, place);
    for (const char* end : {"low", "high"})
      resolve(*find_shape(config_shape(), base, path), range.at(end), join_path(place, end));
    check_arms(path, base.value("arms", Json::object()), place);
    ranges.push_back(std::move(read));
  }
  return ranges;
}

}  // namespace moelab
