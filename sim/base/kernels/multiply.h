#pragma once

/// Matrix products of views, whose calls read like equations:
///
///     multiply(x, w, scores);                               // γ ← X W
///     multiply(x.transposed(), score_gradient, w_gradient); // ∂L/∂W ← X^T ∂L/∂γ
///     multiply(x, a, h, {.bias = b, .relu = true});         // H ← relu(X A + b)

#include <type_traits>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"

namespace moelab::kernels {

/// The initial value of a product, and the operation at its end.
template <class Real>
struct Extras {
  bool accumulate = false;          ///< C ← C + A B
  const Real* bias = nullptr;       ///< (padded(n)), added to every row
  bool relu = false;                ///< C ← max(C, 0)
  const Real* relu_mask = nullptr;  ///< shaped like C: zero if its entry is at most 0
};

/// C (m, n) ← A (m, k) B (k, n), then `extras`. A may have any strides. B is row-major or the transpose of
/// such a view. Rows of C, and of B unless transposed, are at least padded(n) apart.
template <class Real>
void multiply(const std::type_identity_t<View<const Real>>& a,
              const std::type_identity_t<View<const Real>>& b, const View<Real>& c,
              const std::type_identity_t<Extras<Real>>& extras = {}) {
  MOELAB_EXPECT(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  MOELAB_EXPECT(c.column_stride == 1 && (c.rows <= 1 || c.row_stride >= padded(c.columns)));
  const bool transposed = b.column_stride != 1 || b.row_stride == 1;
  MOELAB_EXPECT(transposed ? b.row_stride == 1 : b.rows <= 1 || b.row_stride >= padded(b.columns));
  MOELAB_EXPECT(!(extras.accumulate && extras.bias) && !(extras.relu && extras.relu_mask));
  Product<Real> product;
  product.m = c.rows;
  product.n = c.columns;
  product.k = a.columns;
  product.a = a.data;
  product.a_row = a.row_stride;
  product.a_column = a.column_stride;
  product.b = b.data;
  product.b_row = transposed ? b.column_stride : b.row_stride;
  product.b_transposed = transposed;
  product.c = c.data;
  product.c_row = c.row_stride;
  product.start = extras.bias ? Start::bias : extras.accumulate ? Start::accumulate : Start::zero;
  product.bias = extras.bias;
  product.finish = extras.relu ? Finish::relu : extras.relu_mask ? Finish::relu_mask : Finish::none;
  product.mask = extras.relu_mask;
  multiply(product);
}

/// A view of rows with padding, as kernels write them: (rows, columns), padded(columns) apart.
template <class T>
View<T> padded_rows(T* data, int rows, int columns) {
  return {data, rows, columns, padded(columns)};
}

}  // namespace moelab::kernels
