#include "app/scenario/overrides.h"

#include <algorithm>
#include <optional>

namespace moelab {
namespace {

/// The keys of a dotted path. Below "sweep", and below the name of an arm or a profile, the rest is one key,
/// itself a dotted path.
std::vector<std::string> split_path(const std::string& path, const Json& document) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return {path};
  const std::string root = path.substr(0, dot), rest = path.substr(dot + 1);
  if (root == "sweep" && rest.starts_with("zip.")) return {root, "zip", rest.substr(4)};
  if (root == "sweep") return {root, rest};
  if (root == "arms") {
    // An arm's name may hold dots: the longest name that fits is meant.
    std::string name = rest.substr(0, rest.find('.'));
    if (document.contains("arms") && document.at("arms").is_object()) {
      for (const auto& [arm, overrides] : document.at("arms").items()) {
        if (arm.size() > name.size() && is_within(rest, arm)) name = arm;
      }
    }
    if (name == rest) return {root, name};
    return {root, name, rest.substr(name.size() + 1)};
  }
  std::vector<std::string> keys = {root};
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

/// Turns a short form into the object that it stands for, so that `key` can be set in it.
void expand_short_form(const Shape* shape, const std::string& key, Json& value) {
  if (value.is_null()) value = Json::object();
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

void assign(const Shape* shape, std::span<const std::string> keys, const Override& change, Json& target) {
  if (keys.empty()) {
    target = change.value;
    return;
  }
  const std::string& key = keys.front();
  expand_short_form(shape, key, target);
  if (!target.is_object()) {
    throw UserError(change.place, "leads into " + abbreviated(target) + ", which has no field '" + key + "'");
  }
  const Field* const field = shape == nullptr ? nullptr : find_field(*shape, target, key);
  if (keys.size() > 1 && field && field->default_value && !target.contains(key)) {
    target[key] = *field->default_value;
  }
  assign(field ? &field->shape : nullptr, keys.subspan(1), change, target[key]);
}

bool sets(std::span<const Override> overrides, const std::string& path) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const Override& change) { return change.path == path; });
}

}  // namespace

std::vector<Override> read_overrides(const Json& object, const std::string& place) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : object.items())
    overrides.push_back({path, value, join_path(place, path), ""});
  return overrides;
}

std::vector<Override> read_settings(const std::vector<std::string>& settings) {
  std::vector<Override> overrides;
  for (const std::string& text : settings) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError("--set", "got '" + text + "', needs path=value");
    }
    const std::string path = text.substr(0, equals);
    Json value = text.substr(equals + 1);
    if (Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore) !=
        Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)) {
      throw UserError("--set", "got bytes that are not UTF-8");
    }
    try {
      value = parse_json(text.substr(equals + 1), "--set");
    } catch (const UserError&) {
      // Not JSON, therefore a string: the shell has eaten the quotes. A wrong value is refused by the shape.
    }
    overrides.push_back({path, std::move(value), "--set " + path, ""});
  }
  return overrides;
}

void apply_overrides(const Shape& shape, std::span<const Override> overrides, Json& document) {
  const std::string steps = "train.steps", epochs = "train.epochs";
  for (const Override& change : overrides) {
    const std::vector<std::string> keys = split_path(change.path, document);
    assign(&shape, keys, change, document);
    const std::string& other = change.path == steps ? epochs : steps;
    if ((change.path == steps || change.path == epochs) && !sets(overrides, other)) {
      document["train"].erase(other.substr(other.find('.') + 1));
    }
  }
}

bool is_within(const std::string& path, const std::string& ancestor) {
  return path.starts_with(ancestor) &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '.' || path[ancestor.size()] == '[');
}

UserError at_override(const InvalidOption& error, const Shape& shape, std::span<const Override> overrides,
                      const Json& document) {
  for (std::size_t i = overrides.size(); i-- > 0;) {
    const Override& change = overrides[i];
    const bool is_below = is_within(error.path(), change.path);
    if (is_below && find_shape(shape, document, change.path) != nullptr) {
      return {change.place + change.element + error.path().substr(change.path.size()), error.message()};
    }
    if (is_below || is_within(change.path, error.path())) return {change.place, error.message()};
  }
  return {error.path(), error.message()};
}

}  // namespace moelab
