#include "app/scenario/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/scenario/errors.h"
#include "sim/base/error.h"

namespace moelab {

namespace {

Shape of_type(Shape::Type type) {
  Shape shape;
  shape.type = type;
  return shape;
}

}  // namespace

Shape Shape::boolean() {
  return of_type(Type::boolean);
}
Shape Shape::count(double minimum, double maximum) {
  Shape shape = of_type(Type::count);
  shape.minimum = minimum;
  shape.maximum = maximum;
  return shape;
}
Shape Shape::real() {
  return of_type(Type::real);
}
Shape Shape::positive_real() {
  Shape shape = of_type(Type::real);
  shape.minimum = 0;
  shape.exclusive_minimum = true;
  return shape;
}
Shape Shape::fraction() {
  Shape shape = of_type(Type::real);
  shape.minimum = 0;
  shape.maximum = 1;
  return shape;
}
Shape Shape::text() {
  return of_type(Type::text);
}
Shape Shape::choice(std::vector<std::string> names) {
  Shape shape = of_type(Type::choice);
  shape.choices = std::move(names);
  return shape;
}
Shape Shape::list(Shape element, double minimum_length) {
  Shape shape = of_type(Type::list);
  shape.minimum = minimum_length;
  shape.element = std::make_shared<const Shape>(std::move(element));
  return shape;
}
Shape Shape::map(Shape element) {
  Shape shape = of_type(Type::map);
  shape.element = std::make_shared<const Shape>(std::move(element));
  return shape;
}
Shape Shape::object(std::vector<Field> fields) {
  Shape shape = of_type(Type::object);
  shape.fields = std::move(fields);
  return shape;
}
Shape Shape::variant(std::vector<Kind> kinds, std::string tag) {
  Shape shape = of_type(Type::variant);
  shape.tag = std::move(tag);
  shape.kinds = std::move(kinds);
  return shape;
}
Shape Shape::either(std::vector<Shape> alternatives) {
  Shape shape = of_type(Type::either);
  shape.alternatives = std::move(alternatives);
  return shape;
}
Shape Shape::any() {
  return {};
}

namespace {

/// The requirement on a number. The upper limit of a count is named only if the value exceeds it.
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

/// The allowed values, as text after "needs".
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

/// Whether `shape` accepts the JSON type of `value`.
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

/// A noun for messages: "router" from "model.router". The tag is used if the path is empty or ends in an
/// index.
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
  // A double above 2^53 may differ from the integer that was written.
  const Json whole = static_cast<std::int64_t>(number);
  if (given.is_number_integer() && given != whole) refuse(given, number_needed(shape, true), path);
  return whole;
}

/// Adds the fields of `given` and the defaults to `resolved`. `tag` is an additional allowed key. Throws all
/// errors together.
void resolve_fields(const std::vector<Field>& fields, const Json& given, const std::string& path,
                    const std::string& tag, Json& resolved) {
  ErrorList errors;
  std::vector<std::string> misspelt;  // the fields that unknown keys seem to mean
  for (const auto& [key, value] : given.items()) {
    const bool is_known = (!tag.empty() && key == tag) ||
                          std::any_of(fields.begin(), fields.end(),
                                      [&key = key](const Field& field) { return field.name == key; });
    if (is_known) continue;
    if (errors.all().size() >= ErrorList::kMostErrors) break;  // finding near names takes time
    std::vector<std::string> allowed;
    if (!tag.empty()) allowed.push_back(tag);
    for (const Field& field : fields) allowed.push_back(field.name);
    errors.add(UserError(join_path(path, key), unknown_name("key", key, allowed)));
    misspelt.push_back(nearest_name(key, allowed));
  }
  for (const Field& field : fields) {
    const auto found = given.find(field.name);
    const std::string field_path = join_path(path, field.name);
    // A null counts as absent, so that an override can restore the default.
    const bool is_given = found != given.end() && !(found->is_null() && field.default_value);
    if (!is_given && !field.default_value) {
      if (std::find(misspelt.begin(), misspelt.end(), field.name) != misspelt.end()) continue;
      errors.add(UserError(field_path, "missing; needs " + needed(field.shape) + " (" + field.help + ")"));
      continue;
    }
    if (!is_given && field.default_value->is_null()) continue;
    errors.check([&] {
      resolved[field.name] = resolve(field.shape, is_given ? *found : *field.default_value, field_path);
    });
  }
  errors.throw_any();
}

/// The kind that an alias stands for; other names stand for themselves.
std::string kind_of_alias(const Shape& shape, const std::string& name) {
  for (const auto& [alias, kind] : shape.aliases)
    if (alias == name) return kind;
  return name;
}

/// The message for an unknown kind. If an alias is nearer than every kind, it names the alias and its kind.
std::string unknown_kind(const Shape& shape, const std::string& noun, const std::string& name) {
  const std::vector<std::string> kinds = names_of(shape.kinds);
  const std::string what = shape.aliases.empty() ? noun : "metric or group";
  const std::string message = unknown_name(what, name, kinds);
  std::vector<std::string> all = kinds;
  for (const auto& [alias, kind] : shape.aliases) all.push_back(alias);
  const std::string nearest = nearest_name(name, all);
  if (nearest.empty() || std::find(kinds.begin(), kinds.end(), nearest) != kinds.end()) return message;
  const std::size_t allowed = message.find("llowed: ");
  return fmt::format("unknown {} '{}'; did you mean '{}'? It belongs to the group '{}'. A{}", what, name,
                     nearest, kind_of_alias(shape, nearest), message.substr(allowed));
}

Json resolve_variant(const Shape& shape, const Json& given, const std::string& path) {
  const bool is_bare = given.is_string();
  Json object = is_bare ? Json::object({{shape.tag, given}}) : given;
  if (shape.has_default_kind && !object.contains(shape.tag)) object[shape.tag] = shape.kinds.front().name;
  const std::string tag_path = is_bare ? path : join_path(path, shape.tag);
  const auto tag = object.find(shape.tag);
  const auto one_of = [&] { return fmt::format("one of {}", fmt::join(names_of(shape.kinds), ", ")); };
  if (tag == object.end()) throw UserError(tag_path, "missing; needs " + one_of());
  if (!tag->is_string()) refuse(*tag, one_of(), tag_path);
  const std::string given_name = tag->get<std::string>(), name = kind_of_alias(shape, given_name);
  for (const Kind& kind : shape.kinds) {
    if (kind.name != name) continue;
    Json resolved = Json::object({{shape.tag, name}});
    resolve_fields(kind.fields, object, path, shape.tag, resolved);
    return resolved;
  }
  throw UserError(tag_path, unknown_kind(shape, noun_of(path, shape.tag), name));
}

/// The elements of a list. An alias adds no kind that another element has.
Json resolve_list(const Shape& element, const Json& given, const std::string& path) {
  ErrorList errors;
  std::vector<Json> elements(given.size());
  const auto is_alias = [&](std::size_t i) {
    return given[i].is_string() &&
           kind_of_alias(element, given[i].get<std::string>()) != given[i].get<std::string>();
  };
  for (std::size_t i = 0; i < given.size(); ++i)
    errors.check([&] { elements[i] = resolve(element, given[i], join_path(path, i)); });
  errors.throw_any();
  const auto repeats_another = [&](std::size_t i) {
    if (!is_alias(i)) return false;
    for (std::size_t other = 0; other < given.size(); ++other) {
      const bool is_before = other < i || (other > i && !is_alias(other));
      if (is_before && elements[other].at(element.tag) == elements[i].at(element.tag)) return true;
    }
    return false;
  };
  Json resolved = Json::array();
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!repeats_another(i)) resolved.push_back(elements[i]);
  return resolved;
}

