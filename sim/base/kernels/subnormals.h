#pragma once

/// Subnormal numbers, which lie below the smallest normal one: 1.2e-38 in float.

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace moelab::kernels {

/// Takes subnormal numbers as zero, in inputs and results, while it lives on this thread.
///
/// The velocity of a weight without gradient decays to subnormal numbers within some 800 steps, and rounding
/// keeps it from ever reaching zero. Many processors take a hundred times as long for arithmetic with such
/// numbers. No weight above 1e-30 notices the difference.
class SubnormalsAsZero {
 public:
#if defined(__SSE__)
  SubnormalsAsZero() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | 0x8040U);
  }  // flush to zero, denormals are zero
  ~SubnormalsAsZero() {
    _mm_setcsr(before_);
  }
#elif defined(__aarch64__)
  SubnormalsAsZero() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | (std::uint64_t{1} << 24)));
  }
  ~SubnormalsAsZero() {
    asm volatile("msr fpcr, %0" : : "r"(before_));
  }
#endif
  SubnormalsAsZero(const SubnormalsAsZero&) = delete;
  SubnormalsAsZero& operator=(const SubnormalsAsZero&) = delete;

 private:
#if defined(__SSE__)
  unsigned before_;
#elif defined(__aarch64__)
  std::uint64_t before_ = 0;
#endif
};

}  // namespace moelab::kernels
