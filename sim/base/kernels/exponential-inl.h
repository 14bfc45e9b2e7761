// exp of vectors, compiled once per vector level.

#if defined(MOELAB_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_EXPONENTIAL_INL_H_
#undef MOELAB_EXPONENTIAL_INL_H_
#else
#define MOELAB_EXPONENTIAL_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "sim/base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// exp(x) of x ≤ 0, to 1.3 units in the last place; 1 for 0, and 0 where the result is below the smallest
/// normal float.
///
/// exp(x) = 2^n exp(r) with n the integer nearest x / ln 2 and |r| ≤ ln 2 / 2. Adding 1.5 · 2^23 + 127 rounds
/// x / ln 2 and leaves n + 127, the exponent of 2^n, in the lowest bits. ln 2 is taken off in two parts, the
/// first of which n multiplies exactly (Cody and Waite). The polynomial 1 + r + r² q(r) has the least
/// relative error of its degree, 3.1e-9. Three fifths of the time of Highway's Exp, which also has x > 0 and
/// subnormal results.
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
  // A product, and not a sum of exponents: NaN stays NaN.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365402F)), hn::Mul(p, power));
}

/// The same in double, by Highway.
HWY_INLINE Lanes16<double>::V exponential(Lanes16<double>::V x) {
  return hn::Exp(Lanes16<double>::d, x);
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
