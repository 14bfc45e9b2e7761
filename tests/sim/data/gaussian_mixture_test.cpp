#include "sim/data/gaussian_mixture.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "sim/base/error.h"
#include "tests/sim/data/gaussian_mixture_problem.h"
#include "tests/sim/data/statistics.h"

namespace moelab::gaussian_mixture_test {
namespace {

/// Moments of a few dozen coordinates are compared within this many standard errors (two-sided level 6e-7
/// each).
constexpr double kStandardErrors = 5;
/// Orthogonality, rotations and regressions of order-one numbers in some dozen dimensions.
constexpr double kRounding = 1e-11;

/// μ_c (k, dim): the same problem without noise shows its means, since the streams do not depend on σ.
Matrix means_of(Json changes, const Seeds& seeds = kMixtureSeeds) {
  changes["noise_std"] = 0;
  changes["spurious_dims"] = 0;
  changes["rotate"] = false;
  const std::unique_ptr<Problem> still = mixture_problem(changes, seeds);
  const Dataset data = mixture_sample(*still, 200 * still->clusters());
  Matrix means(still->clusters(), still->layout().input_dim);
  std::set<int> seen;
  for (std::size_t i = 0; i < data.cluster.size(); ++i) {
    const int c = data.cluster[i];
    if (!seen.insert(c).second) CHECK((means.row(c) == data.x.row(static_cast<Eigen::Index>(i))));
    means.row(c) = data.x.row(static_cast<Eigen::Index>(i));
  }
  REQUIRE(seen.size() == static_cast<std::size_t>(still->clusters()));
  return means;
}

TEST_CASE("weights whose sum is beyond the range of double are refused") {
  try {
    mixture_problem({{"weights", {1e308, 1e308, 1, 1, 1}}});
    FAIL_CHECK("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == "data.weights");
    CHECK(error.message().find("the sum of the weights is not finite") != std::string::npos);
  }
}

TEST_CASE("component frequencies follow the weights") {
  constexpr int kRows = 20000;
  const std::vector<double> weights = {1, 2, 3, 4, 10};
  const auto passes = [&](const std::vector<int>& cluster, const std::vector<double>& expected) {
    std::vector<double> counts(5, 0);
    for (const int c : cluster) counts[static_cast<std::size_t>(c)] += 1;
    const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
    double statistic = 0;
    for (std::size_t c = 0; c < 5; ++c) {
      const double mean = kRows * expected[c] / total;
      statistic += (counts[c] - mean) * (counts[c] - mean) / mean;
    }
    return below_quantile(statistic, 4);
  };
  const std::vector<double> uniform(5, 1.0);
  const Dataset weighted = mixture_sample(*mixture_problem({{"weights", weights}}), kRows),
                plain = mixture_sample(*mixture_problem(Json::object()), kRows);
  CHECK(passes(weighted.cluster, weights));
  const Dataset falling = mixture_sample(*mixture_problem({{"weight_power", 2}}), kRows);
  CHECK(passes(falling.cluster, {1, 1.0 / 4, 1.0 / 9, 1.0 / 16, 1.0 / 25}));
  CHECK_FALSE(passes(falling.cluster, {1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5}));
  CHECK_FALSE(passes(weighted.cluster, uniform));
  CHECK_FALSE(passes(weighted.cluster, {1, 2, 3, 4.6, 9.4}));
  CHECK(passes(plain.cluster, uniform));
}

TEST_CASE("each component is N(μ_c, σ² I)") {
  constexpr double kSigma = 0.7;
  const Json changes = {{"noise_std", kSigma}};
  const Matrix means = means_of(changes);
  const Dataset data = mixture_sample(*mixture_problem(changes), 20000);
  for (int c = 0; c < 5; ++c) {
    CAPTURE(c);
    const Matrix noise = (rows_of(data.x, data.cluster, c).rowwise() - means.row(c)) / kSigma;
    CHECK(standard_normal_deviation(noise) < kStandardErrors);
    CHECK(standard_normal_deviation(noise * 1.1) > kStandardErrors);
    CHECK(standard_normal_deviation((noise.array() + 0.1).matrix()) > kStandardErrors);
  }
}

TEST_CASE("means are N(0, mean_std² I)") {
  const Matrix means = means_of({{"clusters", 1500}, {"mean_std", 2.0}});
  CHECK(standard_normal_deviation(means / 2.0) < kStandardErrors);
  CHECK(standard_normal_deviation(means / 1.5) > kStandardErrors);
}

TEST_CASE("constant targets: one value per cluster, N(0, I) over clusters") {
  const std::unique_ptr<Problem> problem = mixture_problem({{"clusters", 500}});
  const Dataset data = mixture_sample(*problem, 20000);
  Matrix values = Matrix::Constant(500, 3, NAN);
  int mixed = 0;
  for (std::size_t i = 0; i < data.cluster.size(); ++i) {
    const Eigen::Index row = static_cast<Eigen::Index>(i);
    if (std::isnan(values(data.cluster[i], 0))) values.row(data.cluster[i]) = data.y.row(row);
    mixed += values.row(data.cluster[i]) == data.y.row(row) ? 0 : 1;
  }
  CHECK(mixed == 0);
  REQUIRE(values.allFinite());
  CHECK(standard_normal_deviation(values) < kStandardErrors);
  CHECK(standard_normal_deviation(values * 1.2) > kStandardErrors);
}

TEST_CASE("linear targets: y is exactly W_c (x − μ_c), rows of W_c N(0, I / dim), rotated or not") {
  for (const bool rotate : {false, true}) {
    const Json changes = {{"clusters", 200},
                          {"rotate", rotate},
                          {"spurious_dims", 2},
                          {"target", {{"kind", "linear"}, {"dim", 2}}}};
    const std::unique_ptr<Problem> problem = mixture_problem(changes);
    const Matrix means = means_of(changes);
    const Dataset data = mixture_sample(*problem, 8000);
    const Matrix signal = data.x * problem->signal_basis();
    Matrix slopes(400, 4);
    double residual = 0, mixed = 0;
    for (int c = 0; c < 200; ++c) {
      const Matrix centred = rows_of(signal, data.cluster, c).rowwise() - means.row(c);
      const Matrix y = rows_of(data.y, data.cluster, c);
      const Matrix w = regression(centred, y);
      residual = std::max(residual, (y - centred * w).cwiseAbs().maxCoeff());
      slopes.middleRows(2 * c, 2) = w.transpose();
      // With the next cluster's centre the regression cannot be exact.
      const Matrix wrong = rows_of(signal, data.cluster, c).rowwise() - means.row((c + 1) % 200);
      mixed = std::max(mixed, (y - wrong * Matrix(regression(wrong, y))).cwiseAbs().maxCoeff());
    }
    CHECK(residual < kRounding);
    CHECK(mixed > 0.1);
    CHECK(standard_normal_deviation(slopes * 2.0) < kStandardErrors);
    CHECK(standard_normal_deviation(slopes) > kStandardErrors);
  }
}

TEST_CASE("a required separation holds, and one that cannot be reached is an error of the user") {
  const Json wide = {
      {"clusters", 30}, {"separation", 1.4}, {"noise_std", 0.8}, {"dim", 6}, {"mean_std", 1.0}};
  // Without noise the separation asks for nothing, so the means equal the cluster averages here.
  const auto averages = [](const Json& changes) {
    const std::unique_ptr<Problem> problem = mixture_problem(changes);
    const Dataset data = mixture_sample(*problem, 30000);
    Matrix means(problem->clusters(), problem->layout().input_dim);
    for (int c = 0; c < problem->clusters(); ++c)
      means.row(c) = rows_of(data.x, data.cluster, c).colwise().mean();
    return means;
  };
  // An average of about a thousand rows is off by σ √(dim / 1000) ≈ 0.06; two of them by 0.09, three times
  // that at most.
  constexpr double kAveraging = 0.27;
  const double distance = 1.4 * 0.8 * std::sqrt(6.0);
  CHECK(closest_pair(averages(wide)) > distance - kAveraging);
  Json free = wide;
  free.erase("separation");
  CHECK(closest_pair(averages(free)) < distance - kAveraging);

  Json impossible = wide;
  impossible["separation"] = 50;
  try {
    mixture_problem(impossible);
    FAIL("an impossible separation was accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == "data.separation");
    CHECK(error.message().find("50") != std::string::npos);
  }
}

TEST_CASE("spurious coordinates are N(0, 1) whatever the cluster and the noise") {
  const std::unique_ptr<Problem> problem = mixture_problem({{"spurious_dims", 3}, {"noise_std", 0.5}});
  CHECK(problem->layout().input_dim == 7);
  const Dataset data = mixture_sample(*problem, 20000);
  for (int c = 0; c < 5; ++c) {
    const Matrix spurious = rows_of(data.x, data.cluster, c).rightCols(3);
    CHECK(standard_normal_deviation(spurious) < kStandardErrors);
    CHECK(standard_normal_deviation(spurious * 0.5) > kStandardErrors);
    CHECK(standard_normal_deviation(rows_of(data.x, data.cluster, c).leftCols(3)) > kStandardErrors);
  }
}

TEST_CASE("other laws of spurious coordinates: mean 0, variance 1, the right tails, the signal untouched") {
  constexpr int kRows = 20000;
  const auto drawn = [](const char* law) {
    return mixture_sample(*mixture_problem({{"spurious_dims", 3}, {"spurious_law", law}}), kRows);
  };
  const Dataset normal = drawn("normal"), laplace = drawn("laplace"), two_point = drawn("two_point");
  CHECK(normal.x == mixture_sample(*mixture_problem({{"spurious_dims", 3}}), kRows).x);
  for (const Dataset* const other : {&laplace, &two_point}) {
    const Matrix spurious = other->x.rightCols(3);
    CHECK((other->x.leftCols(4) == normal.x.leftCols(4)));
    CHECK(other->y == normal.y);
    // The three laws are increasing in the same draws.
    CHECK(((spurious.array() < 0) == (normal.x.rightCols(3).array() < 0)).all());
    CHECK(std::abs(spurious.mean()) < kStandardErrors / std::sqrt(3.0 * kRows));
    // Fourth moments of at most 6: the square of an entry has a standard deviation below 2.3.
    CHECK(std::abs(spurious.array().square().mean() - 1) < kStandardErrors * 2.3 / std::sqrt(3.0 * kRows));
  }
  CHECK((two_point.x.rightCols(3).array().abs() == 1).all());
  // P(|h| > 2) is exp(−2√2) = 0.0591 of Laplace's law of variance 1, 0.0455 of the normal one.
  const auto beyond = [](const Dataset& data) {
    return (data.x.rightCols(3).array().abs() > 2).cast<double>().mean();
  };
  const double error = kStandardErrors * std::sqrt(0.0591 / (3.0 * kRows));
  CHECK(std::abs(beyond(laplace) - 0.0591) < error);
  CHECK(std::abs(beyond(normal) - 0.0591) > error);
}

TEST_CASE("a rotation is orthogonal, not axis-aligned, and turns the inputs alone") {
  const Json turned = {{"spurious_dims", 8}, {"rotate", true}}, straight = {{"spurious_dims", 8}};
  const std::unique_ptr<Problem> problem = mixture_problem(turned), plain = mixture_problem(straight);
  const Matrix basis = problem->signal_basis();
  REQUIRE(basis.rows() == 12);
  REQUIRE(basis.cols() == 4);
  CHECK((basis.transpose() * basis - Matrix::Identity(4, 4)).cwiseAbs().maxCoeff() < kRounding);
  CHECK(basis.cwiseAbs().maxCoeff() < 0.95);
  CHECK((plain->signal_basis() == Matrix(Matrix::Identity(12, 4))));

  const Dataset rotated = mixture_sample(*problem, 5000), flat = mixture_sample(*plain, 5000);
  CHECK((rotated.y == flat.y));
  CHECK(rotated.cluster == flat.cluster);
  CHECK((rotated.x * basis - flat.x.leftCols(4)).cwiseAbs().maxCoeff() < kRounding);
  CHECK((rotated.x.rowwise().norm() - flat.x.rowwise().norm()).cwiseAbs().maxCoeff() < kRounding);

  // In coordinates of the complement the inputs are standard normal; in others they are not.
  const Matrix full = span_of_columns(basis, kRounding).basis;
  CHECK(standard_normal_deviation(rotated.x * full.rightCols(8)) < kStandardErrors);
  CHECK(standard_normal_deviation(rotated.x.rightCols(8)) > kStandardErrors);
}

TEST_CASE("rotations are uniform: entries have mean 0 and variance 1 / d") {
  constexpr int kCount = 1000;
  Vector corner(kCount);
  for (int i = 0; i < kCount; ++i) {
    corner[i] =
        mixture_problem({{"rotate", true}}, {3, static_cast<std::uint64_t>(i)})->signal_basis()(0, 0) * 2;
  }
  const auto mean_in_errors = [](const Vector& values) {
    return std::abs(values.mean()) * std::sqrt(static_cast<double>(kCount));
  };
  CHECK(mean_in_errors(corner) < kStandardErrors);
  // The square of an entry of a uniform unit vector in R^4, times 4, has variance 2 · 3 / 6 = 1.
  CHECK(mean_in_errors((corner.array().square() - 1).matrix()) < kStandardErrors);
  CHECK(mean_in_errors(-corner.cwiseAbs()) >
        kStandardErrors);  // what a QR decomposition gives without its signs
}

TEST_CASE("the first rows of a larger sample are the smaller sample, to the last bit") {
  for (const bool rotate : {false, true}) {
    for (const std::string target : {"constant", "linear"}) {
      CAPTURE(rotate);
      CAPTURE(target);
      const std::unique_ptr<Problem> problem = mixture_problem(
          {{"spurious_dims", 20}, {"rotate", rotate}, {"target", {{"kind", target}, {"dim", 3}}}});
      const Dataset large = mixture_sample(*problem, 5001);
      for (const int rows : {1, 2, 3, 5, 17, 640, 4999}) {
        CAPTURE(rows);
        const Dataset small = mixture_sample(*problem, rows);
        CHECK((small.x == large.x.topRows(rows)));
        CHECK((small.y == large.y.topRows(rows)));
        CHECK(std::equal(small.cluster.begin(), small.cluster.end(), large.cluster.begin()));
      }
    }
  }
}

TEST_CASE("problems differ by seed, and their parts do not depend on one another") {
  CHECK((means_of(Json::object()) != means_of(Json::object(), {1, 1})));
  CHECK((means_of(Json::object()) != means_of(Json::object(), {2, 0})));
  CHECK(means_of(Json::object()) ==
        means_of({{"target", {{"kind", "linear"}, {"dim", 7}}}, {"weights", {1, 2, 3, 4, 5}}}));
}

}  // namespace
}  // namespace moelab::gaussian_mixture_test
