#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::row_kernels_test {
namespace {

/// Rows a block takes at once are 4: counts around it.
template <class T>
void check_rows_against_single_rows() {
  constexpr int kCount = 48, kStride = 64, kOutputStride = 3;
  Engine engine(7);
  for (const int rows : {0, 1, 3, 4, 5, 9}) {
    CAPTURE(rows);
    const AlignedVector<T> x = normal_values<T>(engine, entries(rows, kStride)),
                           y = normal_values<T>(engine, entries(rows, kStride));
    const T untouched = T(-7);
    std::vector<T> sums(static_cast<std::size_t>(rows * kOutputStride), untouched), expected = sums;
    dot_rows(RowsOf<const T>{x.data(), kStride}, RowsOf<const T>{y.data(), kStride}, rows, kCount,
             RowsOf<T>{sums.data(), kOutputStride});
    for (int i = 0; i < rows; ++i) {
      expected[static_cast<std::size_t>(i * kOutputStride)] =
          dot(x.data() + i * kStride, y.data() + i * kStride, kCount);
    }
    CHECK(sums == expected);

    AlignedVector<T> scaled = y, expected_scaled = y;
    scale_rows(RowsOf<const T>{x.data() + kCount, kStride}, RowsOf<const T>{x.data(), kStride}, rows, kCount,
               RowsOf<T>{scaled.data(), kStride});
    for (int i = 0; i < rows; ++i) {
      scale_into(x[static_cast<std::size_t>(i * kStride + kCount)], x.data() + i * kStride,
                 expected_scaled.data() + i * kStride, kCount);
    }
    CHECK(std::equal(scaled.begin(), scaled.end(), expected_scaled.begin()));
  }
}

TEST_CASE("kernels over many rows equal those over one") {
  check_rows_against_single_rows<float>();
  check_rows_against_single_rows<double>();
}

TEST_CASE("softmax: a row's result does not depend on the rows beside it") {
  constexpr int kRows = 11;
  for (const int columns : {1, 7, 16, 33, 64}) {
    CAPTURE(columns);
    const int stride = padded(columns);
    Engine engine(5);
    const AlignedVector<float> scores = normal_values<float>(engine, entries(kRows, stride));
    AlignedVector<float> together(scores.size()), alone(scores.size());
    softmax_rows(scores.data(), together.data(), kRows, columns, stride);
    for (int i = 0; i < kRows; ++i) {
      softmax_rows(scores.data() + i * stride, alone.data() + i * stride, 1, columns, stride);
    }
    CHECK(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)) == 0);
  }
}

}  // namespace
}  // namespace moelab::kernels::row_kernels_test
