#pragma once

/// Array types. Arrays are row-major (n, d) everywhere, also in files.

#include <Eigen/Core>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/options.h"

namespace moelab {

template <class Real>
using MatrixOf = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using VectorOf = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

/// Data, metrics and theory work in double.
using Matrix = MatrixOf<double>;
using Vector = VectorOf<double>;

/// A read-only (n, d) view of contiguous row-major memory.
using MatrixView = Eigen::Map<const Matrix>;

// Arrays for kernels, aligned to cache lines

constexpr std::size_t kAlignment = 64;

/// Asks the kernel for large pages for a block of this size, where it has them. Blocks of some megabytes are
/// passed over in each training step, and with small pages the processor waits for their addresses. The
/// answer changes the time alone.
void ask_for_large_pages(void* block, std::size_t bytes);

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>& /*other*/) {}
  T* allocate(std::size_t count) {
    void* const block = ::operator new(count * sizeof(T), std::align_val_t(kAlignment));
    ask_for_large_pages(block, count * sizeof(T));
    return static_cast<T*>(block);
  }
  void deallocate(T* pointer, std::size_t /*count*/) {
    ::operator delete(pointer, std::align_val_t(kAlignment));
  }
  template <class U>
  bool operator==(const AlignedAllocator<U>& /*other*/) const {
    return true;
  }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

/// A non-negative count or index as arrays take it.
constexpr std::size_t size(std::ptrdiff_t value) {
  return static_cast<std::size_t>(value);
}

/// Entries of `rows` rows, `stride` apart.
constexpr std::size_t entries(std::ptrdiff_t rows, std::ptrdiff_t stride) {
  return size(rows) * size(stride);
}

/// Grows `values` to at least `count` entries.
template <class T>
void reserve_entries(AlignedVector<T>& values, std::size_t count) {
  if (values.size() < count) values.resize(count);
}

// Views of matrices in memory with another owner

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

// Entries of tables of parts: functions for both precisions of training

/// Signature<float>* and Signature<double>*. Both are null if there is no such function.
template <template <class Real> class Signature>
struct PerPrecision {
  Signature<float>* in_float = nullptr;
  Signature<double>* in_double = nullptr;

  explicit operator bool() const { return in_float != nullptr; }
  template <class Real>
  Signature<Real>* of() const {
    if constexpr (std::is_same_v<Real, float>) {
      return in_float;
    } else {
      return in_double;
    }
  }
};

/// Makes a part of type Made from the options of its kind and further settings.
template <class Part, class Options, class Made, class... Setting>
std::unique_ptr<Part> make_from(const AnyOptions& options, Setting... setting) {
  return std::make_unique<Made>(options.get<Options>(), setting...);
}

}  // namespace moelab
