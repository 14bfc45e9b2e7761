#include "sim/data/image_clusters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/error.h"
#include "tests/sim/data/cifar_files.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/data/pieces.h"
#include "tests/sim/data/statistics.h"

namespace moelab::image_clusters_test {
namespace {

/// Moments lie within this many standard errors (two-sided level 6e-7 each).
constexpr double kStandardErrors = 5;
/// Regressions of order-one numbers in a few dimensions.
constexpr double kRounding = 1e-11;

const Seeds kSeeds{1, 0};

DataOptions described(const Json& changes) {
  Json data = {
      {"generator", "image_clusters"}, {"classes", 8},      {"vector_dim", 5}, {"size", 4}, {"channels", 2},
      {"train_samples", 10},           {"test_samples", 10}};
  data.update(changes);
  return data_of(data);
}

std::unique_ptr<Problem> problem_of(const Json& changes) {
  return draw_problem(described(changes), kSeeds);
}

TEST_CASE("the layout: an image, then v; one label a sample") {
  const Layout layout = problem_of({{"target", {{"kind", "linear"}, {"dim", 3}}}})->layout();
  CHECK(layout.image.channels == 2);
  CHECK(layout.image.height == 4);
  CHECK(layout.image.width == 4);
  CHECK(layout.input_dim == 2 * 4 * 4 + 5);
  CHECK(layout.router_dim() == 32);
  CHECK(layout.output_dim == 3);
  CHECK(problem_of(Json::object())->clusters() == 8);
}

TEST_CASE("classes are equally frequent") {
  constexpr int kRows = 20000;
  const std::vector<int> cluster =
      draw_set(*problem_of(Json::object()), kSeeds, Purpose::train_data, kRows).cluster;
  const auto passes = [&](const std::vector<double>& shares) {
    double statistic = 0;
    for (int c = 0; c < 8; ++c) {
      const double mean = kRows * shares[static_cast<std::size_t>(c)];
      const double count = static_cast<double>(rows_of(cluster, c).size());
      statistic += (count - mean) * (count - mean) / mean;
    }
    return below_quantile(statistic, 7);
  };
  CHECK(passes(std::vector<double>(8, 1 / 8.0)));
  CHECK_FALSE(passes({0.105, 0.145, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}));
}

TEST_CASE("v is N(0, I), and y is exactly W_c v with rows of W_c ~ N(0, I / vector_dim)") {
  constexpr int kRows = 12000, kClasses = 200;
  const std::unique_ptr<Problem> problem =
      problem_of({{"classes", kClasses}, {"target", {{"kind", "linear"}, {"dim", 2}}}});
  const Dataset data = draw_set(*problem, kSeeds, Purpose::train_data, kRows);
  const Matrix v = data.x.rightCols(5);
  const Matrix second = v.transpose() * v / kRows;
  const auto deviation = [](const Matrix& moments, const Matrix& expected, double count) {
    double worst = 0;
    for (Eigen::Index i = 0; i < moments.rows(); ++i) {
      for (Eigen::Index j = 0; j < moments.cols(); ++j) {
        const double error = std::sqrt((i == j ? 2 : 1) / count) * expected(i, i);
        worst = std::max(worst, std::abs(moments(i, j) - expected(i, j)) / error);
      }
    }
    return worst;
  };
  const Matrix identity = Matrix::Identity(5, 5);
  CHECK(v.colwise().mean().cwiseAbs().maxCoeff() * std::sqrt(static_cast<double>(kRows)) < kStandardErrors);
  CHECK(deviation(second, identity, kRows) < kStandardErrors);
  CHECK(deviation(second, 1.1 * identity, kRows) > kStandardErrors);

  Matrix slopes(2 * kClasses, 5);
  double residual = 0, mixed = 0;
  for (int c = 0; c < kClasses; ++c) {
    const std::vector<int> own = rows_of(data.cluster, c);
    REQUIRE(own.size() > 10);
    const Matrix inputs = v(own, Eigen::all), targets = data.y(own, Eigen::all);
    const Matrix w = regression(inputs, targets);
    residual = std::max(residual, (targets - inputs * w).cwiseAbs().maxCoeff());
    slopes.middleRows(2 * c, 2) = w.transpose();
    // No single matrix serves a row of another class.
    const std::vector<int> other = rows_of(data.cluster, (c + 1) % kClasses);
    const Matrix strangers = v(other, Eigen::all), theirs = data.y(other, Eigen::all);
    mixed = std::max(mixed, (theirs - strangers * w).cwiseAbs().maxCoeff());
  }
  CHECK(residual < kRounding);
  CHECK(mixed > 0.1);
  const Matrix spread = slopes.transpose() * slopes / (2 * kClasses);
  CHECK(deviation(spread, identity / 5, 2 * kClasses) < kStandardErrors);
  CHECK(deviation(spread, identity, 2 * kClasses) > kStandardErrors);
}

TEST_CASE("pieces equal the whole, and the first rows of a larger set are the smaller set") {
  const TemporaryFolder folder;
  const std::vector<int> labels = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3};
  write_records(folder.path() / "train.bin", labels, 0);
  write_records(folder.path() / "test.bin", labels, 100);
  for (const Json& changes : {Json::object(), Json{{"path", folder.path().string()}}}) {
    const std::unique_ptr<Problem> problem = problem_of(changes);
    for (const Purpose purpose : {Purpose::train_data, Purpose::test_data}) {
      const Dataset whole = draw_set(*problem, kSeeds, purpose, 12);
      check_pieces(*problem, kSeeds, purpose, {1, 4, 5, 2});
      const Dataset small = draw_set(*problem, kSeeds, purpose, 5);
      CHECK(small.x == whole.x.topRows(5));
      CHECK(small.y == whole.y.topRows(5));
    }
    const Dataset train = draw_set(*problem, kSeeds, Purpose::train_data, 12),
                  test = draw_set(*problem, kSeeds, Purpose::test_data, 12);
    CHECK(train.x.rightCols(5) != test.x.rightCols(5));
    CHECK(train.x.leftCols(32) != test.x.leftCols(32));
  }
}

TEST_CASE("CIFAR-100: each image once, with its class, standardised by the training set; v and W as ever") {
  const TemporaryFolder folder;
  const std::vector<int> train_labels = {4, 99, 0, 2, 4, 1, 50, 3}, test_labels = {3, 2, 99, 0};
  write_records(folder.path() / "train.bin", train_labels, 0);
  write_records(folder.path() / "test.bin", test_labels, 100);
  for (const int classes : {100, 5}) {
    CAPTURE(classes);
    const Json changes = {{"path", folder.path().string()}, {"classes", classes}};
    const std::unique_ptr<Problem> problem = problem_of(changes);
    REQUIRE(problem->layout().input_dim == 3072 + 5);
    CHECK(problem->layout().image.height == 32);
    const ChannelMoments moments = channel_moments(read_cifar(folder.path() / "train.bin", classes));
    for (const bool train : {true, false}) {
      const std::vector<int>& labels = train ? train_labels : test_labels;
      const int kept = static_cast<int>(
          std::count_if(labels.begin(), labels.end(), [&](int label) { return label < classes; }));
      const Purpose purpose = train ? Purpose::train_data : Purpose::test_data;
      const Dataset data = draw_set(*problem, kSeeds, purpose, kept);
      std::set<int> seen;
      for (int row = 0; row < kept; ++row) {
        for (int i = 0; i < static_cast<int>(labels.size()); ++i) {
          double worst = 0;
          for (int p = 0; p < 3072; ++p) {
            const std::size_t channel = static_cast<std::size_t>(p / 1024);
            const double pixel = marked_pixel((train ? 0 : 100) + i, p);
            const double expected = (pixel - moments.mean[channel]) / moments.deviation[channel];
            worst = std::max(worst, std::abs(data.x(row, p) - expected));
          }
          if (worst > kRounding) continue;
          CHECK(seen.insert(i).second);
          CHECK(data.cluster[static_cast<std::size_t>(row)] == labels[static_cast<std::size_t>(i)]);
        }
      }
      CHECK(static_cast<int>(seen.size()) == kept);
      CHECK_THROWS_AS(draw_set(*problem, kSeeds, purpose, kept + 1), InvalidOption);
    }
  }
}

TEST_CASE("files are checked before anything runs") {
  const TemporaryFolder folder;
  const auto error_path = [&](const Json& changes) -> std::string {
    Json data = {{"path", folder.path().string()}, {"train_samples", 3}, {"test_samples", 2}};
    data.update(changes);
    try {
      check(described(data));
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return "";
  };
  CHECK(error_path(Json::object()) == "data.path");
  write_records(folder.path() / "train.bin", {1, 99, 2, 1}, 0);
  CHECK(error_path(Json::object()) == "data.path");  // no test.bin
  write_records(folder.path() / "test.bin", {2, 50, 0}, 0);
  CHECK(error_path(Json::object()).empty());
  CHECK(error_path({{"classes", 100}, {"train_samples", 4}, {"test_samples", 3}}).empty());
  CHECK(error_path({{"classes", 100}, {"train_samples", 5}}) == "data.path");
  CHECK(error_path({{"classes", 100}, {"test_samples", 4}}) == "data.path");
  CHECK(error_path({{"train_samples", 4}}) == "data.path");  // three of the first eight classes
  CHECK(error_path({{"test_samples", 3}}) == "data.path");
  CHECK(error_path({{"classes", 101}}) == "data.classes");
  std::filesystem::resize_file(folder.path() / "test.bin", 3 * 3074 + 1);
  CHECK(error_path(Json::object()) == "data.path");
  CHECK_NOTHROW(check(described({{"train_samples", 1000000}})));  // synthetic
}

}  // namespace
}  // namespace moelab::image_clusters_test
