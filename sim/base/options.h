#pragma once

/// Typed options: structs whose fields are bound once.
///
/// An options struct has `void bind(Fields& fields)`, which names every member once, with what it may be and
/// what it means; its default is the member's initializer. Whoever reads options from a file, describes them
/// in a schema or documents them walks the same binding, so a C++ user who writes
///     LinearRouterOptions router{.init_scale = 4.0};
/// and a scenario with {"kind": "linear", "init_scale": 4.0} mean the same model.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/base/option_values.h"

namespace moelab {

/// Walks the fields of an options struct. A reader sets the members, a describer only looks at them.
class Fields {
 public:
  virtual ~Fields() = default;

  using Presence = FieldPresence;
  using About = FieldAbout;

  virtual void boolean(const About& about, bool& value) = 0;
  virtual void whole(const About& about, const Range& range, std::int64_t& value) = 0;
  virtual void real(const About& about, const Range& range, double& value) = 0;
  virtual void text(const About& about, std::string& value) = 0;
  /// One of `names`, by its index.
  virtual void choice(const About& about, std::span<const std::string> names, int& index) = 0;
  virtual void wholes(const About& about, const Range& range, int least_length,
                      std::vector<std::int64_t>& values) = 0;
  virtual void reals(const About& about, const Range& range, int least_length,
                     std::vector<double>& values) = 0;
  /// A number, or a list of numbers.
  virtual void real_or_reals(const About& about, const Range& range, std::vector<double>& values) = 0;
  virtual void rows(const About& about, std::vector<std::vector<double>>& values) = 0;
  virtual void per_group(const About& about, const Range& range, PerGroup& value) = 0;
  virtual void object(const About& about, const Binding& binding) = 0;
  virtual void one_of(const About& about, KindChoice& choice) = 0;
  /// Texts, whole numbers among them as their digits; one alone stands for a list of it.
  virtual void texts(const About& about, std::vector<std::string>& values) = 0;
  virtual void named(const About& about, NamedChoices& choices) = 0;

  /// The next field has no default.
  Fields& required() {
    presence_ = Presence::required;
    return *this;
  }

  template <class Value>
  void add(const std::string& name, Value& value, const std::string& help) {
    with(name, help, value, [&](const About& about, auto& own) {
      using Own = std::remove_reference_t<decltype(own)>;
      if constexpr (std::is_same_v<Own, bool>) {
        boolean(about, own);
      } else if constexpr (std::is_same_v<Own, std::string>) {
        text(about, own);
      } else if constexpr (std::is_same_v<Own, std::vector<std::vector<double>>>) {
        rows(about, own);
      } else if constexpr (std::is_base_of_v<KindChoice, Own>) {
        one_of(about, own);
      } else if constexpr (std::is_same_v<Own, std::vector<std::string>>) {
        texts(about, own);
      } else if constexpr (std::is_base_of_v<NamedChoices, Own>) {
        named(about, own);
      } else {
        object(about, [&own](Fields& fields) { own.bind(fields); });
      }
    });
  }

  /// A number within a range: an integral member is a whole number.
  template <class Value>
  void add(const std::string& name, Value& value, const Range& range, const std::string& help) {
    with(name, help, value, [&](const About& about, auto& own) {
      using Own = std::remove_reference_t<decltype(own)>;
      if constexpr (std::is_same_v<Own, double>) {
        real(about, range, own);
      } else if constexpr (std::is_same_v<Own, PerGroup>) {
        per_group(about, range, own);
      } else {
        static_assert(std::is_integral_v<Own>);
        std::int64_t number = own;
        whole(about, range, number);
        own = static_cast<Own>(number);
      }
    });
  }

  template <class Value>
  void add(const std::string& name, Value& values, const Range& range, int least_length,
           const std::string& help) {
    with(name, help, values, [&](const About& about, auto& own) {
      using Own = std::remove_reference_t<decltype(own)>;
      if constexpr (std::is_same_v<Own, std::vector<double>>) {
        reals(about, range, least_length, own);
      } else {
        std::vector<std::int64_t> numbers(own.begin(), own.end());
        wholes(about, range, least_length, numbers);
        own.assign(numbers.begin(), numbers.end());
      }
    });
  }

  /// One of several names: enumerators 0, 1, … in the order of the names.
  template <class Value>
  void add(const std::string& name, Value& value, std::initializer_list<const char*> names,
           const std::string& help) {
    const std::vector<std::string> all(names.begin(), names.end());
    with(name, help, value, [&](const About& about, auto& own) {
      using Own = std::remove_reference_t<decltype(own)>;
      int index = static_cast<int>(own);
      choice(about, all, index);
      own = static_cast<Own>(index);
    });
  }

  void add_number_or_list(const std::string& name, std::vector<double>& values, const Range& range,
                          const std::string& help);
  void add_name(const std::string& name, std::string& value, const std::vector<std::string>& names,
                const std::string& help);

 private:
  template <class Value, class Visit>
  void with(const std::string& name, const std::string& help, Value& value, const Visit& visit) {
    About about{name, help, presence_, nullptr};
    presence_ = Presence::defaulted;
    visit(about, value);
  }
  template <class Value, class Visit>
  void with(const std::string& name, const std::string& help, std::optional<Value>& value,
            const Visit& visit) {
    presence_ = Presence::defaulted;
    bool given = value.has_value();
    Value own = value.value_or(Value{});
    visit(About{name, help, Presence::optional, &given}, own);
    value = given ? std::optional(std::move(own)) : std::nullopt;
  }

  Presence presence_ = Presence::defaulted;
};

}  // namespace moelab
