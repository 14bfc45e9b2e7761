#include "app/json/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// What a number must be; counts leave out their upper limit unless it is the one that was broken.
std::string number_needed(const Shape& shape, bool with_maximum) {
  std::string text = shape.type == Shape::Type::count ? "a whole number" : "a finite number";
  const bool has_minimum = std::isfinite(shape.minimum);
  if (has_minimum)
    text += fmt::format("{} {}", shape.exclusive_minimum ? " above" : " of at least", shape.minimum);
  if (with_maximum && std::isfinite(shape.maximum)) {
    text += fmt::format("{} at most {}", has_minimum ? " and" : " of", shape.maximum);
  }
  return text;
}

/// What is allowed, as it stands after "needs".
std::string needed(const Shape& shape) {
  switch (shape.type) {
    case Shape::Type::boolean:
      return "true or false";
    case Shape::Type::count:
      return number_needed(shape, false);
    case Shape::Type::real:
      return number_needed(shape, true);
    case Shape::Type::text:
      return "a non-empty text";
    case Shape::Type::choice:
      return fmt::format("one of {}", fmt::join(shape.choices, ", "));
    case Shape::Type::list:
      return shape.minimum > 0 ? fmt::format("a list of at least {} element(s)", shape.minimum) : "a list";
    case Shape::Type::map:
    case Shape::Type::object:
      return "an object";
    case Shape::Type::variant:
      return fmt::format("an object whose '{}' is one of {}", shape.tag,
                         fmt::join(names_of(shape.kinds), ", "));
    case Shape::Type::either: {
      std::vector<std::string> parts;
      for (const Shape& alternative : shape.alternatives) parts.push_back(needed(alternative));
      return fmt::format("{}", fmt::join(parts, ", or "));
    }
    case Shape::Type::any:
      break;
  }
  return "a value";
}

[[noreturn]] void refuse(const Json& given, const std::string& needs, const std::string& path) {
  throw UserError(path, "got " + abbreviated(given) + ", needs " + needs);
}

/// Whether the JSON type of `value` is one that `shape` takes.
bool fits(const Shape& shape, const Json& value) {
  switch (shape.type) {
    case Shape::Type::boolean:
      return value.is_boolean();
    case Shape::Type::count:
    case Shape::Type::real:
      return value.is_number();
    case Shape::Type::text:
    case Shape::Type::choice:
      return value.is_string();
    case Shape::Type::list:
      return value.is_array();
    case Shape::Type::map:
    case Shape::Type::object:
      return value.is_object();
    case Shape::Type::variant:
      return value.is_object() || value.is_string();
    case Shape::Type::either:
      return std::any_of(shape.alternatives.begin(), shape.alternatives.end(),
                         [&](const Shape& alternative) { return fits(alternative, value); });
    case Shape::Type::any:
      break;
  }
  return true;
}

/// "router" from "model.router", for messages; the tag where the path ends in an index or is empty.
std::string noun_of(const std::string& path, const std::string& tag) {
  if (tag != "kind" || path.empty() || path.back() == ']') return tag;
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

Json resolve_number(const Shape& shape, const Json& given, const std::string& path) {
  const double number = given.get<double>();
  const bool is_count = shape.type == Shape::Type::count;
  if (number > shape.maximum) refuse(given, number_needed(shape, true), path);
  if (!std::isfinite(number) || number < shape.minimum ||
      (shape.exclusive_minimum && number <= shape.minimum) || (is_count && std::trunc(number) != number)) {
    refuse(given, needed(shape), path);
  }
  if (!is_count) return given;
  // A double is as far as a whole number beyond 2^53 comes, and that may be the next one.
  const Json whole = static_cast<std::int64_t>(number);
  if (given.is_number_integer() && given != whole) refuse(given, number_needed(shape, true), path);
  return whole;
}

/// Adds the fields of `given` to `resolved`, defaults filled in; `tag` is a further key that is allowed.
void resolve_fields(const std::vector<Field>& fields, const Json& given, const std::string& path,
                    const std::string& tag, Json& resolved) {
  for (const auto& [key, value] : given.items()) {
    const bool is_known = (!tag.empty() && key == tag) ||
                          std::any_of(fields.begin(), fields.end(),
                                      [&key = key](const Field& field) { return field.name == key; });
    if (is_known) continue;
    std::vector<std::string> allowed;
    if (!tag.empty()) allowed.push_back(tag);
    for (const Field& field : fields) allowed.push_back(field.name);
    throw UserError(join_path(path, key), unknown_name("key", key, allowed));
  }
  for (const Field& field : fields) {
    const auto found = given.find(field.name);
    const std::string field_path = join_path(path, field.name);
    // A null stands for a field left out, so that an override can take a value back.
    const bool is_given = found != given.end() && !(found->is_null() && field.default_value);
    if (!is_given && !field.default_value) {
      throw UserError(field_path, "missing; needs " + needed(field.shape) + " (" + field.help + ")");
    }
    if (!is_given && field.default_value->is_null()) continue;
    resolved[field.name] = resolve(field.shape, is_given ? *found : *field.default_value, field_path);
  }
}

Json resolve_variant(const Shape& shape, const Json& given, const std::string& path) {
  const bool is_bare = given.is_string();
  Json object = is_bare ? Json::object({{shape.tag, given}}) : given;
  if (shape.has_default_kind && !object.contains(shape.tag)) object[shape.tag] = shape.kinds.front().name;
  const std::string tag_path = is_bare ? path : join_path(path, shape.tag);
  const auto tag = object.find(shape.tag);
  const std::vector<std::string> names = names_of(shape.kinds);
  const std::string one_of = fmt::format("one of {}", fmt::join(names, ", "));
  if (tag == object.end()) throw UserError(tag_path, "missing; needs " + one_of);
  if (!tag->is_string()) refuse(*tag, one_of, tag_path);
  const std::string name = tag->get<std::string>();
  for (const Kind& kind : shape.kinds) {
    if (kind.name != name) continue;
    Json resolved = Json::object({{shape.tag, name}});
    resolve_fields(kind.fields, object, path, shape.tag, resolved);
    return resolved;
  }
  throw UserError(tag_path, unknown_name(noun_of(path, shape.tag), name, names));
}

}  // namespace