Shape number_shape(Shape shape, const Range& range) {
  shape.minimum = range.minimum;
  shape.maximum = range.maximum;
  shape.exclusive_minimum = range.exclusive_minimum;
  return shape;
}

/// The value that a separate visitor finds in an element.
template <class Visitor>
Json value_of(Elements& elements, std::size_t index) {
  Visitor one;
  elements.bind(index, one);
  return one.value;
}
template <class Visitor>
Json list_of(Elements& elements) {
  Json values = Json::array();
  for (std::size_t i = 0; i < elements.size(); ++i) values.push_back(value_of<Visitor>(elements, i));
  return values;
}
template <class Visitor>
Json map_of(Elements& elements) {
  Json values = Json::object();
  for (std::size_t i = 0; i < elements.size(); ++i) values[elements.key(i)] = value_of<Visitor>(elements, i);
  return values;
}

/// Collects the fields of a binding for a schema.
class Describer final : public Fields {
 public:
  std::vector<Field> fields;
  // The value of the last field, if it has one
  Json value;
  bool is_given = false;

  void boolean(const About& about, bool& own) override { add_field(about, Shape::boolean(), own); }
  void whole(const About& about, const Range& range, std::int64_t& own) override {
    add_field(about, number_shape(Shape::count(), range), own);
  }
  void real(const About& about, const Range& range, double& own) override {
    add_field(about, number_shape(Shape::real(), range), own);
  }
  void text(const About& about, std::string& own) override { add_field(about, Shape::text(), own); }
  void choice(const About& about, std::span<const std::string> names, int& index) override {
    add_field(about, Shape::choice({names.begin(), names.end()}), names[static_cast<std::size_t>(index)]);
  }
  void any_value(const About& about, AnyValue& own) override { add_field(about, Shape::any(), to_json(own)); }
  void object(const About& about, const Binding& binding) override {
    // As a default, {} is enough. An alternative or a list element needs the complete object.
    add_field(about, Shape::object(fields_of(binding)),
              about.name.empty() ? to_json(binding) : Json::object());
  }
  void one_of(const About& about, KindChoice& choice) override {
    add_field(about, shape_of(choice), choice.chosen());
  }
  void list(const About& about, int least_length, Elements& elements) override {
    add_field(about, Shape::list(element_shape(elements), least_length), list_of<Describer>(elements));
  }
  void map(const About& about, Elements& elements) override {
    add_field(about, Shape::map(element_shape(elements)), map_of<Describer>(elements));
  }
  void either(const About& about, std::span<const Binding> alternatives) override {
    std::vector<Shape> shapes;
    Json chosen;
    for (const Binding& alternative : alternatives) {
      Describer one;
      alternative(one);
      shapes.push_back(one.fields.front().shape);
      if (chosen.is_null() && one.is_given) chosen = one.value;
    }
    add_field(about, Shape::either(std::move(shapes)), std::move(chosen));
  }

