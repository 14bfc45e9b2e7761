#include <algorithm>
#include <charconv>

#include "app/json/schema.h"

namespace moelab {
namespace {

const Field* find_field(const std::vector<Field>& fields, const std::string& name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

const Field* find_variant_field(const Shape& shape, const Json& value, const std::string& key) {
  Json tag = value;
  if (value.is_object()) tag = value.contains(shape.tag) ? value.at(shape.tag) : Json();
  const bool is_known =
      std::any_of(shape.kinds.begin(), shape.kinds.end(), [&](const Kind& kind) { return kind.name == tag; });
  for (const Kind& kind : shape.kinds) {
    if (is_known && kind.name != tag) continue;
    if (const Field* field = find_field(kind.fields, key)) return field;
  }
  return nullptr;
}

}  // namespace

std::optional<std::size_t> list_index(std::string_view key) {
  std::size_t index = 0;
  const char* const end = key.data() + key.size();
  const auto [after, error] = std::from_chars(key.data(), end, index);
  if (error != std::errc() || after != end) return std::nullopt;
  return index;
}

const Shape* find_shape(const Shape& shape, const Json& value, const std::string& dotted_path) {
  if (dotted_path.empty()) return &shape;
  const std::size_t dot = dotted_path.find('.');
  const std::string key = dotted_path.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : dotted_path.substr(dot + 1);
  Json child = value.is_object() && value.contains(key) ? value.at(key) : Json();
  const Field* field = nullptr;
  switch (shape.type) {
    case Shape::Type::object:
      field = find_field(shape.fields, key);
      break;
    case Shape::Type::variant:
      if (key == shape.tag) return rest.empty() ? &shape : nullptr;
      field = find_variant_field(shape, value, key);
      break;
    case Shape::Type::map:
      return find_shape(*shape.element, child, rest);
    case Shape::Type::list: {
      const std::optional<std::size_t> index = list_index(key);
      if (!index || !value.is_array() || *index >= value.size()) return nullptr;
      return find_shape(*shape.element, value[*index], rest);
    }
    case Shape::Type::either:
      for (const Shape& alternative : shape.alternatives) {
        if (const Shape* found = find_shape(alternative, value, dotted_path)) return found;
      }
      return nullptr;
    case Shape::Type::any:
      return &shape;
    default:
      return nullptr;
  }
  if (field == nullptr) return nullptr;
  if (child.is_null() && field->default_value) child = *field->default_value;
  return find_shape(field->shape, child, rest);
}

}  // namespace moelab
