#pragma once

/// The entrywise operations of formulas, and their slopes.

#include <cmath>
#include <cstddef>
#include <type_traits>

#include "sim/base/kernels/kernels.h"
#include "sim/model/router/formula.h"

namespace moelab {

/// Calls map(f), where f(u, v) is the operation on entries of a and b.
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
      return map([](Real u, Real) { return u < 0 ? Real(0) : u; });  // NaN stays NaN
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

/// Calls to(is_second, f) for a and, if it exists, b. f(d, u, v) is the term that d = ∂L/∂result adds to the
/// gradient of a or b. u is the entry of a. v is the entry of b, or the result's entry if there is no b.
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

// Loops over results of a formula with different extents. A result has stride 0 on an axis over which it does
// not vary. The forward pass broadcasts it there, and the backward pass sums over the axis.

/// The data and strides of a result.
template <class T>
struct Strided {
  T* data = nullptr;
  std::ptrdiff_t row = 0, component = 0, column = 0, expert = 0;

  /// Column k of a matrix, which is a vector, and component k of a vector, which is a number.
  Strided column_at(int k) const { return {data + k * column, row, component, 0, expert}; }
  Strided component_at(int k) const { return {data + k * component, row, 0, 0, expert}; }
};

/// The strides of a result with this extent in its own array.
template <class T>
Strided<T> strided(T* data, const FormulaExtent& extent, int experts) {
  const std::ptrdiff_t stride = extent.experts ? kernels::padded(experts) : 1;
  const std::ptrdiff_t row = extent.experts     ? extent.length * stride
                             : extent.is_vector ? kernels::padded(extent.length)
                                                : 1;
  const std::ptrdiff_t column = extent.experts ? extent.length * stride : kernels::padded(extent.length);
  return {data, extent.rows ? row : 0, extent.is_vector || extent.columns > 0 ? stride : 0,
          extent.columns > 0 ? column : 0, extent.experts ? 1 : 0};
}

/// The entries of an extent as lines along its last axis: experts, else components, else rows.
class Lines {
 public:
  Lines(const FormulaExtent& extent, int rows, int experts) {
    const int all_rows = extent.rows ? rows : 1;
    axis_ = extent.experts ? Axis::expert : extent.is_vector ? Axis::component : Axis::row;
    rows_ = axis_ == Axis::row ? 1 : all_rows;
    components_ = axis_ == Axis::expert ? extent.length : 1;
    length_ = axis_ == Axis::expert ? experts : axis_ == Axis::component ? extent.length : all_rows;
  }
  int length() const { return length_; }
  template <class T>
  std::ptrdiff_t step(const Strided<T>& of) const {
    return axis_ == Axis::expert ? of.expert : axis_ == Axis::component ? of.component : of.row;
  }
  /// Calls visit(r, l) for every line; at(of, r, l) is the start of the line.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int r = 0; r < rows_; ++r) {
      for (int l = 0; l < components_; ++l) visit(r, l);
    }
  }
  template <class T>
  T* at(const Strided<T>& of, int r, int l) const {
    return of.data + (axis_ == Axis::row ? 0 : r * of.row) + (axis_ == Axis::expert ? l * of.component : 0);
  }

 private:
  enum class Axis { expert, component, row };
  Axis axis_;
  int rows_, components_, length_;
};

/// Calls call(first, second) with both truth values as types.
template <class Call>
void with_flags(bool first, bool second, const Call& call) {
  if (first && second) return call(std::true_type(), std::true_type());
  if (first) return call(std::true_type(), std::false_type());
  if (second) return call(std::false_type(), std::true_type());
  call(std::false_type(), std::false_type());
}

/// Entries that are processed together in a local array, which lets compilers vectorise the loop.
constexpr int kFormulaLanes = kernels::kPadding;

/// place[i] ← value(i), or place[i] + value(i) with `Adds`, for i < count.
template <bool Adds, class Real, class Value>
void write_line(Real* place, int count, const Value& value) {
  int i = 0;
  for (; i + kFormulaLanes <= count; i += kFormulaLanes) {
    Real lanes[kFormulaLanes];
    for (int lane = 0; lane < kFormulaLanes; ++lane) lanes[lane] = value(i + lane);
    for (int lane = 0; lane < kFormulaLanes; ++lane) {
      place[i + lane] = Adds ? place[i + lane] + lanes[lane] : lanes[lane];
    }
  }
  for (; i < count; ++i) place[i] = Adds ? place[i] + value(i) : value(i);
}

/// Σ_i value(i), i < count. Partial sums in lanes are added in a fixed order.
template <class Real, class Value>
Real sum_line(int count, const Value& value) {
  Real lanes[kFormulaLanes] = {};
  int i = 0;
  for (; i + kFormulaLanes <= count; i += kFormulaLanes) {
    for (int lane = 0; lane < kFormulaLanes; ++lane) lanes[lane] += value(i + lane);
  }
  for (int lane = 0; i < count; ++i, ++lane) lanes[lane] += value(i);
  for (int half = kFormulaLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

/// out ← f(a, b), entry by entry.
template <class Real, class F>
void map_lines(const Lines& lines, const Strided<const Real>& a, const Strided<const Real>& b,
               const Strided<Real>& out, const F& f) {
  with_flags(lines.step(a) != 0, lines.step(b) != 0, [&](auto moves_a, auto moves_b) {
    lines.for_each([&](int r, int l) {
      const Real* const left = lines.at(a, r, l);
      const Real* const right = lines.at(b, r, l);
      write_line<false>(lines.at(out, r, l), lines.length(),
                        [&](int i) { return f(left[moves_a ? i : 0], right[moves_b ? i : 0]); });
    });
  });
}

/// target ← target + f(g, a, b), entry by entry, summed over the axes that target lacks. With `Spreads` g may
/// also lack axes.
template <bool Spreads = false, class Real, class F>
void add_lines(const Lines& lines, const Strided<const Real>& g, const Strided<const Real>& a,
               const Strided<const Real>& b, const Strided<Real>& target, const F& f) {
  const std::ptrdiff_t step = Spreads ? lines.step(g) : 1;
  const bool gathers = lines.step(target) == 0;
  with_flags(lines.step(a) != 0, lines.step(b) != 0, [&](auto moves_a, auto moves_b) {
    lines.for_each([&](int r, int l) {
      const Real* const from = lines.at(g, r, l);
      const Real* const left = lines.at(a, r, l);
      const Real* const right = lines.at(b, r, l);
      Real* const to = lines.at(target, r, l);
      const auto value = [&](int i) {
        return f(from[Spreads ? i * step : i], left[moves_a ? i : 0], right[moves_b ? i : 0]);
      };
      if (gathers) {
        *to += sum_line<Real>(lines.length(), value);
      } else {
        write_line<true>(to, lines.length(), value);
      }
    });
  });
}

}  // namespace moelab
