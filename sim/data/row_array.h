#pragma once

/// Arrays whose axes have names, and rows whose indices are checked.
///
/// A saved or analysed array is (n, d), (n, s, E), (T, C, E), … The types here know which axis is which. They
/// compare the axes of arrays that belong together when the arrays are opened, so that code which loops over
/// rows never reads past the end of an array that has one entry for each sample.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/data/npy.h"

namespace moelab {

enum class ArrayAxis { samples, tokens, experts, width, labels, steps, clusters, selected };

/// The sizes of the axes that the arrays of one model share.
class ArrayAxes {
 public:
  /// Adds an array with these axes. The first array with an axis gives the size of that axis; width, labels
  /// and selected belong to each array alone. Throws UserError at the array's place where the number of axes
  /// or a size differs: "has shape (5, 3), needs (6, d) beside test_probs of shape (6, 4)".
  void add(const NpyReader& array, const std::vector<ArrayAxis>& axes);

  bool has(ArrayAxis axis) const { return sizes_.contains(axis); }
  /// The size; 1 for tokens where no array has them. Throws std::out_of_range for another unknown axis.
  std::int64_t size(ArrayAxis axis) const;
  /// n · s.
  std::int64_t rows() const { return size(ArrayAxis::samples) * size(ArrayAxis::tokens); }

 private:
  std::map<ArrayAxis, std::int64_t> sizes_;
  std::string first_;  ///< the first array with its shape, for messages
};

/// The axes of an array of rows: (n, last), or (n, s, last) with three dimensions.
std::vector<ArrayAxis> row_axes(const NpyReader& array, ArrayAxis last);

/// Rows (n · s, width) of an array (n, width) or (n, s, width). Indexing throws std::out_of_range.
class RowArray {
 public:
  RowArray() = default;
  /// `values` has `tokens` rows for each sample.
  RowArray(Matrix values, std::int64_t tokens);

  /// All rows of an array (n, width) or (n, …, width); an array (n) has width 1. Throws UserError for entries
  /// that are not finite.
  static RowArray read(const NpyReader& array);
  /// Samples first … first + count − 1, each of `tokens` rows. Throws UserError likewise.
  static RowArray read(const NpyReader& array, std::int64_t tokens, std::int64_t first, std::int64_t count);

  std::int64_t samples() const { return values_.rows() / tokens_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t rows() const { return values_.rows(); }
  std::int64_t width() const { return values_.cols(); }

  auto row(std::int64_t row) const {
    check(row, rows(), "row");
    return values_.row(row);
  }
  double at(std::int64_t row, std::int64_t column) const {
    check(row, rows(), "row");
    check(column, width(), "column");
    return values_(row, column);
  }
  /// The argmax of a row; the first of equal entries.
  int argmax(std::int64_t row) const;
  /// All rows, for algebra on whole matrices.
  const Matrix& values() const { return values_; }

 private:
  static void check(std::int64_t index, std::int64_t size, const char* what);

  Matrix values_;
  std::int64_t tokens_ = 1;
};

}  // namespace moelab
