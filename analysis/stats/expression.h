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

/// Numbers and names joined by + - * / (also − × ÷), each between spaces, with the usual precedence,
/// parentheses, and log ( … ), the natural logarithm. What is only known to lie in an interval gives an
/// interval: the least that holds all values of the operation, exact where both sides are (low = high).
class Expression {
 public:
  /// Throws InvalidOption at `path` for a text that is none, and for numbers that have no value (1 / 0).
  static Expression parse(const std::string& text, const std::string& path);

  const std::vector<std::string>& names() const& { return names_; }
  std::vector<std::string> names() && { return std::move(names_); }
  /// A lone name, which needs no arithmetic.
  bool is_name() const { return steps_.size() == 1 && !names_.empty(); }

  /// The value where each name has that of `value_of`; none where one has none, a divisor is 0 or
  /// a logarithm's argument not above 0.
  std::optional<Interval> evaluate(
      const std::function<std::optional<Interval>(const std::string&)>& value_of) const;
  /// Built by ×, ÷ and + from positive numbers and names of which `is_positive` holds.
  bool is_positive(const std::function<bool(const std::string&)>& is_positive) const;

 private:
  /// Appends an operator, or the value where it joins numbers alone; false where that has no finite one.
  bool add(char operation);

  using Step = std::variant<double, std::string, char>;  ///< a number, a name, an operator

  std::vector<Step> steps_;  ///< in reverse Polish order
  std::vector<std::string> names_;
};

}  // namespace moelab
