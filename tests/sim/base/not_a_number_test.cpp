/// NaN in, NaN out: every kernel, both precisions, every vector level, NaN in every lane.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::not_a_number_test {
namespace {

template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

constexpr int kRows = 5;  ///< a block of four rows and a single one

/// Rows of `columns` normal entries with zero padding.
template <class T>
AlignedVector<T> padded_values(Engine& engine, int rows, int columns) {
  AlignedVector<T> values(entries(rows, padded(columns)), T(0));
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j)
      values[entries(i, padded(columns)) + size(j)] = static_cast<T>(draw_normal(engine));
  }
  return values;
}

/// Whether the row is NaN in all its columns, and every other row in none.
template <class T>
bool is_lost_alone(const AlignedVector<T>& values, int lost, int columns) {
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (std::isnan(values[entries(i, padded(columns)) + size(j)]) != (i == lost)) return false;
    }
  }
  return true;
}

/// Calls visit(columns, row, place in the array, column) for NaN in every lane at every level.
template <class Visit>
void for_each_lane(const Visit& visit) {
  const LevelGuard guard;
  for (const std::string& level : levels()) {
    CAPTURE(level);
    limit_vector_level(level);
    for (const int columns : {1, 2, 3, 4, 7, 8, 15, 16, 17, 33}) {
      CAPTURE(columns);
      for (int column = 0; column < columns; ++column) {
        CAPTURE(column);
        for (const int row : {0, 2, kRows - 1})
          visit(columns, row, entries(row, padded(columns)) + size(column), column);
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("NaN in a row: softmax, its logarithm and its gradient are NaN in the whole row", T, float,
                   double) {
  Engine engine(1);
  for_each_lane([&](int columns, int row, std::size_t place, int) {
    AlignedVector<T> scores = padded_values<T>(engine, kRows, columns), r = scores, sound = scores;
    softmax_rows(sound.data(), sound.data(), kRows, columns, padded(columns));
    scores[place] = kNan<T>;
    softmax_rows(scores.data(), r.data(), kRows, columns, padded(columns));
    CHECK(is_lost_alone(r, row, columns));
    for (const bool of_gradient : {false, true}) {
      AlignedVector<T> probabilities = sound, gradient = padded_values<T>(engine, kRows, columns);
      (of_gradient ? gradient : probabilities)[place] = kNan<T>;
      softmax_backward_rows(probabilities.data(), gradient.data(), gradient.data(), kRows, columns,
                            padded(columns));
      CHECK(is_lost_alone(gradient, row, columns));
    }
    log_softmax_rows(scores.data(), r.data(), kRows, columns, padded(columns));
    CHECK(is_lost_alone(scores, row, columns));
    CHECK(is_lost_alone(r, row, columns));
  });
}

TEST_CASE_TEMPLATE("NaN in a row: its norm, scalar products and distances are NaN", T, float, double) {
  Engine engine(2);
  for_each_lane([&](int columns, int row, std::size_t place, int) {
    const int stride = padded(columns);
    AlignedVector<T> x = padded_values<T>(engine, kRows, columns);
    const AlignedVector<T> y = padded_values<T>(engine, kRows, columns);
    x[place] = kNan<T>;
    std::vector<T> sums(kRows), distances(kRows);
    dot_rows(RowsOf<const T>{x.data(), stride}, RowsOf<const T>{y.data(), stride}, kRows, stride,
             RowsOf<T>{sums.data(), 1});
    squared_distances(y.data(), RowsOf<const T>{x.data(), stride}, kRows, stride, distances.data());
    AlignedVector<T> added = y, scaled = y, columns_summed(size(stride));
    add_scaled(T(0), x.data(), added.data(), kRows * stride);
    scale_into(T(0), x.data(), scaled.data(), kRows * stride);
    sum_rows(x.data(), kRows, columns, stride, columns_summed.data());
    for (int i = 0; i < kRows; ++i) {
      CHECK(std::isnan(sums[size(i)]) == (i == row));
      CHECK(std::isnan(distances[size(i)]) == (i == row));
    }
    CHECK(std::isnan(added[place]));
    CHECK(std::isnan(scaled[place]));
    CHECK(std::isnan(columns_summed[place - entries(row, stride)]));

    for (const bool has_bias : {false, true}) {
      AlignedVector<T> normal = x, result(x.size());
      const AlignedVector<T> gain = padded_values<T>(engine, 1, columns);
      std::vector<T> inverse(kRows);
      RowNorm<T> norm{kRows,         columns,       T(1e-5), gain.data(), has_bias ? gain.data() : nullptr,
                      normal.data(), inverse.data()};
      normalize_rows(norm, result.data());
      CHECK(is_lost_alone(result, row, columns));
      AlignedVector<T> gain_gradient(size(stride)), bias_gradient(size(stride)), input(x.size());
      const RowNormGradient<T> gradient{y.data(), gain_gradient.data(),
                                        has_bias ? bias_gradient.data() : nullptr, input.data()};
      normalize_rows_backward(norm, gradient);
      CHECK(is_lost_alone(input, row, columns));
      for (int j = 0; j < columns; ++j) CHECK(std::isnan(gain_gradient[size(j)]));
    }
  });
}

TEST_CASE_TEMPLATE("NaN in a factor, a start or a mask: a product is NaN where it depends on it", T, float,
                   double) {
  Engine engine(3);
  for_each_lane([&](int columns, int row, std::size_t place, int column) {
    const int stride = padded(columns);
    for (const Finish finish : {Finish::none, Finish::relu, Finish::relu_mask}) {
      AlignedVector<T> b = padded_values<T>(engine, columns, columns), c(entries(kRows, stride));
      AlignedVector<T> a = padded_values<T>(engine, kRows, columns), mask(c.size(), T(1));
      Product<T> product;
      product.m = kRows;
      product.n = product.k = columns;
      product.a = a.data();
      product.a_row = product.b_row = product.c_row = stride;
      product.b = b.data();
      product.c = c.data();
      product.finish = finish;
      product.mask = mask.data();
      a[place] = kNan<T>;
      for (const bool transposed : {false, true}) {
        product.b_transposed = transposed;
        multiply(product);
        CHECK(is_lost_alone(c, row, columns));
      }
      a[place] = T(1);
      const std::size_t of_b = entries(column, stride) + size(column);
      b[of_b] = kNan<T>;
      multiply(product);
      for (int i = 0; i < kRows; ++i) CHECK(std::isnan(c[entries(i, stride) + size(column)]));
      b[of_b] = T(1);
      c.assign(c.size(), T(0));
      c[place] = kNan<T>;
      product.start = Start::accumulate;
      multiply(product);
      CHECK(std::isnan(c[place]));
      product.start = Start::zero;
      mask[place] = kNan<T>;
      multiply(product);
      CHECK(std::isnan(c[place]) == (finish == Finish::relu_mask));
    }
  });
}

TEST_CASE_TEMPLATE("NaN in a gradient: the parameter is NaN after a step, and no other", T, float, double) {
  Engine engine(4);
  for_each_lane([&](int columns, int, std::size_t place, int) {
    AlignedVector<T> gradient = padded_values<T>(engine, kRows, columns);
    gradient[place] = kNan<T>;
    for (const bool adam : {false, true}) {
      AlignedVector<T> parameters(gradient.size(), T(1)), first(gradient.size(), T(0)), second = first;
      if (adam) {
        const AdamStep<T> step{T(0.1), T(0.9), T(0.99), T(1e-8), T(0), false, T(0.1), T(1)};
        adam_step(step, gradient.data(), first.data(), second.data(), parameters.data(), gradient.size());
      } else {
        sgd_step(SgdStep<T>{T(0.1), T(0.9), T(0)}, gradient.data(), first.data(), parameters.data(),
                 gradient.size());
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) CHECK(std::isnan(parameters[i]) == (i == place));
    }
  });
}

}  // namespace moelab::kernels::not_a_number_test
