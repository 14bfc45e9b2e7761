#pragma once

/// Typed options: structs that bind each field once.
///
/// An options struct has `void bind(Fields& fields)`, which declares the name, range and meaning of every
/// member. The member's initializer is its default. Readers, schemas and documentation all use this binding.
/// The C++ value
///     LinearRouterOptions router{.init_scale = 4.0};
/// and the scenario {"kind": "linear", "init_scale": 4.0} therefore mean the same model.

#include <any>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/error.h"

namespace moelab {

// Field types

/// The range of a finite number: [minimum, maximum]. `exclusive_minimum` excludes the minimum.
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
/// Integers from 1 to 2^53, the largest range that a double represents exactly.
constexpr Range count() {
  return between(1, 9007199254740992.0);
}

/// A value of any type, stored as JSON text.
class AnyValue {
 public:
  AnyValue() : AnyValue("null", "null", std::nullopt) {}
  /// `text` is the original text. `canonical` is equal for equal values (1 and 1.0). `number` is set for
  /// numbers.
  AnyValue(std::string text, std::string canonical, std::optional<double> number)
      : text_(std::move(text)), canonical_(std::move(canonical)), number_(number) {}
  template <class Number>
  requires(std::integral<Number> || std::floating_point<Number>) AnyValue(Number number)
      : AnyValue(of_number(static_cast<double>(number))) {}
  AnyValue(const std::string& name) : AnyValue(of_name(name)) {}
  AnyValue(const char* name) : AnyValue(std::string(name)) {}

  const std::string& text() const { return text_; }
  const std::string& canonical() const { return canonical_; }
  const std::optional<double>& number() const { return number_; }
  bool operator==(const AnyValue& other) const { return canonical_ == other.canonical_; }

 private:
  static AnyValue of_number(double number);
  static AnyValue of_name(const std::string& name);

  std::string text_, canonical_;
  std::optional<double> number_;
};

/// A map from names to values that keeps the order of its entries.
template <class Value>
using NamedValues = std::vector<std::pair<std::string, Value>>;

/// A number for the expert parameters and one for the router parameters; they may be equal.
struct PerGroup {
  double expert = 0;
  double router = 0;
  PerGroup() = default;
  PerGroup(double both) : expert(both), router(both) {}
  PerGroup(double of_experts, double of_router) : expert(of_experts), router(of_router) {}
  bool operator==(const PerGroup&) const = default;
};

class Fields;

/// Binds the fields of a struct. A value that is not a struct is one field without a name.
using Binding = std::function<void(Fields&)>;

/// A choice between kinds. The tag names the kind, and each kind has its own fields; see OneOf.
class KindChoice {
 public:
  virtual ~KindChoice() = default;
  struct Kind {
    std::string name;
    std::string help;  ///< one sentence: equation and source
  };
  virtual std::string tag() const = 0;  ///< the name of the tag: "kind", "generator"
  /// Whether the tag is optional. Its default is the first kind.
  virtual bool has_default_kind() const = 0;
  virtual std::vector<Kind> kinds() const = 0;
  /// The chosen kind; empty if no kind is chosen.
  virtual std::string chosen() const = 0;
  /// Chooses a kind and sets its fields to their defaults. Throws InvalidOption for an unknown name.
  virtual void choose(const std::string& kind) = 0;
  /// Binds the fields of the chosen kind.
  virtual void bind(Fields& fields) = 0;
};

/// The elements of a list, or of a map with a key per element. An element is a field without a name.
class Elements {
 public:
  virtual ~Elements() = default;
  virtual std::size_t size() const = 0;
  virtual std::string key(std::size_t index) const = 0;
  virtual void bind(std::size_t index, Fields& element) = 0;
  virtual void clear() = 0;
  /// Appends an element and binds it.
  virtual void append(const std::string& key, Fields& element) = 0;
  /// Binds a temporary element with default values.
  virtual void describe(Fields& element) const = 0;
};

/// Whether a field is required, has its member's value as the default, or may be absent.
enum class FieldPresence { required, defaulted, optional };

struct FieldAbout {
  std::string name;  ///< empty for a list element, a map element or an alternative
  std::string help;  ///< one line: meaning, unit, equation
  FieldPresence presence = FieldPresence::defaulted;
  /// For optional fields: whether a value is given. A reader sets the flag, and then the value if there is
  /// one.
  bool* given = nullptr;
};

/// Visits the fields of an options struct. A reader sets the members; a describer only inspects them.
///
/// Each virtual function is a type of the scenario language. bind() of a struct calls add(), which selects
/// the type from the member:
///     bool, std::string, double, an integer, an enum    boolean, text, real, whole, choice
///     AnyValue                                          any_value: not checked
///     a struct with bind()                              object
///     OneOf<Axis>                                       one_of: a struct chosen by its tag
///     std::vector<T>, NamedValues<T>                    list, map
///     std::vector<std::vector<double>>                  a list of non-empty lists
///     std::vector<std::string>                          a text or a list; an integer becomes its digits
///     std::variant<T, …>, a struct with alternatives()  either: the first type that fits
///     std::optional<T>                                  the type T; the field may be absent
class Fields {
 public:
  virtual ~Fields() = default;

