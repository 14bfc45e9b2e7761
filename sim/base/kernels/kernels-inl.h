// Kernels over rows and flat arrays, compiled once per vector level (no include guard of the usual kind).

#if defined(MOELAB_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_KERNELS_INL_H_
#undef MOELAB_KERNELS_INL_H_
#else
#define MOELAB_KERNELS_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
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

template <class T>
HWY_INLINE T dot_lanes(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int count) {
  using L = Lanes16<T>;
  typename L::V sums[L::kVectors];
  for (auto& sum : sums) sum = hn::Zero(L::d);
  for (int j = 0; j < count; j += kPadding) {
    for (int v = 0; v < L::kVectors; ++v) {
      const int at = j + v * L::kWidth;
      sums[v] = hn::MulAdd(hn::LoadU(L::d, x + at), hn::LoadU(L::d, y + at), sums[v]);
    }
  }
  return add_lanes<T>(sums);
}

/// Rows that are reduced side by side: the reduction of one over its lanes waits for its own steps, and a
/// short row holds little else. 256 rows of 64 take 5.2 µs instead of 12.9.
constexpr int kRowsAtOnce = 4;

/// exp(x − peak) of 16 lanes into `out`, added to `sums`.
template <class T>
HWY_INLINE void exponentials(const T* in, typename Lanes16<T>::V peak, T* out,
                             typename Lanes16<T>::V (&sums)[Lanes16<T>::kVectors]) {
  using L = Lanes16<T>;
  for (int v = 0; v < L::kVectors; ++v) {
    const int at = v * L::kWidth;
    const typename L::V value = hn::Exp(L::d, hn::Sub(hn::LoadU(L::d, in + at), peak));
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
          hn::IfThenElseZero(columns_of(v), hn::Exp(L::d, hn::Sub(hn::LoadU(L::d, scores + at), peaks[i])));
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
    for (int j = 0; j < end; j += L::kWidth) {
      hn::StoreU(hn::Mul(hn::LoadU(L::d, r + j), hn::Sub(hn::LoadU(L::d, g + j), mean)), L::d, out + j);
    }
  }
}

template <class T>
void sum_rows_of(const T* a, int rows, int columns, std::ptrdiff_t stride, T* sums) {
  using L = Lanes16<T>;
  const int end = padded(columns);
  for (int j = 0; j < end; j += L::kWidth) {
    typename L::V sum = hn::Zero(L::d);
    for (int row = 0; row < rows; ++row) sum = hn::Add(sum, hn::LoadU(L::d, a + row * stride + j));
    hn::StoreU(sum, L::d, sums + j);
  }
}

template <class T>
void add_scaled_of(T scale, const T* x, T* y, int count) {
  using L = Lanes16<T>;
  const typename L::V factor = hn::Set(L::d, scale);
  for (int j = 0; j < count; j += L::kWidth) {
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(L::d, x + j), hn::LoadU(L::d, y + j)), L::d, y + j);
  }
}

template <class T>
void dot_rows_of(const RowsOf<const T>& x, const RowsOf<const T>& y, int rows, int count,
                 const RowsOf<T>& sums) {
  T values[kRowsAtOnce];
  int row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
#pragma GCC unroll 4
    for (int i = 0; i < kRowsAtOnce; ++i) values[i] = dot_lanes(x.row(row + i), y.row(row + i), count);
    for (int i = 0; i < kRowsAtOnce; ++i) *sums.row(row + i) = values[i];
  }
  for (; row < rows; ++row) *sums.row(row) = dot_lanes(x.row(row), y.row(row), count);
}

template <class T>
void scale_rows_of(const RowsOf<const T>& scales, const RowsOf<const T>& x, int rows, int count,
                   const RowsOf<T>& y) {
  using L = Lanes16<T>;
  for (int row = 0; row < rows; ++row) {
    const typename L::V factor = hn::Set(L::d, *scales.row(row));
    const T* from = x.row(row);
    T* to = y.row(row);
    for (int j = 0; j < count; j += L::kWidth) {
      hn::StoreU(hn::Mul(factor, hn::LoadU(L::d, from + j)), L::d, to + j);
    }
  }
}

template <class T>
void scale_into_of(T scale, const T* x, T* y, int count) {
  using L = Lanes16<T>;
  const typename L::V factor = hn::Set(L::d, scale);
  for (int j = 0; j < count; j += L::kWidth) {
    hn::StoreU(hn::Mul(factor, hn::LoadU(L::d, x + j)), L::d, y + j);
  }
}

template <class T>
void sgd_step_of(const SgdStep<T>& step, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT velocity,
                 T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  const typename L::V momentum = hn::Set(L::d, step.momentum);
  const typename L::V decay = hn::Set(L::d, step.weight_decay);
  const typename L::V rate = hn::Set(L::d, -step.learning_rate);
  for (std::size_t j = 0; j < count; j += L::kWidth) {
    const typename L::V w = hn::LoadU(L::d, parameters + j);
    const typename L::V g = hn::MulAdd(decay, w, hn::LoadU(L::d, gradient + j));
    const typename L::V v = hn::MulAdd(momentum, hn::LoadU(L::d, velocity + j), g);
    hn::StoreU(v, L::d, velocity + j);
    hn::StoreU(hn::MulAdd(rate, v, w), L::d, parameters + j);
  }
}

