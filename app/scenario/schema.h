#pragma once

/// The scenario language as data. One table of fields drives validation, defaults, `moelab list`, the JSON
/// Schema and the reference documentation.

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/scenario/json.h"
#include "sim/base/options.h"

namespace moelab {

struct Field;

/// One named alternative of a variant, such as a router, a generator or an optimizer.
struct Kind {
  std::string name;
  std::string help;  ///< one sentence: equation and source
  std::vector<Field> fields;
};

/// The set of valid values of a field.
struct Shape {
  enum class Type {
    boolean,
    count,    ///< integer within [minimum, maximum]; 10.0 is valid, 10.5 is not
    real,     ///< finite number within [minimum, maximum]; exclusive_minimum excludes the minimum
    text,     ///< any non-empty string
    choice,   ///< one of `choices`
    list,     ///< array of `element`, length within [minimum, maximum]
    map,      ///< object with free keys; each value has the shape `element`
    object,   ///< object with exactly the keys in `fields`
    variant,  ///< object whose `tag` names one of `kinds`; "soft" is short for {"kind": "soft"}
    either,   ///< the first of `alternatives` with a matching JSON type
    any,      ///< not checked here; later code knows more about the value
  };
  Type type = Type::any;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool exclusive_minimum = false;
  std::vector<std::string> choices;
  std::shared_ptr<const Shape> element;
  std::vector<Field> fields;
  std::string tag = "kind";
  std::vector<Kind> kinds;
  bool has_default_kind = false;  ///< an object without the tag has the first kind
  /// Further names of kinds, as (name, kind). In a list, they add no kind that another element has.
  std::vector<std::pair<std::string, std::string>> aliases;
  std::vector<Shape> alternatives;

  static Shape boolean();
  static Shape count(double minimum = 1, double maximum = 9007199254740992.0);
  static Shape real();
  static Shape positive_real();
  static Shape fraction();  ///< [0, 1]
  static Shape text();
  static Shape choice(std::vector<std::string> names);
  static Shape list(Shape element, double minimum_length = 0);
  static Shape map(Shape element);
  static Shape object(std::vector<Field> fields);
  static Shape variant(std::vector<Kind> kinds, std::string tag = "kind");
  static Shape either(std::vector<Shape> alternatives);
  static Shape any();
};

/// A field of an object. A field without a default is required. A null default means that the field may be
/// absent; it is then absent from the resolved object too.
struct Field {
  std::string name;
  Shape shape;
  std::string help;  ///< one line: meaning, unit, equation
  std::optional<Json> default_value = std::nullopt;
};

/// The default of an optional field.
inline const Json kOptional = nullptr;

/// Checks `given` against `shape` and returns it with all defaults. A variant given as a bare name becomes an
/// object. Throws UserError with the JSON path, the value and what is allowed. For an unknown name it
/// suggests the nearest valid name.
Json resolve(const Shape& shape, const Json& given, const std::string& path);

/// A small value of this shape: its required fields, its first kind, the number 1 if the range has it.
Json small_value(const Shape& shape);

/// Removes all fields with default values, at every level: the smallest document that resolves to `resolved`.
/// Fields that a later version adds with a default do not change the result.
Json without_defaults(const Shape& shape, const Json& resolved);

/// The shape at a dotted path ("model.router.init_scale") below `shape`; null if there is none. `value`
/// selects the kind of a variant. The path of a tag ("model.router.kind") has the shape of its variant, so a
/// bare name is valid. "metrics.0" is an entry of a list in `value`. Used to check arms, sweeps and --set.
const Shape* find_shape(const Shape& shape, const Json& value, const std::string& dotted_path);

/// The target of one key in a dotted path.
struct ShapePart {
  std::string key;
  const Shape* shape;
  const Json* value;             ///< the given value, else the default, else null
  const Field* field = nullptr;  ///< null for the entries of maps and lists
  bool is_tag = false;           ///< the key is the tag of a variant; `shape` is the variant
};

/// Visits the parts of a value of this shape:
///   object          its fields
///   variant         the tag and the fields of the kind in `value`, or of all kinds if `value` names none
///   map or list     the entries of `value`
///   alternatives    the parts of each
void visit_parts(const Shape& shape, const Json& value, const std::function<void(const ShapePart&)>& visit);
/// The value at a dotted path of nested objects; null if there is none.
const Json* find_value(const Json& object, const std::string& dotted_path);

/// The list index that a key of a dotted path represents. Only digits form an index. Returns no value for
/// other keys and for numbers too large for any list.
std::optional<std::size_t> list_index(std::string_view key);

/// The shape as JSON Schema (draft 2020-12); the help texts become descriptions.
Json json_schema(const Shape& shape);

// Typed options

/// The fields of an options struct with their defaults. A choice of kinds becomes a variant.
std::vector<Field> fields_of(const Binding& binding);
Shape shape_of(KindChoice& choice);

/// The shape of an options type: a variant for a choice of kinds, otherwise an object.
template <class Options>
Shape shape_of() {
  Options options;
  if constexpr (std::is_base_of_v<KindChoice, Options>) {
    return shape_of(static_cast<KindChoice&>(options));
  } else {
    return Shape::object(fields_of([&](Fields& fields) { options.bind(fields); }));
  }
}

/// Converts between JSON and values of any type.
AnyValue read_sweep_value(const Json& value);
Json to_json(const AnyValue& value);

/// Writes typed options as JSON with all defaults. Reading the JSON returns the same options. With `only`,
/// the JSON has no other field, except the name of a kind.
Json to_json(const Binding& binding, std::string_view only = {});
Json to_json(KindChoice& choice, std::string_view only = {});
template <class Options>
Json options_json(Options options, std::string_view only = {}) {
  if constexpr (std::is_base_of_v<KindChoice, Options>) {
    return to_json(static_cast<KindChoice&>(options), only);
  } else {
    return to_json([&](Fields& fields) { options.bind(fields); }, only);
  }
}

/// The number or text at a dotted path of JSON or of typed options; no value if there is none.
template <class Value>
std::optional<Value> value_at(const Json& json, const std::string& path) {
  const Json* const found = find_value(json, path);
  constexpr bool is_text = std::is_same_v<Value, std::string>;
  if (found == nullptr || !(is_text ? found->is_string() : found->is_number())) return std::nullopt;
  return found->template get<Value>();
}
template <class Value, class Options>
std::optional<Value> value_at(const Options& options, const std::string& path) {
  return value_at<Value>(options_json(options, std::string_view(path).substr(0, path.find('.'))), path);
}

/// Sets the members of a binding from a value that was resolved against its shape.
void read_fields(const Json& resolved, const Binding& binding);
void read_choice(const Json& resolved, KindChoice& choice);

template <class Options>
Options read_options(const Json& resolved) {
  Options options;
  if constexpr (std::is_base_of_v<KindChoice, Options>) {
    read_choice(resolved, options);
  } else {
    read_fields(resolved, [&](Fields& fields) { options.bind(fields); });
  }
  return options;
}

/// Resolves and reads typed options. Throws UserError below `path`.
template <class Options>
Options resolve_options(const Json& given, const std::string& path = "") {
  static const Shape shape = shape_of<Options>();
  return read_options<Options>(resolve(shape, given, path));
}

}  // namespace moelab