  using Presence = FieldPresence;
  using About = FieldAbout;

  virtual void boolean(const About& about, bool& value) = 0;
  virtual void whole(const About& about, const Range& range, std::int64_t& value) = 0;
  virtual void real(const About& about, const Range& range, double& value) = 0;
  virtual void text(const About& about, std::string& value) = 0;
  /// One of `names`, represented by its index.
  virtual void choice(const About& about, std::span<const std::string> names, int& index) = 0;
  virtual void any_value(const About& about, AnyValue& value) = 0;
  virtual void object(const About& about, const Binding& binding) = 0;
  virtual void one_of(const About& about, KindChoice& choice) = 0;
  virtual void list(const About& about, int least_length, Elements& elements) = 0;
  virtual void map(const About& about, Elements& elements) = 0;
  /// Each alternative binds one optional field without a name. The field is given if the value has its type.
  virtual void either(const About& about, std::span<const Binding> alternatives) = 0;

  /// The next field has no default.
  Fields& required() {
    presence_ = Presence::required;
    return *this;
  }
  /// The next field may be absent; its member then keeps its value.
  Fields& optional() {
    presence_ = Presence::optional;
    return *this;
  }

  template <class Value>
  void add(const std::string& name, Value& value, const std::string& help) {
    with(name, help, value, [&](const About& about, auto& own) { add_value(about, own); });
  }

  /// A number within a range. An integral member takes only integers.
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
        auto number = static_cast<std::int64_t>(own);
        whole(about, range, number);
        own = static_cast<Own>(number);
      }
    });
  }

  /// A list of numbers within a range.
  template <class Value>
  void add(const std::string& name, Value& values, const Range& range, int least_length,
           const std::string& help) {
    with(name, help, values, [&](const About& about, auto& own) {
      add_elements(about, own, least_length,
                   [&](Fields& element, auto& number) { element.add("", number, range, ""); });
    });
  }

  /// One of several names. The enumerators 0, 1, … follow the order of the names.
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

  /// A list with at least `least_length` elements.
  template <class Value>
  void add_list(const std::string& name, Value& values, int least_length, const std::string& help) {
    with(name, help, values, [&](const About& about, auto& own) {
      add_elements(about, own, least_length,
                   [](Fields& element, auto& value) { element.add("", value, ""); });
    });
  }
  /// A text, or a list of at least `least_length` texts.
  void add_text_or_list(const std::string& name, std::vector<std::string>& values, const std::string& help,
                        int least_length = 1);
  void add_number_or_list(const std::string& name, std::vector<double>& values, const Range& range,
                          const std::string& help);
  /// One of several names; add_names() takes a list of them.
  void add_name(const std::string& name, std::string& value, const std::vector<std::string>& names,
                const std::string& help);
  void add_names(const std::string& name, std::vector<std::string>& values,
                 const std::vector<std::string>& names, int least_length, const std::string& help);

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

  template <class Value>
  void add_value(const About& about, Value& value);
  template <class Value>
  void add_value(const About& about, std::vector<Value>& values) {
    add_elements(about, values, 0, [](Fields& element, Value& value) { element.add("", value, ""); });
  }
  void add_value(const About& about, std::vector<std::string>& values);
  void add_value(const About& about, std::vector<std::vector<double>>& rows);
  template <class Value>
  void add_value(const About& about, NamedValues<Value>& values);
  template <class... Types>
  void add_value(const About& about, std::variant<Types...>& value);
  void per_group(const About& about, const Range& range, PerGroup& value);
  template <class Value, class BindOne>
  void add_elements(const About& about, std::vector<Value>& values, int least_length,
                    const BindOne& bind_one);

  Presence presence_ = Presence::defaulted;
};

