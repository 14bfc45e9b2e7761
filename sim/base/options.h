#pragma once

/// Typed options: structs whose fields are bound once.
///
/// An options struct has `void bind(Fields& fields)`, which names every member once, with what it may be and
/// what it means; its default is the member's initializer. Whoever reads options from a file, describes them
/// in a schema or documents them walks the same binding, so a C++ user who writes
///     LinearRouterOptions router{.init_scale = 4.0};
/// and a scenario with {"kind": "linear", "init_scale": 4.0} mean the same model.

#include <any>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "sim/base/error.h"

namespace moelab {

// What the fields of typed options are made of; see options.h.

/// What a number may be: finite and within [minimum, maximum], the minimum excluded where said.
struct Range {
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool exclusive_minimum = false;
};
constexpr Range any_number() {
  return {};
}
constexpr Range at_least(double minimum) {
  return {.minimum = minimum};
}
constexpr Range between(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum};
}
constexpr Range positive() {
  return {.minimum = 0, .exclusive_minimum = true};
}
constexpr Range fraction() {
  return between(0, 1);
}
/// Counts from 1 on, as far as a double counts exactly.
constexpr Range count() {
  return between(1, 9007199254740992.0);
}

/// A number for the parameters of each role, or one for both.
struct PerGroup {
  double expert = 0;
  double router = 0;
  PerGroup() = default;
  PerGroup(double both) : expert(both), router(both) {}
  PerGroup(double of_experts, double of_router) : expert(of_experts), router(of_router) {}
  bool operator==(const PerGroup&) const = default;
};

class Fields;

/// A struct of options inside another.
using Binding = std::function<void(Fields&)>;

/// One of several kinds, named by a tag, each with fields of its own; see OneOf.
class KindChoice {
 public:
  virtual ~KindChoice() = default;
  struct Kind {
    std::string name;
    std::string help;  ///< one sentence: equation and source
  };
  virtual std::string tag() const = 0;  ///< "kind", "generator"
  virtual std::vector<Kind> kinds() const = 0;
  /// The chosen kind; empty where none is chosen yet.
  virtual std::string chosen() const = 0;
  /// Chooses a kind, its fields at their defaults. Throws InvalidOption where there is none of that name.
  virtual void choose(const std::string& kind) = 0;
  /// The fields of the chosen kind.
  virtual void bind(Fields& fields) = 0;
};

/// Options under names that the user chooses, all of one type.
class NamedChoices {
 public:
  virtual ~NamedChoices() = default;
  /// The field that a text alone is short for, and the one that a number alone is.
  virtual std::string text_field() const = 0;
  virtual std::string number_field() const = 0;
  /// The fields of one at its defaults, for whoever describes them.
  virtual void describe(Fields& fields) const = 0;
  /// Adds one of that name, and binds it.
  virtual void add(const std::string& name, Fields& fields) = 0;
};

/// `Options` have bind(), and the names kTextField and kNumberField.
template <class Options>
class Named final : public NamedChoices {
 public:
  struct Entry {
    std::string name;
    Options options;
  };
  std::vector<Entry> entries;

  Named() = default;
  Named(std::vector<Entry> given) : entries(std::move(given)) {}
  std::string text_field() const override { return Options::kTextField; }
  std::string number_field() const override { return Options::kNumberField; }
  void describe(Fields& fields) const override { Options().bind(fields); }
  void add(const std::string& name, Fields& fields) override {
    entries.push_back({name, Options()});
    entries.back().options.bind(fields);
  }
};

/// Whether a field has to be given, has its member's value as default, or may be absent.
enum class FieldPresence { required, defaulted, optional };

struct FieldAbout {
  std::string name;
  std::string help;  ///< one line: meaning, unit, equation
  FieldPresence presence = FieldPresence::defaulted;
  /// Of an optional field: whether it is given. A reader sets it, and the value only where it does.
  bool* given = nullptr;
};

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

// A choice between the kinds of an axis (routers, experts, generators, …), with the options of the chosen
// one: a value that is copied like any other.

