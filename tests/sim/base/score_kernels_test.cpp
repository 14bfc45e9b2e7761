#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/kernels/scores.h"
#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::score_kernels_test {
namespace {

constexpr double kClosed = -std::numeric_limits<double>::infinity();
constexpr int kRows = 11;

/// Scores with ties, and −∞ in every row but the first.
std::vector<double> scores_of(Engine& engine, int columns) {
  std::vector<double> scores;
  for (int i = 0; i < kRows * columns; ++i) {
    const double score = std::round(8 * draw_normal(engine)) / 4;
    scores.push_back(i >= columns && i % columns > 0 && i % 7 == 0 ? kClosed : score);
  }
  return scores;
}

constexpr int kWidths[] = {1, 2, 3, 8, 15, 16, 17, 33, 64, 100, 256};

TEST_CASE("softmax and entropy of rows of any width at every vector level") {
  const LevelGuard guard;
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    Engine engine = Seeds{3, 0}.stream(Purpose::evaluation);
    for (const int columns : kWidths) {
      CAPTURE(level);
      CAPTURE(columns);
      const std::vector<double> scores = scores_of(engine, columns);
      std::vector<double> probabilities(scores.size(), -1), entropies(kRows, -1);
      softmax_entropies(scores.data(), kRows, columns, probabilities.data(), entropies.data());
      for (int i = 0; i < kRows; ++i) {
        const double* const row = &scores[static_cast<std::size_t>(i * columns)];
        const double peak = *std::max_element(row, row + columns);
        double sum = 0, entropy = 0;
        for (int e = 0; e < columns; ++e) sum += std::exp(row[e] - peak);
        for (int e = 0; e < columns; ++e) {
          const double r = std::exp(row[e] - peak) / sum;
          CHECK(probabilities[static_cast<std::size_t>(i * columns + e)] ==
                doctest::Approx(r).epsilon(1e-14));
          if (r > 0) entropy -= r * std::log(r);
        }
        CHECK(std::abs(entropies[static_cast<std::size_t>(i)] - entropy) < 1e-13);
      }
    }
  }
}

TEST_CASE(
    "the largest of rows in order, the lower index first among equals, and never one of minus infinity") {
  const LevelGuard guard;
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    Engine engine = Seeds{4, 0}.stream(Purpose::evaluation);
    for (const int columns : kWidths) {
      const std::vector<double> scores = scores_of(engine, columns);
      for (const int k : {1, 2, 8, columns}) {
        if (k > columns) continue;
        CAPTURE(level);
        CAPTURE(columns);
        CAPTURE(k);
        std::vector<int> found(static_cast<std::size_t>(kRows * k), -2), next(kRows, -2);
        find_largest_of_rows(scores.data(), kRows, columns, k, found.data(), next.data());
        for (int i = 0; i < kRows; ++i) {
          const double* const row = &scores[static_cast<std::size_t>(i * columns)];
          std::vector<int> order(static_cast<std::size_t>(columns));
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });
          for (int& e : order) e = row[e] > kClosed ? e : -1;
          order.push_back(-1);
          CHECK(std::equal(order.begin(), order.begin() + k, found.begin() + i * k));
          CHECK(next[static_cast<std::size_t>(i)] == order[static_cast<std::size_t>(k)]);
        }
      }
    }
  }
}

TEST_CASE("summaries of rows, and whether they are finite") {
  const LevelGuard guard;
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    Engine engine = Seeds{5, 0}.stream(Purpose::evaluation);
    for (const int columns : kWidths) {
      CAPTURE(level);
      CAPTURE(columns);
      std::vector<double> values;
      for (int i = 0; i < kRows * columns; ++i) values.push_back(draw_normal(engine));
      // The last entry of a row each.
      values[static_cast<std::size_t>(2 * columns - 1)] = std::nan("");
      values[static_cast<std::size_t>(3 * columns - 1)] = -kClosed;
      values[static_cast<std::size_t>(4 * columns - 1)] = kClosed;
      std::vector<RowSummary> summaries(kRows);
      summarize_rows(values.data(), kRows, columns, summaries.data());
      for (int i = 0; i < kRows; ++i) {
        const RowSummary& summary = summaries[static_cast<std::size_t>(i)];
        CHECK(summary.is_finite == (i < 1 || i > 3));
        if (!summary.is_finite) continue;
        const double* const row = &values[static_cast<std::size_t>(i * columns)];
        CHECK(summary.least == *std::min_element(row, row + columns));
        CHECK(summary.largest == *std::max_element(row, row + columns));
        CHECK(summary.sum == doctest::Approx(std::accumulate(row, row + columns, 0.0)));
        CHECK(summary.above_zero == std::count_if(row, row + columns, [](double x) { return x > 0; }));
      }
    }
  }
}

}  // namespace
}  // namespace moelab::kernels::score_kernels_test
