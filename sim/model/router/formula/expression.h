#pragma once

/// Formulas as text: from "-(norm(x)^2 - 2*dot(x, w)) / s" to a tree that knows where each part stands.

#include <stdexcept>
#include <string>
#include <vector>

namespace moelab {

/// What is wrong with a formula, and at which of its characters (from 0).
class FormulaError : public std::invalid_argument {
 public:
  FormulaError(std::size_t at, const std::string& message) : std::invalid_argument(message), at_(at) {}
  std::size_t at() const { return at_; }

 private:
  std::size_t at_;
};

/// A part of a formula.
struct FormulaExpression {
  enum class Kind { number, name, call, negate, add, subtract, multiply, divide, power };
  Kind kind = Kind::number;
  std::size_t at = 0;                    ///< its first character; of an operator the operator's
  double number = 0;                     ///< of a number
  std::string name;                      ///< of a name or a call
  std::vector<FormulaExpression> parts;  ///< arguments or operands, from left to right
};

/// Sums and differences of products and quotients of powers, from left to right; powers from right to left
/// and before a sign: -x^2 is -(x^2). Numbers are those of JSON, without a sign. Throws FormulaError.
FormulaExpression parse_formula(const std::string& text);

/// "at character 5, "+ w": …": the message of an error with its place, counted from 1.
std::string located(const std::string& text, const FormulaError& error);

}  // namespace moelab
