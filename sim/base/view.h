#pragma once

/// Views of matrices in memory that somebody else owns.

#include <cstddef>
#include <type_traits>

#include "sim/base/contract.h"

namespace moelab {

/// (rows, columns), entry (i, j) at data[i · row_stride + j · column_stride].
template <class T>
struct View {
  T* data = nullptr;
  int rows = 0, columns = 0;
  std::ptrdiff_t row_stride = 0, column_stride = 1;

  View() = default;
  View(T* first, int row_count, int column_count, std::ptrdiff_t stride, std::ptrdiff_t between_columns = 1)
      : data(first),
        rows(row_count),
        columns(column_count),
        row_stride(stride),
        column_stride(between_columns) {}
  /// A view of constants from one of variables.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_const_v<U>) View(const View<U>& other)
      : View(other.data, other.rows, other.columns, other.row_stride, other.column_stride) {}

  bool empty() const { return data == nullptr; }
  T* row(std::ptrdiff_t i) const { return data + i * row_stride; }
  T& operator()(std::ptrdiff_t i, std::ptrdiff_t j) const {
    MOELAB_EXPECT(i >= 0 && i < rows && j >= 0 && j < columns);
    return data[i * row_stride + j * column_stride];
  }
  View transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  View middle_rows(int first, int count) const {
    MOELAB_EXPECT(first >= 0 && count >= 0 && first + count <= rows);
    return {data + first * row_stride, count, columns, row_stride, column_stride};
  }
  View middle_columns(int first, int count) const {
    MOELAB_EXPECT(first >= 0 && count >= 0 && first + count <= columns);
    return {data + first * column_stride, rows, count, row_stride, column_stride};
  }
};

/// Contiguous rows.
template <class T>
View<T> rows_of(T* data, int rows, int columns) {
  return {data, rows, columns, columns};
}

}  // namespace moelab
