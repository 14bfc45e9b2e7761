#pragma once

/// The scenario language as data. One table of fields drives validation, defaults, `moelab list`,
/// the JSON Schema and the reference documentation.

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/scenario/json.h"
#include "sim/base/options.h"

namespace moelab {

struct Field;

/// One named alternative of a variant: a router, a generator, an optimizer, …
struct Kind {
  std::string name;
  std::string help;  ///< one sentence: equation and source
  std::vector<Field> fields;
};

/// What a value may be.
struct Shape {
  enum class Type {
    boolean,
    count,    ///< whole number within [minimum, maximum]; 10.0 is one, 10.5 is not
    real,     ///< finite number within [minimum, maximum] (exclusive where said)
    text,     ///< any non-empty string
    choice,   ///< one of `choices`
    list,     ///< array of `element`, length within [minimum, maximum]
    map,      ///< object with free keys, each value of shape `element`
    object,   ///< object with exactly `fields`
    variant,  ///< object whose `tag` names one of `kinds`; "soft" is short for {"kind": "soft"}
    either,   ///< the first of `alternatives` whose JSON type fits
    any,      ///< passed through unchecked (checked later, where more is known)
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
  bool has_default_kind = false;  ///< an object without the tag is of the first kind
  std::vector<Shape> alternatives;

  static Shape boolean();
  static Shape count(double minimum = 1, double maximum = 9007199254740992.0);
  static Shape real();
  static Shape real_at_least(double minimum);
  static Shape positive_real();
  static Shape fraction();  ///< [0, 1]
  static Shape text();
  static Shape choice(std::vector<std::string> names);
  static Shape list(Shape element, double minimum_length = 0);
  static Shape map(Shape element);
  static Shape object(std::vector<Field> fields);
  static Shape variant(std::vector<Kind> kinds, std::string tag = "kind");
  /// A variant whose tag may be left out: then it is of the first kind.
  static Shape variant_with_default(std::vector<Kind> kinds);
  static Shape either(std::vector<Shape> alternatives);
  static Shape any();
};

/// A field of an object. Without a default it is required; a null default means "may be absent"
/// (and then it is absent from the resolved object too).
struct Field {
  std::string name;
  Shape shape;
  std::string help;  ///< one line: meaning, unit, equation
  std::optional<Json> default_value = std::nullopt;
};

/// The default of a field that may be left out.
inline const Json kOptional = nullptr;

/// Checks `given` against `shape` and returns it with every default filled in; a variant given by its
/// bare name becomes an object. Throws UserError: the JSON path, the value, what is allowed, and for an
/// unknown name the nearest valid one.
Json resolve(const Shape& shape, const Json& given, const std::string& path);

/// A resolved value without the fields that have their default, all the way down: the least that resolves to
/// it. Fields that a later version adds with a default do not change it.
Json without_defaults(const Shape& shape, const Json& resolved);

/// The shape that a dotted path ("model.router.init_scale") names below `shape`, with `value` choosing
/// between the kinds of a variant; null when there is none. A variant's tag ("model.router.kind") has the
/// shape of the variant, whose bare name it may be; "metrics.0" is an entry of a list that `value` holds.
/// Used to check arms, sweeps and --set.
const Shape* find_shape(const Shape& shape, const Json& value, const std::string& dotted_path);

/// The index that a key of a dotted path stands for in a list: digits alone; none for other keys, and for
/// numbers beyond all lists.
std::optional<std::size_t> list_index(std::string_view key);

/// The shape as JSON Schema (draft 2020-12), with help texts as descriptions.
Json json_schema(const Shape& shape);

// Typed options at the border: their shape, and their values read from JSON once.

/// The fields of an options struct with their defaults; of a choice of kinds a variant.
std::vector<Field> fields_of(const Binding& binding);
Shape shape_of(KindChoice& choice);

/// The shape of options of a type: an object, or a variant where it is a choice of kinds.
template <class Options>
Shape shape_of() {
  Options options;
  if constexpr (std::is_base_of_v<KindChoice, Options>) {
    return shape_of(static_cast<KindChoice&>(options));
  } else {
    return Shape::object(fields_of([&](Fields& fields) { options.bind(fields); }));
  }
}

/// Sets the members that a value resolved against that shape gives.
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

/// The same from a value that is not resolved yet. Throws UserError below `path`.
template <class Options>
Options resolve_options(const Json& given, const std::string& path = "") {
  static const Shape shape = shape_of<Options>();
  return read_options<Options>(resolve(shape, given, path));
}

}  // namespace moelab
