#pragma once

/// A choice between the kinds of an axis (routers, experts, generators, …), with the options of the chosen
/// one: a value that is copied like any other.

#include <any>
#include <string>
#include <typeinfo>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/options.h"

namespace moelab {

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