 private:
  static Shape element_shape(const Elements& elements) {
    Describer one;
    elements.describe(one);
    return one.fields.front().shape;
  }
  void add_field(const About& about, Shape shape, Json own) {
    value = std::move(own);
    is_given = !about.given || *about.given;
    std::optional<Json> default_value;
    if (about.presence == Presence::optional) default_value = kOptional;
    if (about.presence == Presence::defaulted) default_value = value;
    fields.push_back({about.name, std::move(shape), about.help, std::move(default_value)});
  }
};

/// Sets the members of a binding from a resolved value. The value is an object, or belongs to a field without
/// a name.
class Reader final : public Fields {
 public:
  explicit Reader(const Json& given) : given_(given) {}

  void boolean(const About& about, bool& own) override { set(about, own); }
  void whole(const About& about, const Range&, std::int64_t& own) override { set(about, own); }
  void real(const About& about, const Range&, double& own) override { set(about, own); }
  void text(const About& about, std::string& own) override { set(about, own); }
  void choice(const About& about, std::span<const std::string> names, int& index) override {
    const Json* const given = find(about);
    for (std::size_t i = 0; given && i < names.size(); ++i) {
      if (is_text(*given, names[i])) index = static_cast<int>(i);
    }
  }
  void any_value(const About& about, AnyValue& own) override {
    if (const Json* const given = find(about)) own = read_sweep_value(*given);
  }
  void object(const About& about, const Binding& binding) override {
    if (const Json* const given = find(about)) read_fields(*given, binding);
  }
  void one_of(const About& about, KindChoice& choice) override {
    if (const Json* const given = find(about)) read_choice(*given, choice);
  }
  void list(const About& about, int, Elements& elements) override { read_elements(about, elements); }
  void map(const About& about, Elements& elements) override { read_elements(about, elements); }
  void either(const About& about, std::span<const Binding> alternatives) override {
    const Json* const given = find(about);
    if (!given) return;
    for (const Binding& alternative : alternatives) {
      Describer one;
      alternative(one);
      if (!fits(one.fields.front().shape, *given)) continue;
      read_fields(*given, alternative);
      return;
    }
  }

