// Normalization of rows, compiled once per vector level.

#if defined(MOELAB_ROW_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_ROW_NORM_INL_H_
#undef MOELAB_ROW_NORM_INL_H_
#else
#define MOELAB_ROW_NORM_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "sim/base/kernels/lanes-inl.h"
#include "sim/base/kernels/row_norm.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The mean of dim entries, padding zero.
template <class T>
HWY_INLINE T mean_lanes(const T* x, int dim) {
  using V = typename Lanes16<T>::V;
  const T sum = sum_lanes(x, x, padded(dim), [](V a, V /*a*/, V all) HWY_ATTR { return hn::Add(all, a); });
  return sum / static_cast<T>(dim);
}

/// x − mean at the vector `at`; padding stays.
template <class T>
HWY_INLINE typename Lanes16<T>::V less_mean(typename Lanes16<T>::V x, typename Lanes16<T>::V mean, int dim,
                                            int at) {
  return hn::IfThenElse(lanes_below<T>(dim, at), hn::Sub(x, mean), x);
}

// Rows side by side: the sums of one wait for its own lanes. Row by row, a kernel for every sum and product,
// there and back took 2.3 times as long (2048 rows of 64).
template <class T, int kRows>
HWY_INLINE void normalize_block(const RowNorm<T>& norm, int first, T* y) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const int stride = padded(norm.dim);
  const auto at = [&](int i) { return static_cast<std::ptrdiff_t>(first + i) * stride; };
  if (norm.bias) {
    V means[kRows];
    for (int i = 0; i < kRows; ++i) means[i] = hn::Set(L::d, mean_lanes(norm.normal + at(i), norm.dim));
    for (int j = 0; j < stride; j += L::kWidth) {
      for (int i = 0; i < kRows; ++i) {
        T* const x = norm.normal + at(i) + j;
        hn::StoreU(less_mean<T>(hn::LoadU(L::d, x), means[i], norm.dim, j), L::d, x);
      }
    }
  }
  V inverses[kRows];
  for (int i = 0; i < kRows; ++i) {
    const T* const x = norm.normal + at(i);
    const T square = dot_lanes(x, x, stride) / static_cast<T>(norm.dim);
    norm.inverse[first + i] = T(1) / std::sqrt(square + norm.floor);
    inverses[i] = hn::Set(L::d, norm.inverse[first + i]);
  }
  for (int j = 0; j < stride; j += L::kWidth) {
    const V gain = hn::LoadU(L::d, norm.gain + j);
    for (int i = 0; i < kRows; ++i) {
      T* const x = norm.normal + at(i) + j;
      const V normal = hn::Mul(inverses[i], hn::LoadU(L::d, x));
      hn::StoreU(normal, L::d, x);
      const V scaled = hn::Mul(gain, normal);
      hn::StoreU(norm.bias ? hn::Add(scaled, hn::LoadU(L::d, norm.bias + j)) : scaled, L::d, y + at(i) + j);
    }
  }
}

template <class T>
void normalize_rows_of(const RowNorm<T>& norm, T* y) {
  int row = 0;
  for (; row + kRowsAtOnce <= norm.rows; row += kRowsAtOnce) normalize_block<T, kRowsAtOnce>(norm, row, y);
  for (; row < norm.rows; ++row) normalize_block<T, 1>(norm, row, y);
}

template <class T, int kRows>
HWY_INLINE void normalize_block_backward(const RowNorm<T>& norm, const RowNormGradient<T>& gradient,
                                         int first) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const int stride = padded(norm.dim);
  const auto at = [&](int i) { return static_cast<std::ptrdiff_t>(first + i) * stride; };
  for (int j = 0; j < stride; j += L::kWidth) {
    const V gain = hn::LoadU(L::d, norm.gain + j);
    for (int i = 0; i < kRows; ++i) {
      hn::StoreU(hn::Mul(gain, hn::LoadU(L::d, gradient.output + at(i) + j)), L::d,
                 gradient.input + at(i) + j);
    }
  }
  V along[kRows], means[kRows], inverses[kRows];
  for (int i = 0; i < kRows; ++i) {
    const T* const scaled = gradient.input + at(i);
    along[i] = hn::Set(L::d, -(dot_lanes<T>(scaled, norm.normal + at(i), stride) / static_cast<T>(norm.dim)));
    means[i] = hn::Set(L::d, norm.bias ? mean_lanes<T>(scaled, norm.dim) : T(0));
    inverses[i] = hn::Set(L::d, norm.inverse[first + i]);
  }
  for (int j = 0; j < stride; j += L::kWidth) {
    for (int i = 0; i < kRows; ++i) {
      T* const place = gradient.input + at(i) + j;
      V scaled = hn::LoadU(L::d, place);
      if (norm.bias) scaled = less_mean<T>(scaled, means[i], norm.dim, j);
      scaled = hn::MulAdd(along[i], hn::LoadU(L::d, norm.normal + at(i) + j), scaled);
      hn::StoreU(hn::Mul(inverses[i], scaled), L::d, place);
    }
  }
}

template <class T>
void normalize_rows_backward_of(const RowNorm<T>& norm, const RowNormGradient<T>& gradient) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const int stride = padded(norm.dim);
  for (int j = 0; j < stride; j += L::kWidth) {
    V gain = hn::Zero(L::d), bias = hn::Zero(L::d);
    for (int row = 0; row < norm.rows; ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * stride + j;
      const V output = hn::LoadU(L::d, gradient.output + at);
      gain = hn::Add(gain, hn::Mul(output, hn::LoadU(L::d, norm.normal + at)));
      bias = hn::Add(bias, output);
    }
    hn::StoreU(gain, L::d, gradient.gain + j);
    if (norm.bias) hn::StoreU(bias, L::d, gradient.bias + j);
  }
  if (!gradient.input) return;
  int row = 0;
  for (; row + kRowsAtOnce <= norm.rows; row += kRowsAtOnce)
    normalize_block_backward<T, kRowsAtOnce>(norm, gradient, row);
  for (; row < norm.rows; ++row) normalize_block_backward<T, 1>(norm, gradient, row);
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
