#include "sim/data/tokenized_mixture.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "tests/sim/data/pieces.h"
#include "tests/sim/data/statistics.h"
#include "tests/sim/data/tokenized_mixture_problem.h"

namespace moelab::tokenized_mixture_test {
namespace {

using namespace tokenized_mixture_problem;

/// Moments of a few dozen coordinates are compared within this many standard errors (two-sided level 6e-7
/// each).
constexpr double kStandardErrors = 5;
/// Regressions and sums of order-one numbers in a handful of dimensions.
constexpr double kRounding = 1e-11;

/// The tokens of a set as rows, (n·s, d).
Matrix tokens_of(const Problem& problem, const Dataset& data) {
  const Layout layout = problem.layout();
  return MatrixView(data.x.data(), data.x.rows() * layout.tokens, layout.input_dim);
}

/// What a problem keeps to itself, read off sequences of one token: the means μ_c (k, d) of the noiseless
/// problem, and W_c^T (d, o) from the linear target by a regression that must be exact.
struct Latents {
  Matrix means;
  std::vector<Matrix> slopes;
};
Latents latents_of(Json changes, const Seeds& seeds = kSeeds) {
  changes["tokens"] = 1;
  changes["target"] = {{"kind", "linear"}, {"dim", 2}};
  const std::unique_ptr<Problem> noisy = problem_of(changes, seeds);
  changes["noise_std"] = 0;
  const std::unique_ptr<Problem> still = problem_of(changes, seeds);
  const int clusters = still->clusters();
  const Dataset points = sample(*still, 100 * clusters), data = sample(*noisy, 100 * clusters);
  Latents latents{Matrix(clusters, points.x.cols()), {}};
  double residual = 0;
  for (int c = 0; c < clusters; ++c) {
    const Matrix same = rows_of(points.x, points.cluster, c);
    latents.means.row(c) = same.row(0);
    CHECK((same.rowwise() - same.row(0)).isZero(0));
    const Matrix x = rows_of(data.x, data.cluster, c), y = rows_of(data.y, data.cluster, c);
    REQUIRE(x.rows() > x.cols());
    latents.slopes.push_back(regression(x, y));
    residual = std::max(residual, (y - x * latents.slopes.back()).cwiseAbs().maxCoeff());
  }
  CHECK(residual < kRounding);
  return latents;
}

TEST_CASE("shapes: one target a sequence, one label a token") {
  const std::unique_ptr<Problem> problem = problem_of({{"tokens", 6}});
  const Layout layout = problem->layout();
  CHECK(problem->clusters() == kClusters);
  CHECK(layout.input_shape(7) == std::vector<std::int64_t>{7, 6, kDim});
  CHECK(layout.target_shape(7) == std::vector<std::int64_t>{7, 2});
  CHECK(layout.label_shape(7) == std::vector<std::int64_t>{7, 6});
  const Dataset data = sample(*problem, 7);
  CHECK(data.x.rows() == 7);
  CHECK(data.x.cols() == 6 * kDim);
  CHECK(data.y.rows() == 7);
  CHECK(data.y.cols() == 2);
  CHECK(data.cluster.size() == 42);
}

TEST_CASE("components are equally likely at every place and independent within a sequence") {
  constexpr int kSamples = 20000;
  const Dataset data = sample(*problem_of(Json::object()), kSamples);
  // Counts of the components at place t, and of pairs of components at places t and u.
  const auto counts = [](const std::vector<int>& labels, std::size_t t, std::size_t u) {
    Vector pairs = Vector::Zero(kClusters * kClusters);
    for (std::size_t i = 0; i < labels.size(); i += 3) pairs[labels[i + t] * kClusters + labels[i + u]] += 1;
    return pairs;
  };
  for (std::size_t t = 0; t < 3; ++t) {
    Vector single(kClusters);
    for (int c = 0; c < kClusters; ++c) single[c] = counts(data.cluster, t, t)[c * kClusters + c];
    CHECK(looks_uniform(single));
    single[0] += 0.1 * single[1];
    CHECK_FALSE(looks_uniform(single));
    for (std::size_t u = 0; u < t; ++u) CHECK(looks_uniform(counts(data.cluster, t, u)));
  }
  // One component for a whole sequence has the right frequencies, but not the independence.
  std::vector<int> shared = data.cluster;
  for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = shared[i - i % 3];
  CHECK_FALSE(looks_uniform(counts(shared, 0, 2)));
}

TEST_CASE("tokens of a component are N(μ_c, σ² I) at every place, independent within a sequence") {
  constexpr double kSigma = 0.7;
  const Json changes = {{"noise_std", kSigma}};
  const Latents latents = latents_of(changes);
  const std::unique_ptr<Problem> problem = problem_of(changes);
  const Dataset data = sample(*problem, 20000);
  Matrix noise = tokens_of(*problem, data);
  for (int c = 0; c < kClusters; ++c) {
    CAPTURE(c);
    const Matrix own = (rows_of(noise, data.cluster, c).rowwise() - latents.means.row(c)) / kSigma;
    CHECK(standard_normal_deviation(own) < kStandardErrors);
    CHECK(standard_normal_deviation(own * 1.1) > kStandardErrors);
    CHECK(standard_normal_deviation((own.array() + 0.1).matrix()) > kStandardErrors);
  }
  // All entries of a sequence together, tokens side by side: their noise is N(0, I) in s·d dimensions.
  for (Eigen::Index row = 0; row < noise.rows(); ++row) {
    noise.row(row) -= latents.means.row(data.cluster[static_cast<std::size_t>(row)]);
  }
  const Matrix together = MatrixView(noise.data(), data.x.rows(), data.x.cols()) / kSigma;
  CHECK(standard_normal_deviation(together) < kStandardErrors);
  Matrix repeated = together;
  repeated.rightCols(kDim) = together.leftCols(kDim);
  CHECK(standard_normal_deviation(repeated) > kStandardErrors);
}

TEST_CASE("means are N(0, mean_std² I), rows of W_c N(0, I / (d (mean_std² + σ²)))") {
  const Latents latents = latents_of({{"clusters", 1500}, {"mean_std", 2.0}, {"noise_std", 1.5}});
  CHECK(standard_normal_deviation(latents.means / 2.0) < kStandardErrors);
  CHECK(standard_normal_deviation(latents.means / 1.5) > kStandardErrors);
  Matrix rows(3000, kDim);
  for (int c = 0; c < 1500; ++c)
    rows.middleRows(2 * c, 2) = latents.slopes[static_cast<std::size_t>(c)].transpose();
  const double scale = std::sqrt(kDim * (2.0 * 2.0 + 1.5 * 1.5));
  CHECK(standard_normal_deviation(rows * scale) < kStandardErrors);
  CHECK(standard_normal_deviation(rows * std::sqrt(kDim)) > kStandardErrors);
}

TEST_CASE("targets are the sums of W_c x or of its squares over the tokens, with the latents of any s") {
  const Latents latents = latents_of(Json::object());
  for (const bool quadratic : {false, true}) {
    for (const int s : {1, 2, 3, 8}) {
      CAPTURE(quadratic);
      CAPTURE(s);
      const std::unique_ptr<Problem> problem =
          problem_of({{"tokens", s}, {"target", {{"kind", quadratic ? "quadratic" : "linear"}, {"dim", 2}}}});
      const Dataset data = sample(*problem, 500);
      const Matrix tokens = tokens_of(*problem, data);
      const auto recomputed = [&](int shift) {
        Matrix y = Matrix::Zero(500, 2);
        for (Eigen::Index row = 0; row < tokens.rows(); ++row) {
          const int c = (data.cluster[static_cast<std::size_t>(row)] + shift) % kClusters;
          const Eigen::RowVectorXd value = tokens.row(row) * latents.slopes[static_cast<std::size_t>(c)];
          y.row(row / s) += quadratic ? Eigen::RowVectorXd(value.cwiseAbs2()) : value;
        }
        return y;
      };
      CHECK((data.y - recomputed(0)).cwiseAbs().maxCoeff() < kRounding);
      // The next component's W, and a mean in place of the sum, are other targets.
      CHECK((data.y - recomputed(1)).cwiseAbs().maxCoeff() > 0.1);
      if (s > 1) CHECK((data.y - recomputed(0) / s).cwiseAbs().maxCoeff() > 0.1);
    }
  }
}

TEST_CASE("the label variance is of order s: an entry of W_c x has variance one over problems") {
  // Over problems, clusters and tokens w^T x has mean 0 and variance 1, its square mean 1 and variance above
  // 2.
  constexpr int kProblems = 400;
  for (const int s : {2, 8}) {
    for (const bool quadratic : {false, true}) {
      CAPTURE(s);
      CAPTURE(quadratic);
      Vector scaled(kProblems);
      for (int i = 0; i < kProblems; ++i) {
        const std::unique_ptr<Problem> problem =
            problem_of({{"tokens", s},
                        {"clusters", 50},
                        {"dim", 8},
                        {"target", {{"kind", quadratic ? "quadratic" : "linear"}, {"dim", 1}}}},
                       {5, static_cast<std::uint64_t>(i)});
        // Linear: E y² = s. Quadratic: E y = s. One sample a problem, so that samples are independent.
        const double y = sample(*problem, 1).y(0, 0);
        scaled[i] = (quadratic ? y : y * y) / s;
      }
      const double error =
          std::sqrt((scaled.array() - scaled.mean()).square().mean() / static_cast<double>(kProblems));
      CHECK(std::abs(scaled.mean() - 1) < kStandardErrors * error);
      CHECK(std::abs(scaled.mean() * s - 1) > kStandardErrors * error);
    }
  }
}

TEST_CASE("the first samples of a set are the smaller set, and pieces equal the whole, to the last bit") {
  for (const std::string target : {"linear", "quadratic"}) {
    CAPTURE(target);
    const std::unique_ptr<Problem> problem = problem_of({{"target", {{"kind", target}, {"dim", 3}}}});
    const Dataset whole = sample(*problem, 1001);
    for (const int count : {1, 2, 3, 17, 640}) {
      CAPTURE(count);
      const Dataset small = sample(*problem, count);
      CHECK((small.x == whole.x.topRows(count)));
      CHECK((small.y == whole.y.topRows(count)));
      CHECK(std::equal(small.cluster.begin(), small.cluster.end(), whole.cluster.begin()));
    }
    check_pieces(*problem, kSeeds, Purpose::train_data, {1, 400, 7, 593});
  }
}

TEST_CASE("a sample at 2s is two consecutive samples at s, and its target their sum") {
  const std::unique_ptr<Problem> shorter = problem_of({{"tokens", 4}}), longer = problem_of({{"tokens", 8}});
  const Dataset halves = sample(*shorter, 600), whole = sample(*longer, 300);
  CHECK(tokens_of(*shorter, halves) == tokens_of(*longer, whole));
  CHECK(halves.cluster == whole.cluster);
  for (Eigen::Index i = 0; i < 300; ++i) {
    const Eigen::RowVectorXd sum = halves.y.row(2 * i) + halves.y.row(2 * i + 1);
    CHECK((whole.y.row(i) - sum).cwiseAbs().maxCoeff() < kRounding);
  }
}

TEST_CASE("problems differ by seed, and their parts do not depend on one another") {
  const Latents plain = latents_of(Json::object()), other = latents_of(Json::object(), {1, 1}),
                louder = latents_of({{"noise_std", 0.2}}), wider = latents_of({{"mean_std", 3.0}});
  CHECK((plain.means != other.means));
  CHECK((plain.means == louder.means));
  CHECK((plain.means * 2 - wider.means).cwiseAbs().maxCoeff() < kRounding);  // mean_std is 1.5 by default
  const double ratio = std::hypot(1.5, 1.0) / std::hypot(1.5, 0.2);
  CHECK((plain.slopes[2] * ratio - louder.slopes[2]).cwiseAbs().maxCoeff() < kRounding);
  CHECK((plain.slopes[2] - other.slopes[2]).cwiseAbs().maxCoeff() > 0.01);
}

TEST_CASE("a bad field is named with what is allowed") {
  const auto message = [](const Json& changes) {
    try {
      tokenized(changes);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(message({{"tokens", 0}}).starts_with("data.tokens"));
  CHECK(message({{"tokns", 3}}).find("tokens") != std::string::npos);
  CHECK(message({{"target", {{"kind", "quadrtic"}}}}).find("quadratic") != std::string::npos);
  CHECK(message({{"spurious_dims", 1}}).starts_with("data.spurious_dims"));
}

}  // namespace
}  // namespace moelab::tokenized_mixture_test
