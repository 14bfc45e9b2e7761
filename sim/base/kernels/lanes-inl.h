// Vectors of any width as 16 lanes, compiled once per vector level (no include guard of the usual kind).

#if defined(MOELAB_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_LANES_INL_H_
#undef MOELAB_LANES_INL_H_
#else
#define MOELAB_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "sim/base/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// 16 lanes at any vector width: a fixed number of vectors, so that the order of sums does not depend on the
/// width.
template <class T>
struct Lanes16 {
  static constexpr hn::ScalableTag<T> d{};
  static constexpr int kWidth = static_cast<int>(hn::MaxLanes(d));
  static constexpr int kVectors = kWidth >= kPadding ? 1 : kPadding / kWidth;
  // A vector wider than 16 lanes does not exist on the levels that are compiled.
  static_assert(kWidth * kVectors == kPadding);
  using V = hn::Vec<decltype(d)>;
};

/// Of the vector at `at`, the lanes whose index is below `end`.
template <class T>
HWY_INLINE auto lanes_below(int end, int at) {
  using L = Lanes16<T>;
  return hn::FirstN(L::d, static_cast<std::size_t>(HWY_MAX(0, HWY_MIN(end - at, L::kWidth))));
}

/// Adds the lanes of a vector, the upper half to the lower until one is left.
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

/// The sum over `count` entries of what add(x, y, sum) adds to the sum for vectors of both.
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
HWY_INLINE T dot_lanes(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int count) {
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

/// Rows that are reduced side by side: the reduction of one over its lanes waits for its own steps, and a
/// short row holds little else. 256 rows of 64 take 5.2 µs instead of 12.9.
constexpr int kRowsAtOnce = 4;

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
