// Softmax of rows, compiled once per vector level.

#if defined(MOELAB_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_SOFTMAX_INL_H_
#undef MOELAB_SOFTMAX_INL_H_
#else
#define MOELAB_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "sim/base/kernels/exponential-inl.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// exp(x − peak) of 16 lanes into `out`, added to `sums`.
template <class T>
HWY_INLINE void exponentials(const T* in, typename Lanes16<T>::V peak, T* out,
                             typename Lanes16<T>::V (&sums)[Lanes16<T>::kVectors]) {
  using L = Lanes16<T>;
  for (int v = 0; v < L::kVectors; ++v) {
    const int at = v * L::kWidth;
    const typename L::V value = exponential(hn::Sub(hn::LoadU(L::d, in + at), peak));
    hn::StoreU(value, L::d, out + at);
    sums[v] = hn::Add(sums[v], value);
  }
}

template <class T, int kRows>
HWY_INLINE void softmax_block(const T* scores, T* probabilities, int columns, std::ptrdiff_t stride) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const int full = columns / kPadding * kPadding;
  const int end = padded(columns);
  // Of the last, partial group the vectors that hold columns, and the lanes of each that do; rows reach to a
  // multiple of 16 entries, so that whole vectors may be read.
  const int vectors = (columns - full + L::kWidth - 1) / L::kWidth;
  const auto columns_of = [&](int v) {
    return hn::FirstN(L::d, static_cast<std::size_t>(HWY_MIN(columns - full - v * L::kWidth, L::kWidth)));
  };
  V peaks[kRows], sums[kRows][L::kVectors];
  for (int i = 0; i < kRows; ++i) {
    const T* in = scores + i * stride;
    peaks[i] = hn::Set(L::d, in[0]);
    for (int j = 0; j < full; j += L::kWidth) peaks[i] = hn::Max(peaks[i], hn::LoadU(L::d, in + j));
    for (int v = 0; v < vectors; ++v) {
      const V larger = hn::Max(peaks[i], hn::LoadU(L::d, in + full + v * L::kWidth));
      peaks[i] = hn::IfThenElse(columns_of(v), larger, peaks[i]);
    }
  }
  for (int i = 0; i < kRows; ++i) peaks[i] = hn::MaxOfLanes(L::d, peaks[i]);
  for (int i = 0; i < kRows; ++i) {
    for (V& sum : sums[i]) sum = hn::Zero(L::d);
  }
  for (int j = 0; j < full; j += kPadding) {
    for (int i = 0; i < kRows; ++i) {
      exponentials(scores + i * stride + j, peaks[i], probabilities + i * stride + j, sums[i]);
    }
  }
  for (int v = 0; v < vectors; ++v) {
    for (int i = 0; i < kRows; ++i) {
      const std::ptrdiff_t at = i * stride + full + v * L::kWidth;
      const V value =
          hn::IfThenElseZero(columns_of(v), exponential(hn::Sub(hn::LoadU(L::d, scores + at), peaks[i])));
      hn::StoreU(value, L::d, probabilities + at);
      sums[i][v] = hn::Add(sums[i][v], value);
    }
  }
  for (int j = full + vectors * L::kWidth; j < end; j += L::kWidth) {
    for (int i = 0; i < kRows; ++i) hn::StoreU(hn::Zero(L::d), L::d, probabilities + i * stride + j);
  }
  V inverses[kRows];
  for (int i = 0; i < kRows; ++i) inverses[i] = hn::Set(L::d, T(1) / add_lanes<T>(sums[i]));
  for (int j = 0; j < end; j += L::kWidth) {
    for (int i = 0; i < kRows; ++i) {
      T* const out = probabilities + i * stride + j;
      hn::StoreU(hn::Mul(hn::LoadU(L::d, out), inverses[i]), L::d, out);
    }
  }
}

template <class T>
void softmax_rows_of(const T* scores, T* probabilities, int rows, int columns, int stride) {
  int row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * stride;
    softmax_block<T, kRowsAtOnce>(scores + at, probabilities + at, columns, stride);
  }
  for (; row < rows; ++row) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * stride;
    softmax_block<T, 1>(scores + at, probabilities + at, columns, stride);
  }
}

template <class T>
void log_softmax_rows_of(T* scores, T* probabilities, int rows, int columns, int stride) {
  using L = Lanes16<T>;
  using V = typename L::V;
  softmax_rows_of(scores, probabilities, rows, columns, stride);
  const int full = columns / L::kWidth * L::kWidth;
  const auto last = hn::FirstN(L::d, static_cast<std::size_t>(columns - full));
  for (int row = 0; row < rows; ++row) {
    T* const values = scores + static_cast<std::ptrdiff_t>(row) * stride;
    const T* const of_row = probabilities + static_cast<std::ptrdiff_t>(row) * stride;
    V peaks = hn::Set(L::d, values[0]), largest = hn::Zero(L::d);
    for (int j = 0; j < full; j += L::kWidth) {
      peaks = hn::Max(peaks, hn::LoadU(L::d, values + j));
      largest = hn::Max(largest, hn::LoadU(L::d, of_row + j));
    }
    if (full < columns) {
      peaks = hn::IfThenElse(last, hn::Max(peaks, hn::LoadU(L::d, values + full)), peaks);
      largest = hn::Max(largest, hn::LoadU(L::d, of_row + full));
    }
    const V peak = hn::MaxOfLanes(L::d, peaks);
    const V log_peak = hn::Set(L::d, std::log(hn::GetLane(hn::MaxOfLanes(L::d, largest))));
    for (int j = 0; j < full; j += L::kWidth) {
      hn::StoreU(hn::Add(hn::Sub(hn::LoadU(L::d, values + j), peak), log_peak), L::d, values + j);
    }
    if (full == columns) continue;
    const V rest = hn::LoadU(L::d, values + full);
    hn::StoreU(hn::IfThenElse(last, hn::Add(hn::Sub(rest, peak), log_peak), rest), L::d, values + full);
  }
}

template <class T>
void softmax_backward_rows_of(const T* probabilities, const T* gradient, T* score_gradient, int rows,
                              int columns, int stride) {
  using L = Lanes16<T>;
  const int end = padded(columns);
  for (int row = 0; row < rows; ++row) {
    const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(row) * stride;
    const T* r = probabilities + start;
    const T* g = gradient + start;
    T* out = score_gradient + start;
    const typename L::V mean = hn::Set(L::d, dot_lanes(r, g, end));
    const auto value_at = [&](int j) {
      return hn::Mul(hn::LoadU(L::d, r + j), hn::Sub(hn::LoadU(L::d, g + j), mean));
    };
    int j = 0;
    for (; j + L::kWidth <= columns; j += L::kWidth) hn::StoreU(value_at(j), L::d, out + j);
    // Behind the columns 0, or what is not finite would be read by the next pass, in place, for ever.
    for (; j < end; j += L::kWidth) {
      const auto of_columns = hn::FirstN(L::d, static_cast<std::size_t>(HWY_MAX(columns - j, 0)));
      hn::StoreU(hn::IfThenElseZero(of_columns, value_at(j)), L::d, out + j);
    }
  }
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
