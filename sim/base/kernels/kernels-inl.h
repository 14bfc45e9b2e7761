// Kernels over rows and flat arrays, compiled once per vector level (no include guard of the usual kind).

#if defined(MOELAB_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_KERNELS_INL_H_
#undef MOELAB_KERNELS_INL_H_
#else
#define MOELAB_KERNELS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/lanes-inl.h"
#include "sim/base/kernels/largest-inl.h"
#include "sim/base/kernels/optimizer_steps.h"
#include "sim/base/kernels/row_norm-inl.h"
#include "sim/base/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

/// Calls keep(row, value_of(row)) for all rows, some side by side.
template <class T, class ValueOf, class Keep>
HWY_INLINE void each_row(int rows, const ValueOf& value_of, const Keep& keep) {
  T values[kRowsAtOnce];
  int row = 0;
  for (; row + kRowsAtOnce <= rows; row += kRowsAtOnce) {
#pragma GCC unroll 4
    for (int i = 0; i < kRowsAtOnce; ++i) values[i] = value_of(row + i);
    for (int i = 0; i < kRowsAtOnce; ++i) keep(row + i, values[i]);
  }
  for (; row < rows; ++row) keep(row, value_of(row));
}

template <class T>
void dot_rows_of(const RowsOf<const T>& x, const RowsOf<const T>& y, int rows, int count,
                 const RowsOf<T>& sums) {
  each_row<T>(
      rows, [&](int row) HWY_ATTR { return dot_lanes(x.row(row), y.row(row), count); },
      [&](int row, T value) { *sums.row(row) = value; });
}

template <class T>
void squared_distances_of(const T* x, const RowsOf<const T>& y, int rows, int count, T* distances) {
  each_row<T>(
      rows, [&](int row) HWY_ATTR { return squared_distance_lanes(x, y.row(row), count); },
      [&](int row, T value) { distances[row] = value; });
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

/// `count` ≥ the lanes of D entries: the last vector lies over the one before it.
template <class D, class T>
HWY_INLINE void copy_by(D d, const T* HWY_RESTRICT from, int count, T* HWY_RESTRICT to) {
  constexpr int kWidth = static_cast<int>(hn::MaxLanes(D()));
  for (int j = 0; j + kWidth < count; j += kWidth) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
  hn::StoreU(hn::LoadU(d, from + count - kWidth), d, to + count - kWidth);
}

// A call of memmove for each row takes half as long again: of a step of fig2 (24 and 10 floats) 10 % in place
// of 7.
template <class T>
void copy_rows_of(const T* from, const int* order, int rows, int known, int columns, T* to) {
  using L = Lanes16<T>;
  const hn::CappedTag<T, 4> few;
  constexpr int kFew = static_cast<int>(hn::MaxLanes(few));
  constexpr int kLine = static_cast<int>(64 / sizeof(T));
  constexpr int kAhead = 16;  // rows between the one that is copied and the one that is called
  for (int row = 0; row < rows; ++row, to += columns) {
    const int next = order[HWY_MIN(row + kAhead, known - 1)];
    const T* const coming = from + static_cast<std::ptrdiff_t>(next) * columns;
    for (int j = 0; j < columns; j += kLine) __builtin_prefetch(coming + j);
    const T* const own = from + static_cast<std::ptrdiff_t>(order[row]) * columns;
    if (columns >= L::kWidth) {
      copy_by(L::d, own, columns, to);
    } else if (columns >= kFew) {
      copy_by(few, own, columns, to);
    } else {
      for (int j = 0; j < columns; ++j) to[j] = own[j];
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

// Without decay v does not wait for w, and eight chains keep both units at work: 12,544 weights take 14 µs
// over 34 steps, 32 where v waits and chains are four.
template <class T, bool kDecays>
void sgd_idle_steps_with(const SgdStep<T>& step, const T* HWY_RESTRICT rates, int steps,
                         T* HWY_RESTRICT velocity, T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  using V = typename L::V;
  constexpr int kGroup = 8;  // independent chains
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
        v[i] = hn::MulAdd(momentum, v[i], kDecays ? hn::MulAdd(decay, w[i], zero) : zero);
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
void sgd_idle_steps_of(const SgdStep<T>& step, const T* rates, int steps, T* velocity, T* parameters,
                       std::size_t count) {
  step.weight_decay == 0 ? sgd_idle_steps_with<T, false>(step, rates, steps, velocity, parameters, count)
                         : sgd_idle_steps_with<T, true>(step, rates, steps, velocity, parameters, count);
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
  void log_softmax_rows_##name(T* scores, T* probabilities, int rows, int columns, int stride) {            \
    log_softmax_rows_of<T>(scores, probabilities, rows, columns, stride);                                   \
  }                                                                                                         \
  void softmax_backward_rows_##name(const T* probabilities, const T* gradient, T* score_gradient, int rows, \
                                    int columns, int stride) {                                              \
    softmax_backward_rows_of<T>(probabilities, gradient, score_gradient, rows, columns, stride);            \
  }                                                                                                         \
  void find_largest_##name(const T* values, int count, int k, int* found) {                                 \
    find_largest_of<T>(values, count, k, found);                                                            \
  }                                                                                                         \
  void normalize_rows_##name(const RowNorm<T>& norm, T* y) {                                                \
    normalize_rows_of<T>(norm, y);                                                                          \
  }                                                                                                         \
  void normalize_rows_backward_##name(const RowNorm<T>& norm, const RowNormGradient<T>& gradient) {         \
    normalize_rows_backward_of<T>(norm, gradient);                                                          \
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
  void squared_distances_##name(const T* x, const RowsOf<const T>& y, int rows, int count, T* distances) {  \
    squared_distances_of<T>(x, y, rows, count, distances);                                                  \
  }                                                                                                         \
  void scale_rows_##name(const RowsOf<const T>& scales, const RowsOf<const T>& x, int rows, int count,      \
                         const RowsOf<T>& y) {                                                              \
    scale_rows_of<T>(scales, x, rows, count, y);                                                            \
  }                                                                                                         \
  void copy_rows_##name(const T* from, const int* order, int rows, int known, int columns, T* to) {         \
    copy_rows_of<T>(from, order, rows, known, columns, to);                                                 \
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
