#include "sim/base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moelab {

AnyValue AnyValue::of_number(double number) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  const bool is_whole = std::trunc(number) == number && std::abs(number) < kTwoTo63;
  std::string text = is_whole ? fmt::to_string(static_cast<std::int64_t>(number)) : fmt::to_string(number);
  return {text, text, number};
}

AnyValue AnyValue::of_name(const std::string& name) {
  std::string text = "\"";
  for (const char letter : name) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  text += '"';
  return {text, text, std::nullopt};
}

namespace {

/// The value of a list with one element; empty otherwise.
template <class Value>
std::optional<Value> only_value(const std::vector<Value>& values) {
  return values.size() == 1 ? std::optional(values.front()) : std::nullopt;
}

/// A text, or an integer that is converted to its digits.
void add_digits(Fields& fields, std::string& text) {
  const auto set_number = [&text](std::int64_t number) { text = fmt::to_string(number); };
  const std::vector<Binding> alternatives = {
      alternative(std::optional(text), [&text](std::string name) { text = std::move(name); }),
      alternative(
          std::optional<std::int64_t>(),
          [](Fields& one, auto& number) { one.add("", number, between(0, count().maximum), ""); },
          set_number)};
  fields.either({}, alternatives);
}

}  // namespace

void Fields::add_text_or_list(const std::string& name, std::vector<std::string>& values,
                              const std::string& help, int least_length) {
  with(name, help, values, [&](const About& about, std::vector<std::string>& own) {
    const std::vector<Binding> alternatives = {
        alternative(only_value(own), [&own](const std::string& text) { own = {text}; }),
        alternative(
            std::optional(own),
            [=](Fields& fields, auto& list) { fields.add_list("", list, least_length, ""); },
            [&own](const auto& list) { own = list; })};
    either(about, alternatives);
  });
}

void Fields::add_value(const About& about, std::vector<std::string>& values) {
  const std::vector<Binding> alternatives = {
      alternative(std::optional<std::string>(), [&values](const std::string& text) { values = {text}; }),
      [&values](Fields& fields) { fields.add_elements({}, values, 0, add_digits); }};
  either(about, alternatives);
}

void Fields::add_value(const About& about, std::vector<std::vector<double>>& rows) {
  add_elements(about, rows, 1,
               [](Fields& fields, std::vector<double>& row) { fields.add("", row, any_number(), 1, ""); });
}

void Fields::add_number_or_list(const std::string& name, std::vector<double>& values, const Range& range,
                                const std::string& help) {
  with(name, help, values, [&](const About& about, std::vector<double>& own) {
    const auto add_number = [range](Fields& fields, auto& number) { fields.add("", number, range, ""); };
    const auto add_numbers = [range](Fields& fields, auto& list) { fields.add("", list, range, 1, ""); };
    const std::vector<Binding> alternatives = {
        alternative(only_value(own), add_number, [&own](double number) { own = {number}; }),
        alternative(std::optional(own), add_numbers, [&own](const auto& list) { own = list; })};
    either(about, alternatives);
  });
}

void Fields::per_group(const About& about, const Range& range, PerGroup& value) {
  const auto add_number = [range](Fields& fields, auto& number) { fields.add("", number, range, ""); };
  const auto add_both = [range](Fields& fields, PerGroup& groups) {
    fields.required().add("expert", groups.expert, range, "experts (and dense models)");
    fields.required().add("router", groups.router, range, "router");
  };
  const std::vector<Binding> alternatives = {
      alternative(value.expert == value.router ? std::optional(value.expert) : std::nullopt, add_number,
                  [&value](double both) { value = both; }),
      [&](Fields& fields) { fields.object({}, [&](Fields& groups) { add_both(groups, value); }); }};
  either(about, alternatives);
}

void Fields::add_name(const std::string& name, std::string& value, const std::vector<std::string>& names,
                      const std::string& help) {
  with(name, help, value, [&](const About& about, std::string& own) {
    const auto place = std::find(names.begin(), names.end(), own);
    int index = place == names.end() ? 0 : static_cast<int>(place - names.begin());
    choice(about, names, index);
    own = names[static_cast<std::size_t>(index)];
  });
}

void Fields::add_names(const std::string& name, std::vector<std::string>& values,
                       const std::vector<std::string>& names, int least_length, const std::string& help) {
  with(name, help, values, [&](const About& about, std::vector<std::string>& own) {
    add_elements(about, own, least_length,
                 [&](Fields& fields, std::string& one) { fields.add_name("", one, names, ""); });
  });
}

}  // namespace moelab