template <class T>
void sgd_idle_steps_of(const SgdStep<T>& step, const T* HWY_RESTRICT rates, int steps,
                       T* HWY_RESTRICT velocity, T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  using V = typename L::V;
  constexpr int kGroup = kPadding / L::kWidth >= 4 ? kPadding / L::kWidth : 4;  // independent chains
  const V momentum = hn::Set(L::d, step.momentum);
  const V decay = hn::Set(L::d, step.weight_decay);
  const V zero = hn::Zero(L::d);
  for (std::size_t start = 0; start < count; start += kGroup * L::kWidth) {
    // The last group may be short: count is a multiple of 16 entries only.
    const int group =
        static_cast<int>(HWY_MIN(static_cast<std::size_t>(kGroup), (count - start) / L::kWidth));
    V v[kGroup], w[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      const std::size_t at = start + static_cast<std::size_t>(i < group ? i : 0) * L::kWidth;
      v[i] = hn::LoadU(L::d, velocity + at);
      w[i] = hn::LoadU(L::d, parameters + at);
    }
    for (int s = 0; s < steps; ++s) {
      const V rate = hn::Set(L::d, -rates[s]);
      for (int i = 0; i < kGroup; ++i) {
        v[i] = hn::MulAdd(momentum, v[i], hn::MulAdd(decay, w[i], zero));
        w[i] = hn::MulAdd(rate, v[i], w[i]);
      }
    }
    for (int i = 0; i < group; ++i) {
      const std::size_t at = start + static_cast<std::size_t>(i) * L::kWidth;
      hn::StoreU(v[i], L::d, velocity + at);
      hn::StoreU(w[i], L::d, parameters + at);
    }
  }
}

template <class T>
void adam_step_of(const AdamStep<T>& step, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT first,
                  T* HWY_RESTRICT second, T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const V beta1 = hn::Set(L::d, step.beta1), rest1 = hn::Set(L::d, T(1) - step.beta1);
  const V beta2 = hn::Set(L::d, step.beta2), rest2 = hn::Set(L::d, T(1) - step.beta2);
  const V epsilon = hn::Set(L::d, step.epsilon), size = hn::Set(L::d, -step.step_size);
  const V second_scale = hn::Set(L::d, step.second_moment_scale);
  const V coupled = hn::Set(L::d, step.decoupled ? T(0) : step.weight_decay);
  const V shrink = hn::Set(L::d, step.decoupled ? T(1) - step.learning_rate * step.weight_decay : T(1));
  for (std::size_t j = 0; j < count; j += L::kWidth) {
    V w = hn::LoadU(L::d, parameters + j);
    const V g = hn::MulAdd(coupled, w, hn::LoadU(L::d, gradient + j));
    w = hn::Mul(w, shrink);
    const V m = hn::MulAdd(beta1, hn::LoadU(L::d, first + j), hn::Mul(rest1, g));
    const V v = hn::MulAdd(beta2, hn::LoadU(L::d, second + j), hn::Mul(rest2, hn::Mul(g, g)));
    hn::StoreU(m, L::d, first + j);
    hn::StoreU(v, L::d, second + j);
    const V denominator = hn::MulAdd(hn::Sqrt(v), second_scale, epsilon);
    hn::StoreU(hn::MulAdd(size, hn::Div(m, denominator), w), L::d, parameters + j);
  }
}

// One plain function per number type: what the dispatch tables hold.
#define MOELAB_FOR_REAL(T, name)                                                                            \
  void softmax_rows_##name(const T* scores, T* probabilities, int rows, int columns, int stride) {          \
    softmax_rows_of<T>(scores, probabilities, rows, columns, stride);                                       \
  }                                                                                                         \
  void softmax_backward_rows_##name(const T* probabilities, const T* gradient, T* score_gradient, int rows, \
                                    int columns, int stride) {                                              \
    softmax_backward_rows_of<T>(probabilities, gradient, score_gradient, rows, columns, stride);            \
  }                                                                                                         \
  void sum_rows_##name(const T* a, int rows, int columns, std::ptrdiff_t stride, T* sums) {                 \
    sum_rows_of<T>(a, rows, columns, stride, sums);                                                         \
  }                                                                                                         \
  void add_scaled_##name(T scale, const T* x, T* y, int count) {                                            \
    add_scaled_of<T>(scale, x, y, count);                                                                   \
  }                                                                                                         \
  T dot_##name(const T* x, const T* y, int count) {                                                         \
    return dot_lanes<T>(x, y, count);                                                                       \
  }                                                                                                         \
  void dot_rows_##name(const RowsOf<const T>& x, const RowsOf<const T>& y, int rows, int count,             \
                       const RowsOf<T>& sums) {                                                             \
    dot_rows_of<T>(x, y, rows, count, sums);                                                                \
  }                                                                                                         \
  void scale_rows_##name(const RowsOf<const T>& scales, const RowsOf<const T>& x, int rows, int count,      \
                         const RowsOf<T>& y) {                                                              \
    scale_rows_of<T>(scales, x, rows, count, y);                                                            \
  }                                                                                                         \
  void scale_into_##name(T scale, const T* x, T* y, int count) {                                            \
    scale_into_of<T>(scale, x, y, count);                                                                   \
  }                                                                                                         \
  void sgd_step_##name(const SgdStep<T>& step, const T* gradient, T* velocity, T* parameters,               \
                       std::size_t count) {                                                                 \
    sgd_step_of<T>(step, gradient, velocity, parameters, count);                                            \
  }                                                                                                         \
  void sgd_idle_steps_##name(const SgdStep<T>& step, const T* rates, int steps, T* velocity, T* parameters, \
                             std::size_t count) {                                                           \
    sgd_idle_steps_of<T>(step, rates, steps, velocity, parameters, count);                                  \
  }                                                                                                         \
  void adam_step_##name(const AdamStep<T>& step, const T* gradient, T* first, T* second, T* parameters,     \
                        std::size_t count) {                                                                \
    adam_step_of<T>(step, gradient, first, second, parameters, count);                                      \
  }
MOELAB_FOR_REAL(float, float)
MOELAB_FOR_REAL(double, double)
#undef MOELAB_FOR_REAL

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
