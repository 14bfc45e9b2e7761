#include <cmath>

#include "app/json/schema.h"

namespace moelab {
namespace {

Json schema_of(const Shape& shape);

Json schema_of_field(const Field& field) {
  Json schema = schema_of(field.shape);
  schema["description"] = field.help;
  if (field.default_value && !field.default_value->is_null()) schema["default"] = *field.default_value;
  return schema;
}

Json schema_of_object(const std::vector<Field>& fields) {
  Json properties = Json::object(), required = Json::array();
  for (const Field& field : fields) {
    properties[field.name] = schema_of_field(field);
    if (!field.default_value) required.push_back(field.name);
  }
  return Json::object({{"type", "object"},
                       {"properties", std::move(properties)},
                       {"required", std::move(required)},
                       {"additionalProperties", false}});
}

Json schema_of_variant(const Shape& shape) {
  Json bare_names = Json::array(), alternatives = Json::array();
  for (const Kind& kind : shape.kinds) {
    Json schema = schema_of_object(kind.fields);
    if (schema["required"].empty()) bare_names.push_back(kind.name);
    schema["description"] = kind.help;
    schema["properties"][shape.tag] = Json::object({{"const", kind.name}});
    const bool is_default = shape.has_default_kind && &kind == &shape.kinds.front();
    if (!is_default) schema["required"].push_back(shape.tag);
    alternatives.push_back(std::move(schema));
  }
  if (!bare_names.empty()) alternatives.insert(alternatives.begin(), Json::object({{"enum", bare_names}}));
  return Json::object({{"oneOf", std::move(alternatives)}});
}

Json schema_of_number(const Shape& shape) {
  Json schema = Json::object({{"type", shape.type == Shape::Type::count ? "integer" : "number"}});
  if (std::isfinite(shape.minimum)) {
    schema[shape.exclusive_minimum ? "exclusiveMinimum" : "minimum"] = shape.minimum;
  }
  if (std::isfinite(shape.maximum)) schema["maximum"] = shape.maximum;
  return schema;
}

Json schema_of(const Shape& shape) {
  switch (shape.type) {
    case Shape::Type::boolean:
      return Json::object({{"type", "boolean"}});
    case Shape::Type::count:
    case Shape::Type::real:
      return schema_of_number(shape);
    case Shape::Type::text:
      return Json::object({{"type", "string"}, {"minLength", 1}});
    case Shape::Type::choice:
      return Json::object({{"enum", shape.choices}});
    case Shape::Type::list: {
      Json schema = Json::object({{"type", "array"}, {"items", schema_of(*shape.element)}});
      if (shape.minimum > 0) schema["minItems"] = static_cast<std::int64_t>(shape.minimum);
      if (std::isfinite(shape.maximum)) schema["maxItems"] = static_cast<std::int64_t>(shape.maximum);
      return schema;
    }
    case Shape::Type::map:
      return Json::object({{"type", "object"}, {"additionalProperties", schema_of(*shape.element)}});
    case Shape::Type::object:
      return schema_of_object(shape.fields);
    case Shape::Type::variant:
      return schema_of_variant(shape);
    case Shape::Type::either: {
      Json alternatives = Json::array();
      for (const Shape& alternative : shape.alternatives) alternatives.push_back(schema_of(alternative));
      return Json::object({{"anyOf", std::move(alternatives)}});
    }
    case Shape::Type::any:
      break;
  }
  return Json::object();
}

}  // namespace

Json json_schema(const Shape& shape) {
  Json schema = Json::object({{"$schema", "https://json-schema.org/draft/2020-12/schema"}});
  schema.update(schema_of(shape));
  return schema;
}

}  // namespace moelab
