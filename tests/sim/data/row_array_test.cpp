#include "sim/data/row_array.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"

namespace moelab::row_array_test {
namespace {

NpyReader reader(const std::vector<double>& values, std::vector<std::int64_t> shape, const char* place) {
  const MemoryArray array{{NpyType::float64, false, std::move(shape), 0},
                          reinterpret_cast<const char*>(values.data())};
  return {array, place};
}

}  // namespace

TEST_CASE("rows of sequences: an entry for each token, checked indices") {
  const std::vector<double> values = {1, 2, 3, 4, 9, 6, 7, 8, 9, 10, 11, 12};
  const RowArray rows = RowArray::read(reader(values, {2, 3, 2}, "x"));
  CHECK(rows.samples() == 2);
  CHECK(rows.tokens() == 3);
  CHECK(rows.rows() == 6);
  CHECK(rows.width() == 2);
  CHECK(rows.at(3, 1) == 8);
  CHECK(rows.argmax(2) == 0);
  CHECK(rows.argmax(3) == 1);
  CHECK(rows.row(5)(0) == 11);
  CHECK_THROWS_AS(rows.row(6), std::out_of_range);
  CHECK_THROWS_AS(rows.at(-1, 0), std::out_of_range);
  CHECK_THROWS_AS(rows.at(0, 2), std::out_of_range);
  CHECK(RowArray::read(reader(values, {2, 3, 2}, "x"), 3, 1, 1).at(0, 0) == 7);
  CHECK_THROWS_AS(RowArray(Matrix::Zero(5, 2), 3), std::invalid_argument);
  const RowArray biases = RowArray::read(reader(values, {12}, "b"));
  CHECK(biases.rows() == 12);
  CHECK(biases.width() == 1);
  CHECK(biases.at(4, 0) == 9);
}

TEST_CASE("axes: the first array gives the sizes, and later arrays have to agree") {
  const std::vector<double> values(24, 0.5);
  ArrayAxes axes;
  const NpyReader probabilities = reader(values, {2, 3, 4}, "--probs");
  axes.add(probabilities, row_axes(probabilities, ArrayAxis::experts));
  CHECK(axes.rows() == 6);
  CHECK(axes.size(ArrayAxis::experts) == 4);
  CHECK_THROWS_AS(axes.size(ArrayAxis::steps), std::out_of_range);
  // Widths belong to each array alone.
  for (const std::int64_t width : {1, 2}) {
    const NpyReader inputs = reader(values, {2, 3, width}, "--inputs");
    axes.add(inputs, row_axes(inputs, ArrayAxis::width));
  }
  const NpyReader flat = reader(values, {6, 4}, "--inputs");
  CHECK_THROWS_WITH_AS(
      axes.add(flat, {ArrayAxis::samples, ArrayAxis::tokens, ArrayAxis::width}),
      "--inputs: the array has shape (6, 4), needs (2, 3, d) to match --probs of shape (2, 3, 4)", UserError);
  const NpyReader router = reader(values, {3, 8}, "--router");
  CHECK_THROWS_WITH_AS(axes.add(router, {ArrayAxis::experts, ArrayAxis::width}), doctest::Contains("(4, d)"),
                       UserError);
}

}  // namespace moelab::row_array_test
