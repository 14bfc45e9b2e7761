#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
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

/// Distances by dot() of differences, to the bit.
template <class T>
void check_squared_distances() {
  constexpr int kCount = 48, kStride = 64;
  Engine engine(11);
  for (const int rows : {0, 1, 4, 7}) {
    CAPTURE(rows);
    const AlignedVector<T> x = normal_values<T>(engine, kCount),
                           y = normal_values<T>(engine, entries(rows, kStride));
    std::vector<T> distances(static_cast<std::size_t>(rows));
    squared_distances(x.data(), RowsOf<const T>{y.data(), kStride}, rows, kCount, distances.data());
    for (int i = 0; i < rows; ++i) {
      AlignedVector<T> difference(kCount);
      for (int j = 0; j < kCount; ++j) {
        const std::size_t at = static_cast<std::size_t>(j);
        difference[at] = x[at] - y[entries(i, kStride) + at];
      }
      CHECK(distances[static_cast<std::size_t>(i)] == dot(difference.data(), difference.data(), kCount));
    }
  }
}

TEST_CASE("squared distances of a row to many") {
  check_squared_distances<float>();
  check_squared_distances<double>();
}

/// By the definition in long double; what lies beyond the columns stays.
template <class T>
void check_log_softmax(double tolerance) {
  constexpr int kRows = 5;
  for (const int columns : {1, 3, 8, 16, 21, 64}) {
    CAPTURE(columns);
    const int stride = padded(columns);
    Engine engine(3);
    AlignedVector<T> scores = normal_values<T>(engine, entries(kRows, stride));
    for (T& score : scores) score *= T(30);
    scores[0] = T(500);  // beside it others underflow
    const AlignedVector<T> given = scores;
    AlignedVector<T> probabilities(scores.size()), expected(scores.size());
    log_softmax_rows(scores.data(), probabilities.data(), kRows, columns, stride);
    softmax_rows(given.data(), expected.data(), kRows, columns, stride);
    CHECK(std::equal(probabilities.begin(), probabilities.end(), expected.begin()));
    for (int i = 0; i < kRows; ++i) {
      const T* const row = given.data() + entries(i, stride);
      const T* const logs = scores.data() + entries(i, stride);
      const long double peak = *std::max_element(row, row + columns);
      long double sum = 0;
      for (int j = 0; j < columns; ++j) sum += std::exp(static_cast<long double>(row[j]) - peak);
      for (int j = 0; j < columns; ++j) {
        const long double exact = static_cast<long double>(row[j]) - peak - std::log(sum);
        CHECK(static_cast<double>(logs[j]) ==
              doctest::Approx(static_cast<double>(exact)).epsilon(tolerance).scale(1));
      }
      CHECK(std::equal(row + columns, row + stride, logs + columns));
    }
  }
}

TEST_CASE("log softmax: finite where a probability underflows") {
  check_log_softmax<float>(1e-6);
  check_log_softmax<double>(1e-14);
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

/// Values with few distinct ones among them, infinities, and padding larger than all of them.
template <class T>
AlignedVector<T> values_with_ties(Engine& engine, int count) {
  AlignedVector<T> values(static_cast<std::size_t>(padded(count)), std::numeric_limits<T>::infinity());
  for (int i = 0; i < count; ++i) {
    const double value = draw_normal(engine);
    values[static_cast<std::size_t>(i)] = static_cast<T>(i % 3 == 0 ? std::round(2 * value) : value);
    if (i % 11 == 7) values[static_cast<std::size_t>(i)] = -std::numeric_limits<T>::infinity();
  }
  return values;
}

TEST_CASE_TEMPLATE("the largest entries are those of a stable sort, at every level", T, float, double) {
  const LevelGuard guard;
  for (const std::string& level : levels()) {
    CAPTURE(level);
    limit_vector_level(level);
    Engine engine(3);
    for (const int count : {1, 2, 15, 16, 17, 64, 100}) {
      CAPTURE(count);
      const AlignedVector<T> values = values_with_ties<T>(engine, count);
      std::vector<int> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
      });
      for (const int k : {1, 2, 8, count}) {
        if (k > count) continue;
        std::vector<int> found(static_cast<std::size_t>(k), -1);
        find_largest(values.data(), count, k, found.data());
        CHECK(std::equal(found.begin(), found.end(), order.begin()));
      }
    }
  }
}

TEST_CASE("where values are no numbers, the largest entries are still different ones") {
  AlignedVector<float> values(16, std::numeric_limits<float>::quiet_NaN());
  values[5] = 1;
  std::vector<int> found(3);
  find_largest(values.data(), 4, 3, found.data());
  CHECK(found == std::vector<int>{0, 1, 2});
  find_largest(values.data(), 8, 3, found.data());
  CHECK(found == std::vector<int>{5, 0, 1});
}

}  // namespace
}  // namespace moelab::kernels::row_kernels_test
