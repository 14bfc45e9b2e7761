#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/base/kernels/kernels.h"
#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::row_norm_test {
namespace {

constexpr double kFloor = 1e-5;
constexpr int kRows = 7;  // some side by side, some alone

std::size_t place(int row, int column, int dim) {
  return entries(row, padded(dim)) + static_cast<std::size_t>(column);
}

/// Standard normals, padding zero.
template <class T>
AlignedVector<T> rows_of_normals(Engine& engine, int rows, int dim) {
  AlignedVector<T> values(entries(rows, padded(dim)));
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < dim; ++j) values[place(i, j, dim)] = static_cast<T>(1 + draw_normal(engine));
  }
  return values;
}

/// What a pass there and back gives, one array after the other: y, x̂, ∂L/∂x, ∂L/∂g and ∂L/∂b.
template <class T>
struct Case {
  int dim;
  bool is_centred;
  AlignedVector<T> x, gain, bias, output_gradient;

  AlignedVector<T> run() const {
    AlignedVector<T> normal = x, inverse(kRows), y(x.size()), input_gradient(x.size()),
                     gains(gain.size(), T(9)), biases(gain.size());
    const RowNorm<T> norm{.rows = kRows,
                          .dim = dim,
                          .floor = T(kFloor),
                          .gain = gain.data(),
                          .bias = is_centred ? bias.data() : nullptr,
                          .normal = normal.data(),
                          .inverse = inverse.data()};
    normalize_rows(norm, y.data());
    normalize_rows_backward(
        norm, RowNormGradient<T>{output_gradient.data(), gains.data(), biases.data(), input_gradient.data()});
    AlignedVector<T> all;
    for (const auto& part : {y, normal, input_gradient, gains, biases})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  /// By the definitions, in long double.
  std::vector<double> exact() const {
    const std::size_t size = x.size();
    std::vector<long double> all(3 * size + 2 * gain.size(), 0.0L);
    for (int i = 0; i < kRows; ++i) {
      const auto mean_of = [&](const auto& value) {
        long double sum = 0;
        for (int j = 0; j < dim; ++j) sum += value(j);
        return sum / dim;
      };
      const auto given = [&](int j) { return static_cast<long double>(x[place(i, j, dim)]); };
      const long double mean = is_centred ? mean_of(given) : 0.0L;
      const long double square = mean_of([&](int j) { return (given(j) - mean) * (given(j) - mean); });
      const long double inverse = 1 / std::sqrt(square + static_cast<long double>(T(kFloor)));
      const auto normal = [&](int j) { return (given(j) - mean) * inverse; };
      const auto upstream = [&](int j) {
        return static_cast<long double>(output_gradient[place(i, j, dim)]);
      };
      const auto scaled = [&](int j) {
        return static_cast<long double>(gain[static_cast<std::size_t>(j)]) * upstream(j);
      };
      const long double along = mean_of([&](int j) { return scaled(j) * normal(j); });
      const long double scaled_mean = is_centred ? mean_of(scaled) : 0.0L;
      for (int j = 0; j < dim; ++j) {
        const std::size_t at = place(i, j, dim), column = static_cast<std::size_t>(j);
        const long double shift = is_centred ? static_cast<long double>(bias[column]) : 0.0L;
        all[at] = static_cast<long double>(gain[column]) * normal(j) + shift;
        all[size + at] = normal(j);
        all[2 * size + at] = (scaled(j) - scaled_mean - normal(j) * along) * inverse;
        all[3 * size + column] += upstream(j) * normal(j);
        if (is_centred) all[3 * size + gain.size() + column] += upstream(j);
      }
    }
    return {all.begin(), all.end()};
  }
};

TEST_CASE_TEMPLATE("norms of rows and their gradients, at every level; padding stays zero", T, float,
                   double) {
  Engine engine(6);
  for (const int dim : {1, 3, 16, 21, 64}) {
    for (const bool is_centred : {true, false}) {
      if (dim == 1 && is_centred) continue;  // always zero: nothing to hold against
      CAPTURE(dim);
      CAPTURE(is_centred);
      const Case<T> norm{dim,
                         is_centred,
                         rows_of_normals<T>(engine, kRows, dim),
                         rows_of_normals<T>(engine, 1, dim),
                         rows_of_normals<T>(engine, 1, dim),
                         rows_of_normals<T>(engine, kRows, dim)};
      const std::vector<double> exact = norm.exact();
      // Sums of at most 64 terms of the order of one; a row's inverse norm magnifies them by little.
      std::vector<double> bound(exact.size(), 400 * kEpsilon<T>);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        if (exact[i] == 0) bound[i] = 0;
      }
      check_levels<T>(
          "normalize_rows", [&] { return norm.run(); }, exact, bound);
      AlignedVector<T> wrong = norm.run();
      wrong[0] *= T(1.01);
      CHECK(worst_error(wrong, exact, bound) > 1.0);
    }
  }
}

}  // namespace
}  // namespace moelab::kernels::row_norm_test
