/// Gaussian mixtures whose components are tight on features of their own.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab::tight_subsets_test {
namespace {

constexpr int kClusters = 3, kDim = 6, kTight = 2, kSamples = 30000;

DataOptions tight_mixture(double correlation, int tight_features = kTight) {
  return GaussianMixtureOptions{.clusters = kClusters,
                                .dim = kDim,
                                .mean_std = 3.0,
                                .noise_std = 2.0,
                                .covariance = gaussian_mixture::TightSubsets{.tight_features = tight_features,
                                                                             .tight_std = 0.1,
                                                                             .correlation = correlation},
                                .target = gaussian_mixture::ConstantTarget{}};
}

TEST_CASE("each component has its own tight features, and every two features the correlation") {
  for (const double correlation : {0.0, 0.5}) {
    const std::unique_ptr<Problem> problem = draw_problem(tight_mixture(correlation), {1, 0});
    const Dataset data = draw_set(*problem, {1, 0}, Purpose::test_data, kSamples);
    std::vector<std::vector<bool>> tight_sets;
    for (int c = 0; c < kClusters; ++c) {
      std::vector<Eigen::Index> rows;
      for (std::size_t i = 0; i < data.cluster.size(); ++i) {
        if (data.cluster[i] == c) rows.push_back(static_cast<Eigen::Index>(i));
      }
      const Matrix own = data.x(rows, Eigen::all);
      const Matrix centred = own.rowwise() - own.colwise().mean();
      const double n = static_cast<double>(rows.size());
      const Vector variances = centred.array().square().colwise().sum() / (n - 1);
      std::vector<bool> tight;
      for (int q = 0; q < kDim; ++q) {
        tight.push_back(variances[q] < 1);
        const double expected = tight.back() ? 0.01 : 4.0;
        CHECK(std::abs(variances[q] / expected - 1) < 5 * std::sqrt(2 / n));
        for (int p = 0; p < q; ++p) {
          const double r =
              centred.col(p).dot(centred.col(q)) / (n - 1) / std::sqrt(variances[p] * variances[q]);
          CHECK(std::abs(r - correlation) < 5 / std::sqrt(n));
        }
      }
      CHECK(std::count(tight.begin(), tight.end(), true) == kTight);
      tight_sets.push_back(tight);
    }
    CHECK((tight_sets[0] != tight_sets[1] || tight_sets[1] != tight_sets[2]));
  }
}

TEST_CASE("the best prediction weighs the components by their own covariances") {
  for (const double correlation : {0.0, 0.6}) {
    const std::unique_ptr<Problem> problem = draw_problem(tight_mixture(correlation), {1, 0});
    const Dataset data = draw_set(*problem, {1, 0}, Purpose::test_data, 4000);
    // E[y | x] leaves an error that no function of x correlates with: here the prediction itself.
    const Matrix best = problem->bayes_prediction(data.x).value();
    const Matrix error = data.y - best;
    for (Eigen::Index j = 0; j < best.cols(); ++j) {
      const Vector products = error.col(j).cwiseProduct(best.col(j));
      const double deviation = std::sqrt((products.array() - products.mean()).square().mean() / 4000.0);
      CHECK(std::abs(products.mean()) <= 4 * deviation + 1e-12);
    }
    // Components that differ on their tight features are separable almost always.
    CHECK(error.squaredNorm() / data.y.squaredNorm() < 0.05);
  }
}

TEST_CASE("means may vanish off the tight features, where the component's mean is 0") {
  using Means = gaussian_mixture::TightSubsets::Means;
  DataOptions data = tight_mixture(0);
  const auto drawn_means = [&](Means means) {
    GaussianMixtureOptions options = data.options().get<GaussianMixtureOptions>();
    options.covariance = gaussian_mixture::TightSubsets{
        .tight_features = kTight, .tight_std = 0.1, .correlation = 0, .means = means};
    const std::unique_ptr<Problem> problem = draw_problem(options, {1, 0});
    const Dataset rows = draw_set(*problem, {1, 0}, Purpose::test_data, kSamples);
    Matrix means_of(kClusters, kDim);
    for (int c = 0; c < kClusters; ++c) {
      std::vector<Eigen::Index> own;
      for (std::size_t i = 0; i < rows.cluster.size(); ++i) {
        if (rows.cluster[i] == c) own.push_back(static_cast<Eigen::Index>(i));
      }
      means_of.row(c) = rows.x(own, Eigen::all).colwise().mean();
    }
    return means_of;
  };
  const Matrix all = drawn_means(Means::all), tight = drawn_means(Means::tight);
  // A mean of 10,000 rows of deviation 2 is within 0.1 of its cluster's.
  for (int c = 0; c < kClusters; ++c) {
    int kept = 0, vanished = 0;
    for (int q = 0; q < kDim; ++q) {
      if (std::abs(tight(c, q)) < 0.1) {
        ++vanished;
      } else {
        CHECK(std::abs(tight(c, q) - all(c, q)) < 0.01);
        ++kept;
      }
    }
    CHECK(kept == kTight);
    CHECK(vanished == kDim - kTight);
    CHECK(all.row(c).cwiseAbs().minCoeff() > 0.1);
  }
}

TEST_CASE("fields that cannot be are refused") {
  const auto path_of = [](const DataOptions& data) {
    try {
      check(data);
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return std::string();
  };
  CHECK(path_of(tight_mixture(0)).empty());
  CHECK(path_of(tight_mixture(0, kDim + 1)) == "data.covariance.tight_features");
  CHECK(path_of(tight_mixture(1.0)) == "data.covariance.correlation");
  GaussianMixtureOptions apart = tight_mixture(0).options().get<GaussianMixtureOptions>();
  apart.separation = 0.1;
  CHECK(path_of(apart).empty());
  apart.covariance = gaussian_mixture::TightSubsets{.tight_features = kTight,
                                                    .means = gaussian_mixture::TightSubsets::Means::tight};
  CHECK(path_of(apart) == "data.covariance.means");
}

}  // namespace
}  // namespace moelab::tight_subsets_test
