#include "sim/model/router/formula/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace moelab {
namespace {

/// Brackets and signs inside one another, at most.
constexpr int kDeepest = 200;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Recursive descent, a function for each level of precedence.
class FormulaParser {
 public:
  explicit FormulaParser(const std::string& text) : text_(text) {}

  FormulaExpression whole() {
    FormulaExpression expression = sum();
    if (at_ == text_.size()) return expression;
    throw FormulaError(at_, text_[at_] == ')' ? "a ')' without its '('" : "needs an operator or the end");
  }

 private:
  using Kind = FormulaExpression::Kind;

  /// The next character but for blanks, '\0' at the end.
  char next() {
    while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  static FormulaExpression joined(Kind kind, std::size_t at, FormulaExpression left,
                                  FormulaExpression right) {
    FormulaExpression expression{kind, at, 0, {}, {}};
    expression.parts.push_back(std::move(left));
    expression.parts.push_back(std::move(right));
    return expression;
  }

  FormulaExpression sum() {
    FormulaExpression left = product();
    for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
      const std::size_t at = at_++;
      left = joined(sign == '+' ? Kind::add : Kind::subtract, at, std::move(left), product());
    }
    return left;
  }

  FormulaExpression product() {
    FormulaExpression left = factor();
    for (char sign = next(); sign == '*' || sign == '/'; sign = next()) {
      const std::size_t at = at_++;
      left = joined(sign == '*' ? Kind::multiply : Kind::divide, at, std::move(left), factor());
    }
    return left;
  }

  FormulaExpression factor() {
    if (++depth_ > kDeepest) throw FormulaError(at_, fmt::format("needs at most {} levels", kDeepest));
    FormulaExpression expression = next() == '-' ? negated() : power();
    --depth_;
    return expression;
  }
  FormulaExpression negated() {
    FormulaExpression expression{Kind::negate, at_++, 0, {}, {}};
    expression.parts.push_back(factor());
    return expression;
  }

  FormulaExpression power() {
    FormulaExpression base = atom();
    if (next() != '^') return base;
    const std::size_t at = at_++;
    return joined(Kind::power, at, std::move(base), factor());
  }

  FormulaExpression atom() {
    const char first = next();
    const std::size_t begin = at_;
    if (first == '(') {
      ++at_;
      FormulaExpression inside = sum();
      close(begin);
      return inside;
    }
    if (is_digit(first) || first == '.') return number();
    if (!is_letter(first)) {
      throw FormulaError(begin, begin == text_.size() ? "ends where a number, a name or '(' is needed"
                                                      : "needs a number, a name or '('");
    }
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    FormulaExpression expression{Kind::name, begin, 0, text_.substr(begin, at_ - begin), {}};
    if (next() != '(') return expression;
    expression.kind = Kind::call;
    const std::size_t bracket = at_++;
    expression.parts.push_back(sum());
    while (next() == ',') {
      ++at_;
      expression.parts.push_back(sum());
    }
    close(bracket);
    return expression;
  }

  FormulaExpression number() {
    FormulaExpression expression{Kind::number, at_, 0, {}, {}};
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), expression.number);
    if (error != std::errc() || !std::isfinite(expression.number)) {
      throw FormulaError(at_, "needs a finite number");
    }
    at_ += static_cast<std::size_t>(end - begin);
    return expression;
  }

  /// Takes the ')' of the '(' at `open`.
  void close(std::size_t open) {
    if (next() == ')') {
      ++at_;
    } else if (at_ == text_.size()) {
      throw FormulaError(open, "a '(' without its ')'");
    } else {
      throw FormulaError(at_, "needs an operator, ',' or ')'");
    }
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

FormulaExpression parse_formula(const std::string& text) {
  return FormulaParser(text).whole();
}

std::string located(const std::string& text, const FormulaError& error) {
  constexpr std::size_t kShown = 12;
  if (error.at() >= text.size()) return fmt::format("at the end: {}", error.what());
  // Characters may have several bytes, of which all but the first are 10xxxxxx.
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  const auto at = text.begin() + static_cast<std::ptrdiff_t>(error.at());
  const auto place = 1 + std::count_if(text.begin(), at, begins);
  std::size_t end = std::min(text.size(), error.at() + kShown);
  while (end < text.size() && !begins(text[end])) ++end;
  return fmt::format("at character {}, \"{}{}\": {}", place, text.substr(error.at(), end - error.at()),
                     end < text.size() ? "…" : "", error.what());
}

}  // namespace moelab
