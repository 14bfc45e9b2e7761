#pragma once

/// Typed options at the border: their shape, and their values read from JSON once.

#include "app/json/schema.h"
#include "sim/base/options.h"

namespace moelab {

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