/// Options of some type, and how they are bound.
class AnyOptions {
 public:
  template <class Options>
  requires(!std::is_same_v<std::decay_t<Options>, AnyOptions>) AnyOptions(Options options)
      : value_(std::move(options)),
        bind_([](std::any& value, Fields& fields) { std::any_cast<Options&>(value).bind(fields); }) {}

  void bind(Fields& fields) { bind_(value_, fields); }
  const std::type_info& type() const { return value_.type(); }
  /// Null where they are of another type.
  template <class Options>
  const Options* as() const {
    return std::any_cast<Options>(&value_);
  }
  template <class Options>
  const Options& get() const {
    return std::any_cast<const Options&>(value_);
  }

 private:
  std::any value_;
  void (*bind_)(std::any&, Fields&);
};

/// What the entry of every axis's table begins with.
struct KindEntry {
  std::string name;
  std::string help;         ///< one sentence: equation and source
  AnyOptions defaults;      ///< the options of the kind, at their defaults
  AnyOptions example;       ///< small ones that work in every test; as a rule the defaults
  std::string needed = {};  ///< what the rest of a scenario has to have for it; empty for nothing
};

/// `Axis` has `struct Entry` derived from KindEntry, `static const std::vector<Entry>& table()`,
/// `static constexpr const char* kTag` ("kind") and `kNoun` ("router").
template <class Axis>
class OneOf : public KindChoice {
 public:
  using Entry = typename Axis::Entry;

  /// Nothing is chosen: for fields that have to be given.
  OneOf() = default;
  /// The kind whose options these are.
  template <class Options>
  requires(!std::is_base_of_v<KindChoice, std::decay_t<Options>> &&
           !std::is_convertible_v<Options, std::string>) OneOf(Options options)
      : options_(AnyOptions(std::move(options))) {
    for (const Entry& entry : Axis::table()) {
      if (entry.defaults.type() == options_->type()) kind_ = entry.name;
    }
    if (kind_.empty()) {
      throw std::invalid_argument(std::string("these are the options of no ") + Axis::kNoun);
    }
  }
  /// The kind of that name with its defaults.
  static OneOf named(const std::string& kind) {
    OneOf one;
    one.choose(kind);
    return one;
  }
  /// The kind of that name with its example.
  static OneOf example(const std::string& kind) {
    OneOf one = named(kind);
    one.options_ = one.entry().example;
    return one;
  }

  /// The table's entry of the chosen kind.
  const Entry& entry() const { return find(kind_); }
  const AnyOptions& options() const { return options_.value(); }
  /// Null where another kind is chosen.
  template <class Options>
  const Options* as() const {
    return options_ ? options_->template as<Options>() : nullptr;
  }

  std::string tag() const override { return Axis::kTag; }
  std::vector<Kind> kinds() const override {
    std::vector<Kind> all;
    for (const Entry& entry : Axis::table()) all.push_back({entry.name, entry.help + caveats(entry)});
    return all;
  }
  std::string chosen() const override { return kind_; }
  void choose(const std::string& kind) override {
    options_ = find(kind).defaults;
    kind_ = kind;
  }
  void bind(Fields& fields) override {
    if (options_) options_->bind(fields);
  }

 private:
  /// What has to be known of an entry beside its equation.
  static std::string caveats(const Entry& entry) {
    std::string text = entry.needed.empty() ? "" : "; needs " + entry.needed;
    if constexpr (requires { entry.looks_ahead; }) {
      const std::string where = entry.looks_ahead ? entry.looks_ahead(entry.defaults) : "";
      if (!where.empty()) text += "; not causal: " + where;
    }
    return text;
  }
  static const Entry& find(const std::string& kind) {
    for (const Entry& entry : Axis::table()) {
      if (entry.name == kind) return entry;
    }
    throw InvalidOption(Axis::kTag, unknown_name(Axis::kNoun, kind, names_of(Axis::table())));
  }

  std::string kind_;
  std::optional<AnyOptions> options_;
};

}  // namespace moelab