/// One alternative of a value with several possible types. `now` is the current value if it has this type.
/// `bind(fields, value)` binds an optional field without a name. `set(value)` receives the value from a
/// reader.
template <class Value, class Bind, class Set>
Binding alternative(std::optional<Value> now, Bind bind, Set set) {
  return [now = std::move(now), bind = std::move(bind), set = std::move(set)](Fields& fields) {
    std::optional<Value> own = now;
    bind(fields, own);
    if (own) set(*own);
  };
}
template <class Value, class Set>
Binding alternative(std::optional<Value> now, Set set) {
  return alternative(
      std::move(now), [](Fields& fields, auto& value) { fields.add("", value, ""); }, std::move(set));
}

/// The elements of a vector; `bind_one(fields, element)` binds each.
template <class Value, class BindOne>
class ListElements final : public Elements {
 public:
  ListElements(std::vector<Value>& values, const BindOne& bind_one) : values_(values), bind_one_(bind_one) {}

  std::size_t size() const override { return values_.size(); }
  std::string key(std::size_t) const override { return ""; }
  void bind(std::size_t index, Fields& element) override { bind_one_(element, values_[index]); }
  void clear() override { values_.clear(); }
  void append(const std::string&, Fields& element) override { bind_one_(element, values_.emplace_back()); }
  void describe(Fields& element) const override {
    Value value{};
    bind_one_(element, value);
  }

 private:
  std::vector<Value>& values_;
  const BindOne& bind_one_;
};

template <class Value>
class MapElements final : public Elements {
 public:
  explicit MapElements(NamedValues<Value>& values) : values_(values) {}

  std::size_t size() const override { return values_.size(); }
  std::string key(std::size_t index) const override { return values_[index].first; }
  void bind(std::size_t index, Fields& element) override { element.add("", values_[index].second, ""); }
  void clear() override { values_.clear(); }
  void append(const std::string& key, Fields& element) override {
    element.add("", values_.emplace_back(key, Value{}).second, "");
  }
  void describe(Fields& element) const override {
    Value value{};
    element.add("", value, "");
  }

 private:
  NamedValues<Value>& values_;
};

template <class Value>
void Fields::add_value(const About& about, Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    boolean(about, value);
  } else if constexpr (std::is_same_v<Value, double>) {
    real(about, any_number(), value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    text(about, value);
  } else if constexpr (std::is_same_v<Value, AnyValue>) {
    any_value(about, value);
  } else if constexpr (std::is_base_of_v<KindChoice, Value>) {
    one_of(about, value);
  } else if constexpr (requires { value.alternatives(); }) {
    either(about, value.alternatives());
  } else {
    object(about, [&value](Fields& fields) { value.bind(fields); });
  }
}

template <class Value>
void Fields::add_value(const About& about, NamedValues<Value>& values) {
  MapElements<Value> elements(values);
  map(about, elements);
}

template <class... Types>
void Fields::add_value(const About& about, std::variant<Types...>& value) {
  const auto of_type = [&value]<class Type>(const Type*) {
    const Type* const held = std::get_if<Type>(&value);
    return alternative(held ? std::optional(*held) : std::nullopt,
                       [&value](Type own) { value = std::move(own); });
  };
  const std::vector<Binding> alternatives = {of_type(static_cast<const Types*>(nullptr))...};
  either(about, alternatives);
}

template <class Value, class BindOne>
void Fields::add_elements(const About& about, std::vector<Value>& values, int least_length,
                          const BindOne& bind_one) {
  ListElements<Value, BindOne> elements(values, bind_one);
  list(about, least_length, elements);
}

// Choice of a kind

