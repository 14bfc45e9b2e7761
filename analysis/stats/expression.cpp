#include "analysis/stats/expression.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// The words between spaces. Parentheses are separate words.
std::vector<std::string> expression_words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char letter : text) {
    if (letter == ' ') {
      words.emplace_back();
    } else if (letter == '(' || letter == ')') {
      words.emplace_back(1, letter);
      words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  std::erase(words, "");
  return words;
}

/// log ( … ) among the operators.
constexpr char kLog = 'l';

/// + - * / of a word; 0 for other words.
char operator_of(const std::string& word) {
  if (word == "+" || word == "-" || word == "*" || word == "/") return word[0];
  if (word == "−") return '-';
  if (word == "×") return '*';
  return word == "÷" ? '/' : '\0';
}

int precedence(char operation) {
  return operation == '*' || operation == '/' ? 2 : operation == '(' || operation == kLog ? 0 : 1;
}

std::optional<double> number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool is_whole = error == std::errc() && end == word.data() + word.size();
  return is_whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// The interval of the values, or all numbers if one of them is NaN.
Interval hull(std::initializer_list<double> values) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); }))
    return {-infinity, infinity};
  return {std::min(values), std::max(values)};
}

std::optional<Interval> log_of(const Interval& argument) {
  if (argument.low <= 0) return std::nullopt;
  return Interval{std::log(argument.low), std::log(argument.high)};
}

/// A logarithm has its argument on the right, and no left side.
std::optional<Interval> apply(char operation, const Interval& left, const Interval& right) {
  switch (operation) {
    case kLog:
      return log_of(right);
    case '+':
      return Interval{left.low + right.low, left.high + right.high};
    case '-':
      return hull({left.low - right.high, left.high - right.low});
    case '*':
      return hull(
          {left.low * right.low, left.low * right.high, left.high * right.low, left.high * right.high});
    default:
      break;
  }
  if (right.low <= 0 && right.high >= 0) return std::nullopt;
  return hull({left.low / right.low, left.low / right.high, left.high / right.low, left.high / right.high});
}

}  // namespace

Expression Expression::parse(const std::string& text, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidOption(path, fmt::format("got '{}', {}; needs names and numbers joined by + - * /, with "
                                          "spaces around each operator, and log ( … )",
                                          text, why));
  };
  Expression expression;
  std::vector<char> open;  // operators and parentheses without their right side
  const auto add = [&](char operation) {
    if (!expression.add(operation))
      refuse("which divides by 0, takes the logarithm of a number not above 0 or is beyond all numbers");
  };
  const auto close = [&](int least) {
    while (!open.empty() && open.back() != '(' && precedence(open.back()) >= least) {
      add(open.back());
      open.pop_back();
    }
  };
  bool wants_value = true;
  const std::vector<std::string> words = expression_words(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (wants_value && word == "log" && i + 1 < words.size() && words[i + 1] == "(") {
      open.push_back(kLog);
      continue;
    }
    const char operation = operator_of(word);
    if (wants_value != (operation == 0 && word != ")"))
      refuse(fmt::format("where '{}' stands in the wrong place", word));
    if (word == "(") {
      open.push_back('(');
    } else if (word == ")") {
      close(1);
      if (open.empty()) refuse("where ')' closes nothing");
      open.pop_back();
      if (!open.empty() && open.back() == kLog) {
        add(kLog);
        open.pop_back();
      }
    } else if (operation != 0) {
      close(precedence(operation));
      open.push_back(operation);
      wants_value = true;
    } else {
      if (const std::optional<double> number = number_of(word)) {
        expression.steps_.emplace_back(*number);
      } else {
        expression.steps_.emplace_back(word);
        expression.names_.push_back(word);
      }
      wants_value = false;
    }
  }
  if (wants_value) refuse("which ends early");
  close(1);
  if (!open.empty()) refuse("where '(' stays open");
  return expression;
}

bool Expression::add(char operation) {
  const auto number = [&](std::size_t back) {
    return steps_.size() < back ? nullptr : std::get_if<double>(&steps_[steps_.size() - back]);
  };
  const auto exact = [](double value) { return Interval{value, value}; };
  const double* const right = number(1);
  const double* const left = operation == kLog ? right : number(2);
  if (operation == '/' && right && *right == 0) return false;
  if (!left || !right) {
    steps_.emplace_back(operation);
    return true;
  }
  const std::optional<Interval> value = apply(operation, exact(*left), exact(*right));
  if (!value || !std::isfinite(value->low)) return false;
  if (operation != kLog) steps_.pop_back();
  steps_.back() = value->low;
  return true;
}

std::optional<Interval> Expression::evaluate(
    const std::function<std::optional<Interval>(const std::string&)>& value_of) const {
  std::vector<Interval> stack;
  for (const Step& step : steps_) {
    std::optional<Interval> value;
    if (const double* const number = std::get_if<double>(&step)) {
      value = Interval{*number, *number};
    } else if (const std::string* const name = std::get_if<std::string>(&step)) {
      value = value_of(*name);
    } else {
      const char operation = std::get<char>(step);
      const Interval right = stack.back();
      if (operation != kLog) stack.pop_back();
      value = apply(operation, stack.back(), right);
      stack.pop_back();
    }
    if (!value) return std::nullopt;
    stack.push_back(*value);
  }
  return stack.back();
}

bool Expression::is_positive(const std::function<bool(const std::string&)>& positive_name) const {
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    if (const double* const number = std::get_if<double>(&step)) return *number > 0;
    if (const std::string* const name = std::get_if<std::string>(&step)) return positive_name(*name);
    return std::get<char>(step) != '-' && std::get<char>(step) != kLog;
  });
}

namespace {

bool compares(const std::string& comparison, double left, double right) {
  if (comparison == "<") return left < right;
  if (comparison == "<=") return left <= right;
  if (comparison == ">") return left > right;
  return comparison == ">=" ? left >= right : left == right;
}

}  // namespace

Condition Condition::parse(const std::string& text, const std::string& path) {
  Condition condition;
  std::string left, right, comparison;
  const auto close = [&] {
    if (comparison.empty()) {
      throw InvalidOption(path, fmt::format("got '{}'; needs comparisons by < <= > >= = between spaces, "
                                            "joined by \"and\": \"data.train_samples >= 1000\"",
                                            text));
    }
    condition.parts_.push_back({Expression::parse(left, path), Expression::parse(right, path), comparison});
    left = right = comparison = "";
  };
  for (const std::string& word : expression_words(text)) {
    const bool is_comparison = word == "<" || word == "<=" || word == ">" || word == ">=" || word == "=";
    if (word == "and")
      close();
    else if (is_comparison && comparison.empty())
      comparison = word;
    else
      (comparison.empty() ? left : right) += word + " ";
  }
  close();
  return condition;
}

std::vector<std::string> Condition::names() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) {
    for (const Expression* side : {&part.left, &part.right})
      names.insert(names.end(), side->names().begin(), side->names().end());
  }
  return names;
}

bool Condition::holds(const std::function<std::optional<double>(const std::string&)>& value_of) const {
  const auto value = [&](const std::string& name) -> std::optional<Interval> {
    const std::optional<double> number = value_of(name);
    return number ? std::optional(Interval{*number, *number}) : std::nullopt;
  };
  return std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    const std::optional<Interval> left = part.left.evaluate(value), right = part.right.evaluate(value);
    return left && right && compares(part.comparison, left->low, right->low);
  });
}

}  // namespace moelab
