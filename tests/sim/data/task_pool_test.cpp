/// Pools of linear tasks, and clusters of single-index models.

#include "sim/data/task_pool.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/single_index.h"

namespace moelab::task_pool_test {
namespace {

const Seeds kSeeds{5, 0};

Matrix rows_of_sample(const Dataset& data, int sample, int rows, int dim) {
  return MatrixView(data.x.row(sample).data(), rows, dim);
}

}  // namespace

TEST_CASE("a pool: targets are linear, tasks lie in groups, one row is the signal") {
  TaskPoolOptions options;
  options.tasks = 5;
  options.groups = 2;
  options.noise_norm = 0.1;
  options.signal_norm = 3;
  const std::unique_ptr<Problem> problem = draw_problem(DataOptions(options), kSeeds);
  const TaskPool& pool = *problem->task_pool();
  for (int n = 0; n < 5; ++n) {
    const double distance = (pool.weights.row(n) - pool.weights.row(n % 2)).norm();
    CHECK(distance < 6 * options.within * std::sqrt(10.0));
    CHECK((distance == 0) == (n < 2));
  }
  CHECK(pool.weights.row(0).norm() == doctest::Approx(options.weight_norm));
  CHECK(pool.signals.row(1).norm() == doctest::Approx(3));
  const Dataset data = draw_set(*problem, kSeeds, Purpose::test_data, 40);
  for (int i = 0; i < 40; ++i) {
    const Matrix x = rows_of_sample(data, i, options.rows, options.dim);
    const int task = data.cluster[size(i * options.rows)];
    CHECK((data.y.row(i).transpose() - x * pool.weights.row(task).transpose()).norm() < 1e-14);
    int signals = 0;
    for (int t = 0; t < options.rows; ++t) {
      const bool is_signal = x.row(t) == pool.signals.row(task);
      signals += is_signal;
      if (!is_signal) CHECK(x.row(t).norm() == doctest::Approx(0.1));
    }
    CHECK(signals == 1);
  }
}

TEST_CASE("a deviation beside a norm of the same rows is refused") {
  TaskPoolOptions options;
  options.noise_std = 2;
  check(DataOptions(options));
  options.noise_norm = 0.1;
  CHECK_THROWS_WITH_AS(check(DataOptions(options)),
                       "data.noise_std: given, but data.noise_norm sets the norm of the other rows",
                       InvalidOption);
}

TEST_CASE("a pool with a support: further coordinates are tiny copies with one factor each") {
  TaskPoolOptions options;
  options.support = 6;
  options.signal = TaskPoolOptions::Signal::parallel;
  const std::unique_ptr<Problem> problem = draw_problem(DataOptions(options), kSeeds);
  CHECK(problem->task_pool()->weights.rightCols(4).norm() == 0);
  const Dataset data = draw_set(*problem, kSeeds, Purpose::test_data, 1);
  const Matrix x = rows_of_sample(data, 0, options.rows, options.dim);
  for (int j = 0; j < 4; ++j) {
    const double factor = x(0, 6 + j) / x(0, j);
    CHECK(std::abs(factor) < 1e-2);
    CHECK((x.col(6 + j) - factor * x.col(j)).norm() < 1e-12);
  }
  options.support = 11;
  CHECK_THROWS_AS(check(DataOptions(options)), InvalidOption);
}

TEST_CASE("Hermite polynomials are orthonormal") {
  CHECK(hermite(0, 1.7) == 1);
  CHECK(hermite(2, 1.7) == doctest::Approx((1.7 * 1.7 - 1) / std::sqrt(2.0)));
  CHECK(hermite(3, 1.7) == doctest::Approx((1.7 * 1.7 * 1.7 - 3 * 1.7) / std::sqrt(6.0)));
}

TEST_CASE("single-index clusters: the global task is there in each cluster and averages out over both") {
  SingleIndexOptions options;
  options.dim = 8;
  const std::unique_ptr<Problem> problem = draw_problem(DataOptions(options), kSeeds);
  const SingleIndexDirections& directions = *problem->single_index();
  Matrix all(5, 8);
  all << directions.means, directions.local, directions.global;
  CHECK((all * all.transpose() - Matrix::Identity(5, 5)).norm() < 1e-12);
  constexpr int kSamples = 40000;
  const Dataset data = draw_set(*problem, kSeeds, Purpose::test_data, kSamples);
  double of_first = 0, of_second = 0, local = 0, first = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double global = hermite(3, data.x.row(i).dot(directions.global.row(0)));
    const bool is_first = data.cluster[size(i)] == 0;
    (is_first ? of_first : of_second) += data.y(i, 0) * global;
    if (!is_first) continue;
    ++first;
    local += data.y(i, 0) * hermite(3, data.x.row(i).dot(directions.local.row(0)));
  }
  // y he_3 has a standard deviation below 10; four standard errors of a mean over half of the samples.
  constexpr double kError = 4 * 10 / 141.0;
  CHECK(std::abs(of_first / first - 1) < kError);
  CHECK(std::abs(of_second / (kSamples - first) + 1) < kError);
  CHECK(std::abs(local / first - 1) < kError);
  CHECK(std::abs(of_first + of_second) / kSamples < kError);
  options.signs = {1};
  CHECK_THROWS_AS(check(DataOptions(options)), InvalidOption);
}

}  // namespace moelab::task_pool_test