/// Options of any type together with their bind function.
class AnyOptions {
 public:
  template <class Options>
  requires(!std::is_same_v<std::decay_t<Options>, AnyOptions>) AnyOptions(Options options)
      : value_(std::move(options)),
        bind_([](std::any& value, Fields& fields) { std::any_cast<Options&>(value).bind(fields); }) {}

  void bind(Fields& fields) { bind_(value_, fields); }
  const std::type_info& type() const { return value_.type(); }
  /// Null if the options have another type.
  template <class Options>
  const Options* as() const {
    return std::any_cast<Options>(&value_);
  }
  template <class Options>
  Options* as() {
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

/// The common first fields of every entry in an axis's table.
struct KindEntry {
  std::string name;
  std::string help;         ///< one sentence: equation and source
  AnyOptions defaults;      ///< the options of the kind, at their defaults
  AnyOptions example;       ///< small options that work in every test; usually the defaults
  std::string needed = {};  ///< what else a scenario must contain for this kind; empty for nothing
};

/// A copyable choice between the kinds of an axis (routers, experts, generators, …), with the options of the
/// chosen kind. `Axis` has `struct Entry` derived from KindEntry and `static const std::vector<Entry>&
/// table()`. It also has `static constexpr const char*` members `kTag` ("kind") and `kNoun` ("router").
/// kFirstIsDefault is defined if the tag is optional.
template <class Axis>
class OneOf : public KindChoice {
 public:
  using Entry = typename Axis::Entry;

  /// No kind is chosen: for required fields.
  OneOf() = default;
  /// Chooses the kind of these options. Throws std::invalid_argument if no kind has this options type.
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
  /// The kind `kind` with its default options.
  static OneOf named(const std::string& kind) {
    OneOf one;
    one.choose(kind);
    return one;
  }
  /// The kind `kind` with its example options.
  static OneOf example(const std::string& kind) {
    OneOf one = named(kind);
    one.options_ = one.entry().example;
    return one;
  }

  /// The table entry of the chosen kind.
  const Entry& entry() const { return find(kind_); }
  const AnyOptions& options() const { return options_.value(); }
  /// Null if another kind is chosen.
  template <class Options>
  const Options* as() const {
    return options_ ? options_->template as<Options>() : nullptr;
  }
  template <class Options>
  Options* as() {
    return options_ ? options_->template as<Options>() : nullptr;
  }

  std::string tag() const override { return Axis::kTag; }
  bool has_default_kind() const override {
    return requires {
      Axis::kFirstIsDefault;
    };
  }
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
  /// The limits of an entry, as text after its equation.
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

/// Adds kinds to the table of an axis, for programs and tests with their own kinds:
///     const Extended<RouterAxis> with_mine({my_router()});
/// The longer table is active during the lifetime of the object. The destructor restores the previous table.
/// No other thread may read the table during construction or destruction. Destroy these objects in reverse
/// order.
template <class Axis>
class Extended {
 public:
  using Entry = typename Axis::Entry;

  explicit Extended(std::vector<Entry> added) : table_(Axis::table()), before_(current()) {
    for (Entry& entry : added) table_.push_back(std::move(entry));
    current() = &table_;
  }
  ~Extended() { current() = before_; }
  Extended(const Extended&) = delete;
  Extended& operator=(const Extended&) = delete;

  /// The active table: the most recent extension, or the axis's `own` table.
  static const std::vector<Entry>& table_or(const std::vector<Entry>& own) {
    return current() ? *current() : own;
  }

 private:
  static const std::vector<Entry>*& current() {
    static const std::vector<Entry>* table = nullptr;
    return table;
  }

  std::vector<Entry> table_;
  const std::vector<Entry>* before_;
};

/// Defines Axis::table(). `list(entry)` is a macro that writes entry(f) for the function f of every kind. f()
/// returns the table entry of the kind.
// clang-format off
#define MOELAB_DECLARED(function) extern Entry function();
#define MOELAB_CALLED(function) function(),
#define MOELAB_TABLE(Axis, list)                                \
  const std::vector<Axis::Entry>& Axis::table() {               \
    list(MOELAB_DECLARED)                                       \
    static const std::vector<Entry> own = {list(MOELAB_CALLED)}; \
    return Extended<Axis>::table_or(own);                       \
  }
// clang-format on

}  // namespace moelab
