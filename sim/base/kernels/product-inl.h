// The matrix product. A block of kRows × kVectors accumulators stays in registers while p runs from 0 to k.
// So every output is one chain of multiply-adds in the order of p at any width, and the blocking changes no
// bits.

#if defined(MOELAB_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_PRODUCT_INL_H_
#undef MOELAB_PRODUCT_INL_H_
#else
#define MOELAB_PRODUCT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>

#include "sim/base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of a block of kVectors vectors: 8 × 3 or 6 × 4 accumulators fill the 32 registers of AVX-512, 4 × 3
/// or 3 × 4 fill the 16 registers of AVX2 and SSE.
template <int kVectors>
constexpr int kBlockRows = (HWY_TARGET == HWY_AVX3 ? 2 : 1) * (kVectors == 4 ? 3 : 4);

/// With at least this many steps, C is prefetched while they run, so that writing it does not wait. With this
/// and blocks of 6 × 4, the six products of 64 experts in turn, which exceed the second cache, run at 130
/// GFLOP/s instead of 112.
constexpr int kLeastPrefetched = 64;

/// One block of C: rows [row, row + kRows), columns [column, column + kVectors · width).
template <class T, int kRows, int kVectors, bool kTransposed>
HWY_INLINE void block(const Product<T>& product, const T* HWY_RESTRICT b, std::ptrdiff_t b_row, int row,
                      int column) {
  using L = Lanes16<T>;
  using V = typename L::V;
  V sums[kRows][kVectors];
  T* c = product.c + row * product.c_row + column;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int at = v * L::kWidth;
      if (product.start == Start::zero) {
        sums[i][v] = hn::Zero(L::d);
      } else if (product.start == Start::bias) {
        sums[i][v] = hn::LoadU(L::d, product.bias + column + at);
      } else {
        sums[i][v] = hn::LoadU(L::d, c + i * product.c_row + at);
      }
    }
  }
  if (product.start != Start::accumulate && product.k >= kLeastPrefetched) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) hwy::Prefetch(c + i * product.c_row + v * L::kWidth);
    }
  }
  const T* HWY_RESTRICT a = product.a + row * product.a_row;
  const std::ptrdiff_t a_row = kTransposed ? 1 : product.a_row;
  const std::ptrdiff_t a_column = kTransposed ? product.a_column : 1;
  for (int p = 0; p < product.k; ++p) {
    V b_vectors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b_vectors[v] = hn::LoadU(L::d, b + v * L::kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V a_value = hn::Set(L::d, a[i * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(a_value, b_vectors[v], sums[i][v]);
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const std::ptrdiff_t at = i * product.c_row + v * L::kWidth;
      if (product.finish == Finish::relu) {
        // Not a maximum: on x86 the maximum of NaN and 0 is 0.
        sums[i][v] = hn::IfThenZeroElse(hn::Le(sums[i][v], hn::Zero(L::d)), sums[i][v]);
      } else if (product.finish == Finish::relu_mask) {
        const V mask = hn::LoadU(L::d, product.mask + row * product.c_row + column + at);
        const V kept = hn::IfThenElseZero(hn::Gt(mask, hn::Zero(L::d)), sums[i][v]);
        sums[i][v] = hn::IfThenElse(hn::IsNaN(mask), mask, kept);
      }
      hn::StoreU(sums[i][v], L::d, c + at);
    }
  }
}

/// All rows of one panel of columns, in the largest blocks that fit.
template <class T, int kVectors, bool kTransposed>
void panel(const Product<T>& product, const T* b, std::ptrdiff_t b_row, int column) {
  constexpr int kRows = kBlockRows<kVectors>;
  int row = 0;
  for (; row + kRows <= product.m; row += kRows)
    block<T, kRows, kVectors, kTransposed>(product, b, b_row, row, column);
  if (kRows > 4 && product.m - row >= 4) {
    block<T, 4, kVectors, kTransposed>(product, b, b_row, row, column);
    row += 4;
  }
  if (product.m - row >= 2) {
    block<T, 2, kVectors, kTransposed>(product, b, b_row, row, column);
    row += 2;
  }
  if (product.m - row == 1) block<T, 1, kVectors, kTransposed>(product, b, b_row, row, column);
}

/// Transposes four rows, of four entries, that lie `from` entries apart. Rows of the result are `to` apart.
template <class T>
HWY_INLINE void transpose_tile(const T* HWY_RESTRICT source, std::ptrdiff_t from, T* HWY_RESTRICT target,
                               std::ptrdiff_t to) {
  if constexpr (sizeof(T) == 4) {
    const hn::FixedTag<T, 4> d;
    const auto row_0 = hn::LoadU(d, source), row_1 = hn::LoadU(d, source + from);
    const auto row_2 = hn::LoadU(d, source + 2 * from), row_3 = hn::LoadU(d, source + 3 * from);
    const auto low_01 = hn::InterleaveLower(d, row_0, row_1), low_23 = hn::InterleaveLower(d, row_2, row_3);
    const auto high_01 = hn::InterleaveUpper(d, row_0, row_1), high_23 = hn::InterleaveUpper(d, row_2, row_3);
    hn::StoreU(hn::ConcatLowerLower(d, low_23, low_01), d, target);
    hn::StoreU(hn::ConcatUpperUpper(d, low_23, low_01), d, target + to);
    hn::StoreU(hn::ConcatLowerLower(d, high_23, high_01), d, target + 2 * to);
    hn::StoreU(hn::ConcatUpperUpper(d, high_23, high_01), d, target + 3 * to);
  } else {
    for (int q = 0; q < 4; ++q) {
      for (int i = 0; i < 4; ++i) target[q * to + i] = source[i * from + q];
    }
  }
}

/// Copies Bᵀ into a panel (k, columns): panel[p, j] = b[(column + j) · b_row + p], zero for columns beyond n.
template <class T>
void pack_transposed(const Product<T>& product, int column, int columns, T* HWY_RESTRICT panel_values) {
  const int valid = HWY_MIN(columns, product.n - column);
  const T* source = product.b + column * product.b_row;
  constexpr int kTile = 4;
  int p = 0;
  for (; p + kTile <= product.k; p += kTile) {
    T* target = panel_values + static_cast<std::ptrdiff_t>(p) * columns;
    int j = 0;
    for (; j + kTile <= valid; j += kTile)
      transpose_tile(source + j * product.b_row + p, product.b_row, target + j, columns);
    for (; j < columns; ++j) {
      for (int q = 0; q < kTile; ++q)
        target[q * columns + j] = j < valid ? source[j * product.b_row + p + q] : T(0);
    }
  }
  for (; p < product.k; ++p) {
    T* target = panel_values + static_cast<std::ptrdiff_t>(p) * columns;
    for (int j = 0; j < columns; ++j) target[j] = j < valid ? source[j * product.b_row + p] : T(0);
  }
}

/// Copies columns of B into a panel (k, columns).
template <class T>
void pack(const Product<T>& product, int column, int columns, T* HWY_RESTRICT panel_values) {
  for (int p = 0; p < product.k; ++p) {
    std::memcpy(panel_values + static_cast<std::ptrdiff_t>(p) * columns,
                product.b + p * product.b_row + column, sizeof(T) * static_cast<std::size_t>(columns));
  }
}

/// Steps of p that use one panel of B, which then stays in the second cache. Between panels C waits in
/// memory, which changes no bits. 64 rows of 256 over 2048 steps run at 100 instead of 58 GFLOP/s.
constexpr int kDepth = 256;

/// Rows of A that all panels of B use while they are in the second cache.
constexpr int kChunkRows = 512;

/// With at least this many rows, columns of B are copied into a panel. Far apart, they would share few sets
/// of the first cache. 256 rows of 256 over 64 steps, from and to the third cache, run at 166 instead of 150
/// GFLOP/s.
constexpr int kLeastPacked = 200;

/// The part of a product for `rows` rows from `row` on and the steps from `first` on.
template <class T>
Product<T> part_of(const Product<T>& product, int row, int rows, int first) {
  Product<T> part = product;
  part.m = rows;
  part.k = HWY_MIN(product.k - first, kDepth);
  part.a += row * product.a_row + first * product.a_column;
  part.b += product.b_transposed ? first : first * product.b_row;
  part.c += row * product.c_row;
  if (part.finish == Finish::relu_mask) part.mask += row * product.c_row;
  if (first > 0) part.start = Start::accumulate;
  if (first + part.k < product.k) part.finish = Finish::none;
  return part;
}

template <class T, int kVectors>
void rows_of_panel(const Product<T>& product, const T* b, std::ptrdiff_t b_row, int column) {
  if (product.a_column != 1)
    panel<T, kVectors, true>(product, b, b_row, column);
  else
    panel<T, kVectors, false>(product, b, b_row, column);
}

/// `width` ≤ 4 vectors of the columns from `column` on, for product.k ≤ kDepth.
template <class T>
void columns_of(const Product<T>& product, int column, int width) {
  alignas(64) T packed[kDepth * 4 * Lanes16<T>::kWidth];
  const T* b = product.b + column;
  std::ptrdiff_t b_row = product.b_row;
  const int columns = width * Lanes16<T>::kWidth;
  if (product.b_transposed || (b_row > columns && product.m >= kLeastPacked)) {
    if (product.b_transposed)
      pack_transposed(product, column, columns, packed);
    else
      pack(product, column, columns, packed);
    b = packed;
    b_row = columns;
  }
  switch (width) {
    case 4:
      return rows_of_panel<T, 4>(product, b, b_row, column);
    case 3:
      return rows_of_panel<T, 3>(product, b, b_row, column);
    case 2:
      return rows_of_panel<T, 2>(product, b, b_row, column);
    default:
      return rows_of_panel<T, 1>(product, b, b_row, column);
  }
}

template <class T>
void multiply_of(const Product<T>& product) {
  const int all_vectors = padded(product.n) / Lanes16<T>::kWidth;
  const int chunk = all_vectors > 4 ? kChunkRows : product.m;
  for (int row = 0; row < product.m; row += chunk) {
    // At least once: a product of no steps is its start.
    for (int first = 0; first == 0 || first < product.k; first += kDepth) {
      const Product<T> part = part_of(product, row, HWY_MIN(chunk, product.m - row), first);
      int vectors = all_vectors;
      for (int column = 0; vectors > 0;) {
        // A single vector would leave the multiply-add units waiting for its sums.
        const int width = vectors % 3 == 0 || vectors == 5 ? 3 : HWY_MIN(vectors, 4);
        columns_of(part, column, width);
        column += width * Lanes16<T>::kWidth;
        vectors -= width;
      }
    }
  }
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
