#include "app/scenario/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace moelab {
namespace {

/// The longest key of `object` that is `path` or above it; empty when there is none.
std::string longest_key(const Json& object, const std::string& path) {
  std::string longest;
  if (!object.is_object()) return longest;
  for (const auto& [key, value] : object.items()) {
    if (key.size() > longest.size() && is_within(path, key)) longest = key;
  }
  return longest;
}

/// What `object` has at `key`; null where it has nothing.
const Json& value_at(const Json& object, const std::string& key) {
  static const Json nothing;
  return object.is_object() && object.contains(key) ? object.at(key) : nothing;
}

/// The keys of a path below the "sweep" of `lists` or its "zip": a swept path, and which of its values.
std::vector<std::string> split_swept_path(const std::string& path, const Json& lists) {
  const std::string swept = longest_key(lists, path);
  if (swept.empty() || swept == path || !lists.at(swept).is_array()) return {path};
  const std::string rest = path.substr(swept.size() + 1);
  if (!list_index(rest)) return {path};
  return {swept, rest};
}

/// The keys of a dotted path. Below "sweep", and below the name of an arm, a dotted path is one key.
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
    // An arm's name may hold dots: the longest name that fits is meant.
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

/// The field `key` of a value of this shape; null where there is none, or for free keys.
const Field* find_field(const Shape& shape, const Json& value, const std::string& key) {
  if (shape.type == Shape::Type::object) return field_named(shape.fields, key);
  if (shape.type == Shape::Type::variant) {
    for (const Kind& kind : shape.kinds) {
      if (value.is_object() && value.contains(shape.tag) && value.at(shape.tag) == kind.name) {
        return field_named(kind.fields, key);
      }
    }
  }
  for (const Shape& alternative : shape.alternatives) {
    if (const Field* field = find_field(alternative, value, key)) return field;
  }
  return nullptr;
}

/// The shape of the entries of a value that may be a list; null where it may not.
const Shape* entry_shape(const Shape* shape) {
  if (shape == nullptr) return nullptr;
  if (shape->type == Shape::Type::list) return shape->element.get();
  for (const Shape& alternative : shape->alternatives) {
    if (const Shape* entry = entry_shape(&alternative)) return entry;
  }
  return nullptr;
}

/// Turns a short form into the object that it stands for, so that `key` can be set in it.
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

/// The entry that `key` names. Throws UserError where there is none.
Json& list_entry(const std::string& key, const Override& change, Json& list) {
  const std::optional<std::size_t> index = list_index(key);
  if (index && *index < list.size()) return list[*index];
  std::string entries = "no entries";
  if (list.size() == 1) entries = "1 entry, 0";
  if (list.size() > 1) entries = fmt::format("{} entries, 0 … {}", list.size(), list.size() - 1);
  throw UserError(change.place, fmt::format("leads to entry '{}' of a list that has {}", key, entries));
}

/// Whether the shape is a map whose keys are dotted paths or names, that is, whose values have no fields.
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

/// The field that takes this one's place where it is set; empty for most.
std::string alternative_of(const std::string& path) {
  const std::string steps = "train.steps", epochs = "train.epochs";
  return path == steps ? epochs : path == epochs ? steps : "";
}

bool sets(std::span<const Override> overrides, const std::string& path) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const Override& change) { return change.path == path; });
}

/// "figures.0.y" from "figures[0].y".
std::string dotted(std::string path) {
  std::replace(path.begin(), path.end(), '[', '.');
  path.erase(std::remove(path.begin(), path.end(), ']'), path.end());
  return path;
}

/// How `path` ("figures[0].y") goes on below `ancestor` ("figures.0"): ".y".
std::string rest_after(const std::string& ancestor, const std::string& path) {
  std::size_t start = 0;
  while (start < path.size() && dotted(path.substr(0, start)) != dotted(ancestor)) ++start;
  if (start < path.size() && path[start] == ']') ++start;
  return path.substr(start);
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
      // Not JSON, therefore a string: the shell has eaten the quotes. A wrong value is refused by the shape.
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
      throw UserError(overrides[i].place,
                      path == by
                          ? fmt::format("is set a second time; needs '{}' once", path)
                          : fmt::format("is without effect: '{}', set after it, replaces it; needs '{}' "
                                        "before it, or one of the two",
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

bool is_within(const std::string& path, const std::string& ancestor) {
  return path.starts_with(ancestor) &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '.' || path[ancestor.size()] == '[');
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

}  // namespace moelab
