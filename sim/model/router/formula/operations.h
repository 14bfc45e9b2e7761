#pragma once

/// The operations of formulas that go entry by entry, and their slopes.

#include <cmath>

#include "sim/model/router/formula/graph.h"

namespace moelab {

/// Calls map(f), f(u, v) the operation on entries of a and b.
template <class Real, class Map>
void apply_operation(FormulaNode::Kind kind, Real number, const Map& map) {
  using Kind = FormulaNode::Kind;
  switch (kind) {
    case Kind::spread:
      return map([](Real u, Real) { return u; });
    case Kind::negate:
      return map([](Real u, Real) { return -u; });
    case Kind::exp:
      return map([](Real u, Real) { return std::exp(u); });
    case Kind::log:
      return map([](Real u, Real) { return std::log(u); });
    case Kind::tanh:
      return map([](Real u, Real) { return std::tanh(u); });
    case Kind::relu:
      return map([](Real u, Real) { return u < 0 ? Real(0) : u; });  // what is not a number stays so
    case Kind::abs:
      return map([](Real u, Real) { return std::abs(u); });
    case Kind::root:
      return map([](Real u, Real) { return std::sqrt(u); });
    case Kind::inverse:
      return map([](Real u, Real) { return u == 0 ? Real(0) : 1 / u; });
    case Kind::power:
      if (number == 2) return map([](Real u, Real) { return u * u; });
      return map([number](Real u, Real) { return std::pow(u, number); });
    case Kind::at_least:
      return map([number](Real u, Real) { return u < number ? number : u; });
    case Kind::add:
      return map([](Real u, Real v) { return u + v; });
    case Kind::subtract:
      return map([](Real u, Real v) { return u - v; });
    case Kind::multiply:
      return map([](Real u, Real v) { return u * v; });
    case Kind::divide:
      return map([](Real u, Real v) { return u / v; });
    default:
      return;
  }
}

/// Calls to(is_second, f) for a and, where there is one, b: f(d, u, v) is what ∂L/∂ of the result, d, adds to
/// theirs; u is the entry of a, v that of b, or the result's where there is no b.
template <class Real, class To>
void pull_operation(FormulaNode::Kind kind, Real number, const To& to) {
  using Kind = FormulaNode::Kind;
  switch (kind) {
    case Kind::spread:
      return to(false, [](Real d, Real, Real) { return d; });
    case Kind::negate:
      return to(false, [](Real d, Real, Real) { return -d; });
    case Kind::exp:
      return to(false, [](Real d, Real, Real v) { return d * v; });
    case Kind::log:
      return to(false, [](Real d, Real u, Real) { return d / u; });
    case Kind::tanh:
      return to(false, [](Real d, Real, Real v) { return d * (1 - v * v); });
    case Kind::relu:
      return to(false, [](Real d, Real u, Real) { return u > 0 ? d : Real(0); });
    case Kind::abs:
      return to(false, [](Real d, Real u, Real) { return u > 0 ? d : u < 0 ? -d : Real(0); });
    case Kind::root:
      return to(false, [](Real d, Real, Real v) { return v > 0 ? d / (2 * v) : Real(0); });
    case Kind::inverse:
      return to(false, [](Real d, Real, Real v) { return -d * v * v; });
    case Kind::power:
      if (number == 2) return to(false, [](Real d, Real u, Real) { return 2 * d * u; });
      return to(false, [number](Real d, Real u, Real) { return d * number * std::pow(u, number - 1); });
    case Kind::at_least:
      return to(false, [number](Real d, Real u, Real) { return u < number && d > 0 ? Real(0) : d; });
    case Kind::add:
      to(false, [](Real d, Real, Real) { return d; });
      return to(true, [](Real d, Real, Real) { return d; });
    case Kind::subtract:
      to(false, [](Real d, Real, Real) { return d; });
      return to(true, [](Real d, Real, Real) { return -d; });
    case Kind::multiply:
      to(false, [](Real d, Real, Real v) { return d * v; });
      return to(true, [](Real d, Real u, Real) { return d * u; });
    case Kind::divide:
      to(false, [](Real d, Real, Real v) { return d / v; });
      return to(true, [](Real d, Real u, Real v) { return -d * u / (v * v); });
    default:
      return;
  }
}

}  // namespace moelab
