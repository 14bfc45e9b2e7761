#include "app/commands/shape_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

/// Bounds as large as this only keep a count exact; nobody needs to read them.
constexpr double kReadableBound = 1e15;

std::string number_text(const std::string& noun, const Shape& shape) {
  const bool has_minimum = std::isfinite(shape.minimum);
  const bool has_maximum = std::isfinite(shape.maximum) && shape.maximum < kReadableBound;
  if (has_minimum && has_maximum) {
    return fmt::format("{} in {}{}, {}]", noun, shape.exclusive_minimum ? "(" : "[", shape.minimum,
                       shape.maximum);
  }
  if (has_minimum) return fmt::format("{} {} {}", noun, shape.exclusive_minimum ? ">" : "≥", shape.minimum);
  if (has_maximum) return fmt::format("{} ≤ {}", noun, shape.maximum);
  return noun;
}

template <class Items, class Name>
std::string joined_text(const Items& items, const std::string& separator, Name name) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(name(item));
  return fmt::format("{}", fmt::join(names, separator));
}

}  // namespace

std::string shape_text(const Shape& shape) {
  switch (shape.type) {
    case Shape::Type::boolean:
      return "true | false";
    case Shape::Type::count:
      return number_text("whole number", shape);
    case Shape::Type::real:
      return number_text("number", shape);
    case Shape::Type::text:
      return "text";
    case Shape::Type::choice:
      return joined_text(shape.choices, " | ", [](const std::string& name) { return name; });
    case Shape::Type::list:
      return fmt::format("list of {}", shape_text(*shape.element));
    case Shape::Type::map:
      return fmt::format("object of {}", shape_text(*shape.element));
    case Shape::Type::object:
      return fmt::format("{{{}}}",
                         joined_text(shape.fields, ", ", [](const Field& field) { return field.name; }));
    case Shape::Type::variant:
      return joined_text(shape.kinds, " | ", [](const Kind& kind) { return kind.name; });
    case Shape::Type::either:
      return joined_text(shape.alternatives, " or ", [](const Shape& one) { return shape_text(one); });
    case Shape::Type::any:
      return "any value";
  }
  return "any value";
}

std::string default_text(const Field& field) {
  if (!field.default_value) return "required";
  return field.default_value->is_null() ? "optional" : "default " + field.default_value->dump();
}

std::string needs_text(const std::vector<const Need*>& all) {
  std::vector<std::string> told;
  for (const Need* const need : all) {
    const bool is_always_met = need->is_met == needs::model.is_met;
    if (!is_always_met && std::find(told.begin(), told.end(), need->what) == told.end())
      told.emplace_back(need->what);
  }
  return fmt::format("{}", fmt::join(told, "; "));
}

std::string needs_of_group_text(const std::string& group) {
  for (const MetricGroup& known : metric_groups()) {
    if (known.name == group) return needs_text(known.needs);
  }
  return "";
}

}  // namespace moelab