 private:
  /// Null if the field is absent.
  const Json* find(const About& about) const {
    const Json* found = &given_;
    if (!about.name.empty()) {
      const auto place = given_.find(about.name);
      found = place == given_.end() ? nullptr : &*place;
    }
    if (about.given) *about.given = found != nullptr;
    return found;
  }
  template <class Value>
  void set(const About& about, Value& own) const {
    if (const Json* const given = find(about)) own = given->get<Value>();
  }
  void read_elements(const About& about, Elements& elements) const {
    const Json* const given = find(about);
    if (!given) return;
    elements.clear();
    for (const auto& [key, value] : given->items()) {
      Reader element(value);
      elements.append(key, element);
    }
  }

  const Json& given_;
};

/// Writes the values of a binding as JSON: an object, or the value of a field without a name.
class Writer final : public Fields {
 public:
  /// Writes the field `only`; all fields if it is empty.
  explicit Writer(std::string_view only = {}) : only_(only) {}

  Json value = Json::object();

  void boolean(const About& about, bool& own) override { set(about, own); }
  void whole(const About& about, const Range&, std::int64_t& own) override { set(about, own); }
  void real(const About& about, const Range&, double& own) override { set(about, own); }
  void text(const About& about, std::string& own) override { set(about, own); }
  void choice(const About& about, std::span<const std::string> names, int& index) override {
    set(about, names[static_cast<std::size_t>(index)]);
  }
  void any_value(const About& about, AnyValue& own) override {
    if (!is_left_out(about)) set(about, to_json(own));
  }
  void object(const About& about, const Binding& binding) override {
    if (!is_left_out(about)) set(about, to_json(binding));
  }
  void one_of(const About& about, KindChoice& choice) override {
    if (!is_left_out(about)) set(about, to_json(choice));
  }
  void list(const About& about, int, Elements& elements) override {
    if (!is_left_out(about)) set(about, list_of<Writer>(elements));
  }
  void map(const About& about, Elements& elements) override {
    if (!is_left_out(about)) set(about, map_of<Writer>(elements));
  }
  void either(const About& about, std::span<const Binding> alternatives) override {
    if (is_left_out(about)) return;
    for (const Binding& alternative : alternatives) {
      Writer one;
      alternative(one);
      if (one.is_given_) return set(about, std::move(one.value));
    }
  }

 private:
  bool is_left_out(const About& about) const {
    return (about.given && !*about.given) || (!only_.empty() && about.name != only_);
  }
  void set(const About& about, Json own) {
    if (is_left_out(about)) return;
    // An optional field without std::optional is absent if its value is empty.
    const bool is_empty = own.empty() || (own.is_string() && own.get_ref<const std::string&>().empty());
    if (about.presence == Presence::optional && !about.given && is_empty) return;
    is_given_ = true;
    (about.name.empty() ? value : value[about.name]) = std::move(own);
  }

