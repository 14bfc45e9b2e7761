// The largest entries of a row, compiled once per vector level.

#if defined(MOELAB_LARGEST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_LARGEST_INL_H_
#undef MOELAB_LARGEST_INL_H_
#else
#define MOELAB_LARGEST_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "sim/base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The first index from `begin` on with that value, or −1.
template <class T>
HWY_INLINE int first_equal(const T* values, T value, int begin, int count) {
  using L = Lanes16<T>;
  for (int j = begin / L::kWidth * L::kWidth; j < count; j += L::kWidth) {
    const auto equal = hn::Eq(hn::LoadU(L::d, values + j), hn::Set(L::d, value));
    const auto within = hn::AndNot(lanes_below<T>(begin, j), lanes_below<T>(count, j));
    const std::ptrdiff_t lane = hn::FindFirstTrue(L::d, hn::And(equal, within));
    if (lane >= 0) return j + static_cast<int>(lane);
  }
  return -1;
}

// A pass for the largest of what may still be taken and a search for its place, each k times: nothing depends
// on a comparison but how far the search goes. Entry by entry, two of 16 or 64 took half of a step of
// constant experts.
template <class T>
void find_largest_of(const T* values, int count, int k, int* found) {
  using L = Lanes16<T>;
  T limit = std::numeric_limits<T>::infinity();  // the last that was found, at the index `last`
  int last = -1;
  for (int i = 0; i < k; ++i) {
    auto best = hn::Set(L::d, -std::numeric_limits<T>::infinity());
    for (int j = 0; j < count; j += L::kWidth) {
      const auto value = hn::LoadU(L::d, values + j);
      const auto equal_after = hn::AndNot(lanes_below<T>(last + 1, j), hn::Eq(value, hn::Set(L::d, limit)));
      const auto may_be_taken =
          hn::And(hn::Or(hn::Lt(value, hn::Set(L::d, limit)), equal_after), lanes_below<T>(count, j));
      best = hn::IfThenElse(may_be_taken, hn::Max(best, value), best);
    }
    const T largest = hn::GetLane(hn::MaxOfLanes(L::d, best));
    int place = first_equal(values, largest, largest == limit ? last + 1 : 0, count);
    // What is left are no numbers: the first of them.
    for (int e = 0; place < 0; ++e) {
      if (std::find(found, found + i, e) == found + i) place = e;
    }
    found[i] = last = place;
    limit = largest;
  }
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
