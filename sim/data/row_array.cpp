#include "sim/data/row_array.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace moelab {
namespace {

/// How messages write an axis of unknown size.
const char* letter_of(ArrayAxis axis) {
  switch (axis) {
    case ArrayAxis::samples:
      return "n";
    case ArrayAxis::tokens:
      return "s";
    case ArrayAxis::experts:
      return "E";
    case ArrayAxis::width:
      return "d";
    case ArrayAxis::labels:
      return "r";
    case ArrayAxis::steps:
      return "T";
    case ArrayAxis::clusters:
      return "C";
    case ArrayAxis::selected:
      break;
  }
  return "k";
}

bool is_shared(ArrayAxis axis) {
  return axis != ArrayAxis::width && axis != ArrayAxis::labels && axis != ArrayAxis::selected;
}

}  // namespace

void ArrayAxes::add(const NpyReader& array, const std::vector<ArrayAxis>& axes) {
  const std::vector<std::int64_t>& shape = array.shape();
  bool fits = shape.size() == axes.size();
  for (std::size_t i = 0; fits && i < axes.size(); ++i)
    fits = !has(axes[i]) || sizes_.at(axes[i]) == shape[i];
  if (!fits) {
    std::vector<std::string> needed;
    for (const ArrayAxis axis : axes)
      needed.push_back(has(axis) ? std::to_string(sizes_.at(axis)) : letter_of(axis));
    array.refuse(fmt::format("has shape {}, needs ({}{}){}", shape_text(shape), fmt::join(needed, ", "),
                             needed.size() == 1 ? "," : "", first_.empty() ? "" : " to match " + first_));
  }
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (is_shared(axes[i])) sizes_[axes[i]] = shape[i];
  if (first_.empty()) first_ = fmt::format("{} of shape {}", array.place(), shape_text(shape));
}

std::int64_t ArrayAxes::size(ArrayAxis axis) const {
  if (axis == ArrayAxis::tokens && !has(axis)) return 1;
  return sizes_.at(axis);
}

std::vector<ArrayAxis> row_axes(const NpyReader& array, ArrayAxis last) {
  if (array.shape().size() == 3) return {ArrayAxis::samples, ArrayAxis::tokens, last};
  return {ArrayAxis::samples, last};
}

RowArray::RowArray(Matrix values, std::int64_t tokens) : values_(std::move(values)), tokens_(tokens) {
  if (tokens < 1 || values_.rows() % tokens != 0)
    throw std::invalid_argument(
        fmt::format("{} rows are no samples of {} rows each", values_.rows(), tokens));
}

RowArray RowArray::read(const NpyReader& array) {
  const bool has_width = array.shape().size() > 1 && array.shape().back() > 0;
  return read(array, has_width ? array.row_size() / array.shape().back() : 1, 0, array.rows());
}

RowArray RowArray::read(const NpyReader& array, std::int64_t tokens, std::int64_t first, std::int64_t count) {
  Matrix values = array.read_finite(first, count);
  values.resize(count * tokens, array.row_size() / tokens);
  return {std::move(values), tokens};
}

int RowArray::argmax(std::int64_t row) const {
  check(row, rows(), "row");
  Eigen::Index best = 0;
  values_.row(row).maxCoeff(&best);
  return static_cast<int>(best);
}

void RowArray::check(std::int64_t index, std::int64_t size, const char* what) {
  if (index < 0 || index >= size)
    throw std::out_of_range(fmt::format("{} {} of an array with {}", what, index, size));
}

}  // namespace moelab
