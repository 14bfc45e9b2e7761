#pragma once

/// What the fields of typed options are made of; see options.h.

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace moelab {

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

}  // namespace moelab