Json resolve(const Shape& shape, const Json& given, const std::string& path) {
  if (!fits(shape, given)) refuse(given, needed(shape), path);
  switch (shape.type) {
    case Shape::Type::count:
    case Shape::Type::real:
      return resolve_number(shape, given, path);
    case Shape::Type::text:
      if (given.get_ref<const std::string&>().empty()) refuse(given, needed(shape), path);
      return given;
    case Shape::Type::choice: {
      const std::string& name = given.get_ref<const std::string&>();
      if (std::find(shape.choices.begin(), shape.choices.end(), name) == shape.choices.end()) {
        throw UserError(path, unknown_name(noun_of(path, "kind"), name, shape.choices));
      }
      return given;
    }
    case Shape::Type::list: {
      const double length = static_cast<double>(given.size());
      if (length < shape.minimum) refuse(given, needed(shape), path);
      if (length > shape.maximum)
        refuse(given, fmt::format("a list of at most {} elements", shape.maximum), path);
      Json resolved = Json::array();
      for (std::size_t i = 0; i < given.size(); ++i) {
        resolved.push_back(resolve(*shape.element, given[i], join_path(path, i)));
      }
      return resolved;
    }
    case Shape::Type::map: {
      Json resolved = Json::object();
      for (const auto& [key, value] : given.items()) {
        // The keys are distinct; the map's own insertion would search them all.
        resolved.get_ref<Json::object_t&>().emplace_back(
            key, resolve(*shape.element, value, join_path(path, key)));
      }
      return resolved;
    }
    case Shape::Type::object: {
      Json resolved = Json::object();
      resolve_fields(shape.fields, given, path, "", resolved);
      return resolved;
    }
    case Shape::Type::variant:
      return resolve_variant(shape, given, path);
    case Shape::Type::either:
      for (const Shape& alternative : shape.alternatives) {
        if (fits(alternative, given)) return resolve(alternative, given, path);
      }
      break;
    case Shape::Type::boolean:
    case Shape::Type::any:
      break;
  }
  return given;
}

Json without_defaults(const Shape& shape, const Json& resolved) {
  const auto of_fields = [&](const std::vector<Field>& fields) {
    Json least = Json::object();
    for (const Field& field : fields) {
      const auto value = resolved.find(field.name);
      if (value == resolved.end()) continue;
      const bool has_default = field.default_value && !field.default_value->is_null();
      if (has_default &&
          canonical_text(resolve(field.shape, *field.default_value, "")) == canonical_text(*value)) {
        continue;
      }
      least[field.name] = without_defaults(field.shape, *value);
    }
    return least;
  };
  switch (shape.type) {
    case Shape::Type::object:
      return of_fields(shape.fields);
    case Shape::Type::variant:
      for (const Kind& kind : shape.kinds) {
        if (resolved.at(shape.tag) != kind.name) continue;
        Json least = of_fields(kind.fields);
        least[shape.tag] = kind.name;
        return least;
      }
      return resolved;
    case Shape::Type::list: {
      Json least = Json::array();
      for (const Json& element : resolved) least.push_back(without_defaults(*shape.element, element));
      return least;
    }
    default:
      return resolved;
  }
}

}  // namespace moelab
