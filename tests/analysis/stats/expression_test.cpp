#include "analysis/stats/expression.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "sim/base/error.h"

namespace moelab::expression_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::optional<Interval> value_of(const std::string& name) {
  if (name == "a.b") return Interval{6, 6};
  if (name == "c") return Interval{2, 2};
  if (name == "zero") return Interval{0, 0};
  if (name == "late") return Interval{100, kInfinity};  // right-censored
  return std::nullopt;
}

std::optional<Interval> value(const std::string& text) {
  return Expression::parse(text, "value").evaluate(value_of);
}

bool is(const std::string& text, double low, double high) {
  const std::optional<Interval> found = value(text);
  return found && found->low == low && found->high == high;
}

std::string refusal(const std::string& text) {
  try {
    Expression::parse(text, "claims[0].left.metric");
  } catch (const InvalidOption& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("expressions: precedence, parentheses, signs of printed arithmetic") {
  CHECK(is("a.b / c", 3, 3));
  CHECK(is("a.b - c - 1", 3, 3));
  CHECK(is("1 + a.b * c", 13, 13));
  CHECK(is("( 1 + a.b ) * c", 14, 14));
  CHECK(is("(1 + a.b) × c", 14, 14));
  CHECK(is("a.b ÷ c − -0.5", 3.5, 3.5));
  CHECK(is("a.b / c / c", 1.5, 1.5));
  CHECK(is("1e2", 100, 100));
  CHECK(is("log ( a.b )", std::log(6), std::log(6)));
  CHECK(is("1 + c * log(a.b / c)", 1 + 2 * std::log(3), 1 + 2 * std::log(3)));
  CHECK(is("( log ( a.b ) )", std::log(6), std::log(6)));
  CHECK(is("log ( late )", std::log(100), kInfinity));
  CHECK_FALSE(value("log ( zero )").has_value());
  CHECK_FALSE(value("a.b / zero").has_value());
  CHECK_FALSE(value("a.b + unknown").has_value());
}

TEST_CASE("expressions of what is only bounded are bounded") {
  CHECK(is("late + c", 102, kInfinity));
  CHECK(is("late / c", 50, kInfinity));
  CHECK(is("c / late", 0, 0.02));
  CHECK(is("a.b - late", -kInfinity, -94));
  CHECK(is("late - late", -kInfinity, kInfinity));
}

TEST_CASE("expressions: names, and what is positive") {
  const Expression ratio = Expression::parse("a.b / c + 2", "value");
  CHECK(ratio.names() == std::vector<std::string>{"a.b", "c"});
  CHECK_FALSE(ratio.is_name());
  CHECK(Expression::parse("a.b", "value").is_name());
  CHECK_FALSE(Expression::parse("2", "value").is_name());
  const auto all = [](const std::string&) { return true; };
  CHECK(ratio.is_positive(all));
  CHECK_FALSE(ratio.is_positive([](const std::string& name) { return name == "c"; }));
  CHECK_FALSE(Expression::parse("a.b - c", "value").is_positive(all));
  CHECK_FALSE(Expression::parse("a.b * -1", "value").is_positive(all));
}

TEST_CASE("expressions that are none are refused where they stand") {
  for (const char* text : {"", "a b", "a +", "+ a", "( a", "a )", "a * / b", "()"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("claims[0].left.metric: got '") == 0);
  }
  CHECK(refusal("a + ").find("ends early") != std::string::npos);
}

TEST_CASE("expressions of numbers that have no value are refused") {
  for (const char* text :
       {"c / 0", "c / ( 2 - 2 )", "1 + c / ( 0 * 3 )", "log ( 0 )", "c * log ( 1 - 2 )", "c + 1e308 * 10"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("divides by 0, takes the logarithm") != std::string::npos);
  }
  for (const char* text : {"c / ( a - a )", "log ( c - 5 )", "0 / 2", "c / zero"})
    CHECK(refusal(text).empty());
}

}  // namespace moelab::expression_test
