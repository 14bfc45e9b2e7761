// Vectors of any width as 16 lanes, and their exponential. Compiled once per vector level, like every -inl.h
// here: the guard below lets each level include the file once.

#if defined(MOELAB_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_LANES_INL_H_
#undef MOELAB_LANES_INL_H_
#else
#define MOELAB_LANES_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstddef>

#include "sim/base/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// 16 lanes as a fixed number of vectors, so that the order of sums does not depend on the vector width.
template <class T>
struct Lanes16 {
  static constexpr hn::ScalableTag<T> d{};
  static constexpr int kWidth = static_cast<int>(hn::MaxLanes(d));
  static constexpr int kVectors = kWidth >= kPadding ? 1 : kPadding / kWidth;
  // No compiled level has vectors of more than 16 lanes.
  static_assert(kWidth * kVectors == kPadding);
  using V = hn::Vec<decltype(d)>;
};

/// The mask of those lanes of the vector at `at` whose index is below `end`.
template <class T>
HWY_INLINE auto lanes_below(int end, int at) {
  using L = Lanes16<T>;
  return hn::FirstN(L::d, static_cast<std::size_t>(HWY_MAX(0, HWY_MIN(end - at, L::kWidth))));
}

/// The sum of the lanes of a vector: the upper half is added to the lower until one lane is left.
template <class D>
HWY_INLINE hn::TFromD<D> add_halves(D /*d*/, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return add_halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// Adds 16 lanes in the tree (i, i+8), (i, i+4), (i, i+2), (i, i+1), at any vector width.
template <class T>
HWY_INLINE T add_lanes(const typename Lanes16<T>::V (&sums)[Lanes16<T>::kVectors]) {
  using L = Lanes16<T>;
  typename L::V tree[L::kVectors];
  for (int v = 0; v < L::kVectors; ++v) tree[v] = sums[v];
  for (int half = L::kVectors / 2; half > 0; half /= 2) {
    for (int v = 0; v < half; ++v) tree[v] = hn::Add(tree[v], tree[v + half]);
  }
  return add_halves(L::d, tree[0]);
}

/// The sum over `count` entries, where add(x, y, sum) adds vectors of both to the sum.
template <class T, class Add>
HWY_INLINE T sum_lanes(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int count, const Add& add) {
  using L = Lanes16<T>;
  typename L::V sums[L::kVectors];
  for (auto& sum : sums) sum = hn::Zero(L::d);
  for (int j = 0; j < count; j += kPadding) {
    for (int v = 0; v < L::kVectors; ++v) {
      const int at = j + v * L::kWidth;
      sums[v] = add(hn::LoadU(L::d, x + at), hn::LoadU(L::d, y + at), sums[v]);
    }
  }
  return add_lanes<T>(sums);
}

template <class T>
HWY_INLINE T dot_of(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int count) {
  using V = typename Lanes16<T>::V;
  return sum_lanes(x, y, count, [](V a, V b, V sum) HWY_ATTR { return hn::MulAdd(a, b, sum); });
}

template <class T>
HWY_INLINE T squared_distance_lanes(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int count) {
  using V = typename Lanes16<T>::V;
  return sum_lanes(x, y, count, [](V a, V b, V sum) HWY_ATTR {
    const V difference = hn::Sub(a, b);
    return hn::MulAdd(difference, difference, sum);
  });
}

/// Rows that are reduced at the same time. The reduction of one row over its lanes waits for its own steps,
/// and a short row has little else to do. 256 rows of 64 take 5.2 µs instead of 12.9.
constexpr int kRowsAtOnce = 4;

/// exp(x) of x ≤ 0, to 1.3 units in the last place. It is 1 for 0, and 0 if the result is below the smallest
/// normal float.
///
/// exp(x) = 2^n exp(r), with n the integer nearest to x / ln 2 and |r| ≤ ln 2 / 2. Adding 1.5 · 2^23 + 127
/// rounds x / ln 2 and leaves n + 127, the exponent of 2^n, in the lowest bits. ln 2 is subtracted in two
/// parts, and n times the first part is exact (Cody and Waite). The polynomial 1 + r + r² q(r) has the least
/// relative error of its degree, 3.1e-9. This takes three fifths of the time of Highway's Exp, which also
/// handles x > 0 and subnormal results.
HWY_INLINE Lanes16<float>::V exponential(Lanes16<float>::V x) {
  using V = Lanes16<float>::V;
  constexpr auto d = Lanes16<float>::d;
  const hn::RebindToUnsigned<decltype(Lanes16<float>::d)> bits;
  const V rounding = hn::Set(d, 12582912.0F + 127.0F);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504F), rounding);
  const V n = hn::Sub(rounded, rounding);
  const V r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x));
  V p = hn::MulAdd(r, hn::Set(d, 0.00138145406F), hn::Set(d, 0.00836874545F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041668389F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665211F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, rounded)));
  // A product instead of a sum of exponents: NaN stays NaN.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365402F)), hn::Mul(p, power));
}

/// The same in double, from Highway, whose exponential of NaN is 0.
HWY_INLINE Lanes16<double>::V exponential(Lanes16<double>::V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Lanes16<double>::d, x));
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
