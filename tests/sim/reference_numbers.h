#pragma once

/// Stored numbers of another implementation, and the comparison with them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/scenario/json.h"

namespace moelab {

/// Both sides compute a few hundred rounded operations in double, in another order: 1e-12 of the value's
/// scale (at least one) is thousands of units in the last place, and any error of a formula is far larger.
constexpr double kReferenceTolerance = 1e-12;

inline bool is_near(double value, double expected) {
  return std::abs(value - expected) <= kReferenceTolerance * std::max(1.0, std::abs(expected));
}

inline void append_numbers(const Json& value, std::vector<double>& numbers) {
  if (!value.is_array()) return numbers.push_back(value.get<double>());
  for (const Json& element : value) append_numbers(element, numbers);
}

/// A nested list of numbers, flat in C order.
inline std::vector<double> numbers_of(const Json& value) {
  std::vector<double> numbers;
  append_numbers(value, numbers);
  return numbers;
}

/// How many of the expected numbers are missed.
inline int misses(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  int count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) count += is_near(values[i], expected[i]) ? 0 : 1;
  return count;
}

}  // namespace moelab