  std::string_view only_;
  bool is_given_ = false;
};

Json schema_of(const Shape& shape);

Json schema_of_field(const Field& field) {
  Json schema = schema_of(field.shape);
  schema["description"] = field.help;
  if (field.default_value && !field.default_value->is_null()) schema["default"] = *field.default_value;
  return schema;
}

/// Keys that begin with // are comments.
Json comments_schema() {
  return {{"^//", Json::object()}};
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
                       {"patternProperties", comments_schema()},
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
  for (const auto& [alias, kind] : shape.aliases) bare_names.push_back(alias);
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
      return Json::object({{"type", "object"},
                           {"patternProperties", comments_schema()},
                           {"additionalProperties", schema_of(*shape.element)}});
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
      return resolve_list(*shape.element, given, path);
    }
    case Shape::Type::map: {
      Json resolved = Json::object();
      ErrorList errors;
      for (const auto& entry : given.items()) {
        // The keys are already distinct. The map's own insertion would search all of them.
        errors.check([&] {
          resolved.get_ref<Json::object_t&>().emplace_back(
              entry.key(), resolve(*shape.element, entry.value(), join_path(path, entry.key())));
        });
      }
      errors.throw_any();
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

Json small_value(const Shape& shape) {
  const auto object_of = [](const std::vector<Field>& fields) {
    Json object = Json::object();
    for (const Field& field : fields)
      if (!field.default_value) object[field.name] = small_value(field.shape);
    return object;
  };
  switch (shape.type) {
    case Shape::Type::boolean:
      return false;
    case Shape::Type::count:
    case Shape::Type::real:
      return std::clamp(1.0, shape.minimum, shape.maximum);
    case Shape::Type::text:
      return "text";
    case Shape::Type::choice:
      return shape.choices.front();
    case Shape::Type::list: {
      Json list = Json::array();
      while (static_cast<double>(list.size()) < shape.minimum) list.push_back(small_value(*shape.element));
      return list;
    }
    case Shape::Type::map:
      return Json::object();
    case Shape::Type::object:
      return object_of(shape.fields);
    case Shape::Type::variant: {
      Json object = object_of(shape.kinds.front().fields);
      object[shape.tag] = shape.kinds.front().name;
      return object;
    }
    case Shape::Type::either:
      return small_value(shape.alternatives.front());
    case Shape::Type::any:
      break;
  }
  return Json::object();
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
        if (!is_text(resolved.at(shape.tag), kind.name)) continue;
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

Json to_json(const Binding& binding, std::string_view only) {
  Writer writer(only);
  binding(writer);
  return std::move(writer.value);
}

Json to_json(KindChoice& choice, std::string_view only) {
  Writer writer(only);
  writer.value[choice.tag()] = choice.chosen();
  choice.bind(writer);
  return std::move(writer.value);
}

std::vector<Field> fields_of(const Binding& binding) {
  Describer describer;
  binding(describer);
  return describer.fields;
}

Shape shape_of(KindChoice& choice) {
  const std::string before = choice.chosen();
  std::vector<Kind> kinds;
  for (const KindChoice::Kind& kind : choice.kinds()) {
    choice.choose(kind.name);
    kinds.push_back({kind.name, kind.help, fields_of([&](Fields& fields) { choice.bind(fields); })});
  }
  if (!before.empty()) choice.choose(before);
  Shape shape = Shape::variant(std::move(kinds), choice.tag());
  shape.has_default_kind = choice.has_default_kind();
  return shape;
}

AnyValue read_sweep_value(const Json& value) {
  std::optional<double> number;
  if (value.is_number()) number = value.get<double>();
  return {value.dump(), canonical_text(value), number};
}

Json to_json(const AnyValue& value) {
  return Json::parse(value.text());
}

void read_fields(const Json& resolved, const Binding& binding) {
  Reader reader(resolved);
  binding(reader);
}

void read_choice(const Json& resolved, KindChoice& choice) {
  if (resolved.is_string()) return choice.choose(resolved.get<std::string>());
  // Resolved values name their kind. Figures of older plans may lack it.
  const bool is_first = choice.has_default_kind() && !resolved.contains(choice.tag());
  choice.choose(is_first ? choice.kinds().front().name : resolved.at(choice.tag()).get<std::string>());
  read_fields(resolved, [&](Fields& fields) { choice.bind(fields); });
}

const Json* find_value(const Json& object, const std::string& dotted_path) {
  const Json* part = &object;
  for (std::size_t begin = 0; begin <= dotted_path.size();) {
    const std::size_t end = std::min(dotted_path.find('.', begin), dotted_path.size());
    const std::string key = dotted_path.substr(begin, end - begin);
    if (!part->is_object() || !part->contains(key)) return nullptr;
    part = &part->at(key);
    begin = end + 1;
  }
  return part;
}

std::optional<std::size_t> list_index(std::string_view key) {
  std::size_t index = 0;
  const char* const end = key.data() + key.size();
  const auto [after, error] = std::from_chars(key.data(), end, index);
  if (error != std::errc() || after != end) return std::nullopt;
  return index;
}

void visit_parts(const Shape& shape, const Json& value, const std::function<void(const ShapePart&)>& visit) {
  static const Json none;
  const auto visit_fields = [&](const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      const auto given = value.is_object() ? value.find(field.name) : value.end();
      const Json* child = value.is_object() && given != value.end() ? &*given : &none;
      if (child->is_null() && field.default_value) child = &*field.default_value;
      visit({field.name, &field.shape, child, &field});
    }
  };
  if (shape.type == Shape::Type::object) visit_fields(shape.fields);
  if (shape.type == Shape::Type::variant) {
    visit({shape.tag, &shape, &none, nullptr, true});
    const Json tag = value.is_object() ? value.value(shape.tag, Json()) : value;
    const bool is_known = std::any_of(shape.kinds.begin(), shape.kinds.end(),
                                      [&](const Kind& kind) { return is_text(tag, kind.name); });
    for (const Kind& kind : shape.kinds)
      if (!is_known || is_text(tag, kind.name)) visit_fields(kind.fields);
  }
  if (shape.type == Shape::Type::map && value.is_object())
    for (const auto& [key, child] : value.items()) visit({key, shape.element.get(), &child});
  if (shape.type == Shape::Type::list && value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) visit({std::to_string(i), shape.element.get(), &value[i]});
  for (const Shape& alternative : shape.alternatives) visit_parts(alternative, value, visit);
}

const Shape* find_shape(const Shape& shape, const Json& value, const std::string& dotted_path) {
  if (dotted_path.empty() || shape.type == Shape::Type::any) return &shape;
  for (const Shape& alternative : shape.alternatives)
    if (const Shape* found = find_shape(alternative, value, dotted_path)) return found;
  if (!shape.alternatives.empty()) return nullptr;
  const std::size_t dot = dotted_path.find('.');
  const std::string key = dotted_path.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : dotted_path.substr(dot + 1);
  if (shape.type == Shape::Type::map) {  // free keys
    const bool is_given = value.is_object() && value.contains(key);
    return find_shape(*shape.element, is_given ? value.at(key) : Json(), rest);
  }
  const Shape* found = nullptr;
  visit_parts(shape, value, [&](const ShapePart& part) {
    const bool is_meant =
        shape.type == Shape::Type::list ? list_index(key) == list_index(part.key) : part.key == key;
    if (found || !is_meant || (part.is_tag && !rest.empty())) return;
    found = part.is_tag ? part.shape : find_shape(*part.shape, *part.value, rest);
  });
  return found;
}

Json json_schema(const Shape& shape) {
  Json schema = Json::object({{"$schema", "https://json-schema.org/draft/2020-12/schema"}});
  schema.update(schema_of(shape));
  return schema;
}

}  // namespace moelab
