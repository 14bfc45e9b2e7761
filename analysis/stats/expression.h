#pragma once

/// Arithmetic on swept paths and metrics: "model.experts / data.clusters", "2 * ( a + b )".

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/stats/intervals.h"

namespace moelab {

/// Numbers and names joined by + - * / (also − × ÷) between spaces, with the usual precedence, parentheses,
/// and the natural logarithm log ( … ). Values are intervals. An operation gives the smallest interval that
/// holds all its values, and a point (low = high) for two points.
class Expression {
 public:
  /// Throws InvalidOption at `path` for an invalid text, and for numbers without a value (1 / 0).
  static Expression parse(const std::string& text, const std::string& path);

  const std::vector<std::string>& names() const& { return names_; }
  std::vector<std::string> names() && { return std::move(names_); }
  /// Whether the expression is a single name.
  bool is_name() const { return steps_.size() == 1 && !names_.empty(); }

  /// The value for the names' values by `value_of`. None if a name has none, a divisor is 0 or a logarithm's
  /// argument is not above 0.
  std::optional<Interval> evaluate(
      const std::function<std::optional<Interval>(const std::string&)>& value_of) const;
  /// Whether the expression uses only ×, ÷ and +, positive numbers, and names for which `is_positive` holds.
  bool is_positive(const std::function<bool(const std::string&)>& is_positive) const;

 private:
  /// Appends an operator, or its value if both sides are numbers. False if that value is not finite.
  bool add(char operation);

  using Step = std::variant<double, std::string, char>;  ///< a number, a name, an operator

  std::vector<Step> steps_;  ///< in reverse Polish order
  std::vector<std::string> names_;
};

/// Comparisons of two expressions by < <= > >= = between spaces, joined by "and":
/// "data.train_samples >= 1000 and model.experts > data.clusters".
class Condition {
 public:
  /// Throws InvalidOption at `path` for an invalid text.
  static Condition parse(const std::string& text, const std::string& path);

  std::vector<std::string> names() const;
  /// Whether every comparison holds. A name without a value makes its comparison false.
  bool holds(const std::function<std::optional<double>(const std::string&)>& value_of) const;

 private:
  struct Part {
    Expression left, right;
    std::string comparison;
  };
  std::vector<Part> parts_;
};

}  // namespace moelab
