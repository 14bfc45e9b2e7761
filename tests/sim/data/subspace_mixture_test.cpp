#include "sim/data/subspace_mixture.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/data/pieces.h"
#include "tests/sim/data/statistics.h"

namespace moelab::subspace_mixture_test {
namespace {

/// Moments of a few hundred entries are compared within this many standard errors (two-sided level 6e-7
/// each).
constexpr double kStandardErrors = 5;
/// Projections and regressions of order-one numbers in some ten dimensions.
constexpr double kRounding = 1e-11;

constexpr int kClusters = 5, kDim = 12, kRank = 4, kOutputs = 3;
constexpr double kSignal = 1.5, kNoise = 0.6;

const Seeds kSeeds{1, 0};

std::unique_ptr<Problem> problem_of(const Json& changes, const Seeds& seeds = kSeeds) {
  Json data = {{"generator", "subspace_mixture"},
               {"clusters", kClusters},
               {"dim", kDim},
               {"rank", kRank},
               {"signal_std", kSignal},
               {"noise_std", kNoise},
               {"target", {{"kind", "linear"}, {"dim", kOutputs}}},
               {"train_samples", 10}};
  data.update(changes);
  return draw_problem(data_of(data), seeds);
}

Dataset sample(const Json& changes, int rows, const Seeds& seeds = kSeeds) {
  return draw_set(*problem_of(changes, seeds), kSeeds, Purpose::train_data, rows);
}

/// The same draws without noise: x is z there, whatever the scale of the noise left out.
Dataset sample_without_noise(Json changes, int rows, const Seeds& seeds = kSeeds) {
  changes["noise_std"] = 0;
  return sample(changes, rows, seeds);
}

/// The least squares map (columns of x, columns of y) from rows of x to rows of y, and what it leaves over.
struct Regression {
  Regression(const Matrix& x, const Matrix& y) : map(regression(x, y)), rest(y - x * map) {}
  double largest_rest() const { return rest.cwiseAbs().maxCoeff(); }
  Matrix map, rest;
};

/// An orthonormal basis (d, t) of the span of rows that have rank t, and of its complement (d, d − t).
struct SpanOfRows {
  explicit SpanOfRows(const Matrix& rows) {
    const Span columns = span_of_columns(rows.transpose(), kRounding);
    rank = columns.rank;
    inside = columns.basis.leftCols(rank);
    outside = columns.basis.rightCols(columns.basis.cols() - rank);
  }
  Matrix projection() const { return inside * inside.transpose(); }
  int rank;
  Matrix inside, outside;
};

SpanOfRows span_of(const Json& changes, int cluster, int clusters = kClusters, const Seeds& seeds = kSeeds) {
  const Dataset still = sample_without_noise(changes, 40 * clusters, seeds);
  return SpanOfRows(rows_of(still.x, still.cluster, cluster));
}

double mean_in_standard_errors(const Vector& values, double expected) {
  const double count = static_cast<double>(values.size());
  const double deviation = std::sqrt((values.array() - values.mean()).square().mean() / count);
  return std::abs(values.mean() - expected) / deviation;
}

TEST_CASE("components are uniform") {
  constexpr int kRows = 20000;
  const auto passes = [](std::vector<double> counts) {
    const double mean = static_cast<double>(kRows) / kClusters;
    double statistic = 0;
    for (const double count : counts) statistic += (count - mean) * (count - mean) / mean;
    return below_quantile(statistic, kClusters - 1);
  };
  std::vector<double> counts(kClusters, 0);
  for (const int c : sample(Json::object(), kRows).cluster) counts[static_cast<std::size_t>(c)] += 1;
  CHECK(passes(counts));
  counts[0] += 400;
  counts[1] -= 400;
  CHECK_FALSE(passes(counts));
}

TEST_CASE("a cluster without noise spans a subspace of the rank, and with noise has Cov s² B Bᵀ + σ² I") {
  const Dataset data = sample(Json::object(), 20000);
  for (int c = 0; c < kClusters; ++c) {
    CAPTURE(c);
    const SpanOfRows span = span_of(Json::object(), c), other = span_of(Json::object(), (c + 1) % kClusters);
    REQUIRE(span.rank == kRank);
    const Matrix x = rows_of(data.x, data.cluster, c);
    const auto whitened = [&](const SpanOfRows& basis, double inside_variance) {
      Matrix white(x.rows(), kDim);
      white << x * basis.inside / std::sqrt(inside_variance), x * basis.outside / kNoise;
      return white;
    };
    const double variance = kSignal * kSignal + kNoise * kNoise;
    CHECK(standard_normal_deviation(whitened(span, variance)) < kStandardErrors);
    CHECK(standard_normal_deviation(whitened(span, kSignal * kSignal)) > kStandardErrors);
    CHECK(standard_normal_deviation(whitened(other, variance)) > kStandardErrors);
  }
}

TEST_CASE("subspaces are uniform: entries of B Bᵀ have the moments of a random projection") {
  // Rank 2 of 4 dimensions: P_11 ~ Beta(1, 1), and E[P_12²] = t (d − t) / ((d + 2) d (d − 1)) = 1/18.
  constexpr int kCount = 600;
  const auto deviation = [&](const Json& changes) {
    Vector diagonal(kCount), square(kCount), side(kCount), side_square(kCount);
    const Dataset still = sample_without_noise(changes, 40 * kCount);
    for (int c = 0; c < kCount; ++c) {
      const Matrix projection = SpanOfRows(rows_of(still.x, still.cluster, c)).projection();
      diagonal[c] = projection(0, 0);
      square[c] = projection(0, 0) * projection(0, 0);
      side[c] = projection(0, 1);
      side_square[c] = projection(0, 1) * projection(0, 1);
    }
    return std::max({mean_in_standard_errors(diagonal, 1.0 / 2), mean_in_standard_errors(square, 1.0 / 3),
                     mean_in_standard_errors(side, 0), mean_in_standard_errors(side_square, 1.0 / 18)});
  };
  CHECK(deviation({{"clusters", kCount}, {"dim", 4}, {"rank", 2}}) < kStandardErrors);
  CHECK(deviation({{"clusters", kCount}, {"dim", 4}, {"rank", 1}}) > kStandardErrors);
}

TEST_CASE("labels are W_c z or W_c ε with the same W_c, rows N(0, I / dim)") {
  constexpr int kMany = 100;
  const Json changes = {{"clusters", kMany}};
  Json literal = changes;
  literal["label_of"] = "noise";
  const Dataset signal = sample(changes, 5000), noise = sample(literal, 5000);
  const Matrix z = sample_without_noise(changes, 5000).x;
  REQUIRE((signal.x == noise.x));
  const Matrix epsilon = signal.x - z;
  Matrix slopes(kMany * kOutputs, kDim);
  double worst = 0, swapped = 1e9, mixed = 1e9;
  for (int c = 0; c < kMany; ++c) {
    const Matrix z_c = rows_of(z, signal.cluster, c), epsilon_c = rows_of(epsilon, signal.cluster, c);
    const Matrix y_c = rows_of(signal.y, signal.cluster, c);
    const Regression of_noise(epsilon_c, rows_of(noise.y, noise.cluster, c));
    worst = std::max({worst, of_noise.largest_rest(), (y_c - z_c * of_noise.map).cwiseAbs().maxCoeff()});
    swapped = std::min(swapped, (y_c - epsilon_c * of_noise.map).cwiseAbs().maxCoeff());
    slopes.middleRows(kOutputs * c, kOutputs) = of_noise.map.transpose();
    if (c > 0) {
      const Matrix before = slopes.middleRows(kOutputs * (c - 1), kOutputs);
      mixed = std::min(mixed, (y_c - z_c * before.transpose()).cwiseAbs().maxCoeff());
    }
  }
  CHECK(worst < kRounding);
  CHECK(swapped > 0.1);
  CHECK(mixed > 0.1);
  CHECK(standard_normal_deviation(slopes * std::sqrt(double{kDim})) < kStandardErrors);
  CHECK(standard_normal_deviation(slopes * std::sqrt(double{kRank})) > kStandardErrors);
}

TEST_CASE("inside a cluster a share 1 − v t / d ≥ (d − t) / d of the noise label is linear in x") {
  // The mean over many outputs of R² = 1 − v ‖P w‖² / ‖w‖², whose ratio is Beta(t / 2, (d − t) / 2).
  constexpr int kMany = 400;
  const auto explained = [&](int clusters, const char* label_of) {
    const Dataset data = sample(
        {{"clusters", clusters}, {"label_of", label_of}, {"target", {{"kind", "linear"}, {"dim", kMany}}}},
        20000);
    const Matrix rest = Regression(data.x, data.y).rest;
    const Vector share = 1 - rest.colwise().squaredNorm().array() / data.y.colwise().squaredNorm().array();
    return share.mean();
  };
  const double v = kSignal * kSignal / (kSignal * kSignal + kNoise * kNoise);
  const double share = double{kRank} / kDim;
  // The regression adds a relative error of about √(2 / 20000) to every output's R², below a fifth of this.
  const double error = v * std::sqrt(2 * share * (1 - share) / (kDim + 2) / kMany);
  CHECK(std::abs(explained(1, "noise") - (1 - v * share)) < kStandardErrors * error);
  CHECK(std::abs(explained(1, "signal") - (1 - v * share)) > kStandardErrors * error);
  CHECK(explained(1, "noise") > 1 - share);
  // One linear map for all clusters gets a small part of it.
  CHECK(explained(64, "noise") < 0.25 * (1 - share));
}

TEST_CASE("the Bayes predictor is E[y | x], by weighing draws of z with the likelihood of x − z") {
  constexpr int kDraws = 100000, kPoints = 30;
  const Json world = {{"clusters", 4}, {"dim", 4}, {"rank", 2}, {"signal_std", 1.2}, {"noise_std", 0.5}};
  const Dataset latent = sample_without_noise(world, kDraws);
  const Matrix points = draw_set(*problem_of(world), kSeeds, Purpose::test_data, kPoints).x;
  for (const std::string label_of : {"signal", "noise"}) {
    CAPTURE(label_of);
    const auto labelled = [&](Json changes) {
      changes["label_of"] = label_of;
      return changes;
    };
    // W_c, read off the noise labels.
    std::vector<Matrix> slopes;
    Json literal = world;
    literal["label_of"] = "noise";
    const Dataset noisy = sample(literal, 200);
    for (int c = 0; c < 4; ++c) {
      const Matrix epsilon = noisy.x - latent.x.topRows(200);
      slopes.push_back(
          Regression(rows_of(epsilon, noisy.cluster, c), rows_of(noisy.y, noisy.cluster, c)).map);
    }
    // The largest deviation, in standard errors of the weighted mean, over points and outputs.
    const auto deviation = [&](const Matrix& prediction) {
      double worst = 0;
      for (int i = 0; i < kPoints; ++i) {
        Vector weights(kDraws);
        Matrix values(kDraws, kOutputs);
        for (int j = 0; j < kDraws; ++j) {
          const Matrix epsilon = points.row(i) - latent.x.row(j);
          weights[j] = std::exp(-epsilon.squaredNorm() / (2 * 0.5 * 0.5));
          const Matrix& slope = slopes[static_cast<std::size_t>(latent.cluster[static_cast<std::size_t>(j)])];
          values.row(j) = (label_of == "signal" ? Matrix(latent.x.row(j)) : epsilon) * slope;
        }
        for (int o = 0; o < kOutputs; ++o) {
          const double mean = weights.dot(values.col(o)) / weights.sum();
          const double error =
              std::sqrt((weights.array() * (values.col(o).array() - mean)).square().sum()) / weights.sum();
          worst = std::max(worst, std::abs(mean - prediction(i, o)) / error);
        }
      }
      return worst;
    };
    const auto predict = [&](const Json& changes) {
      return *problem_of(labelled(changes))->bayes_prediction(points);
    };
    Json less_noise = world, fewer = world;
    less_noise["noise_std"] = 0.4;
    fewer["clusters"] = 3;
    CHECK(deviation(predict(world)) < kStandardErrors);
    CHECK(deviation(predict(less_noise)) > kStandardErrors);
    CHECK(deviation(predict(fewer)) > kStandardErrors);
  }
}

TEST_CASE("without noise the Bayes predictor is exact, and weights beyond the range of exp do no harm") {
  const Dataset still = sample_without_noise(Json::object(), 500);
  CHECK((*problem_of({{"noise_std", 0}})->bayes_prediction(still.x) - still.y).cwiseAbs().maxCoeff() <
        kRounding);
  // Weights exp(v ‖B_cᵀ x‖² / 2σ²) overflow here unless the largest exponent is taken out first.
  const Dataset sharp = sample({{"noise_std", 1e-6}}, 500);
  const Matrix prediction = *problem_of({{"noise_std", 1e-6}})->bayes_prediction(sharp.x);
  CHECK((prediction - sharp.y).cwiseAbs().maxCoeff() < 1e-4);
  CHECK((prediction - still.y).cwiseAbs().maxCoeff() > kRounding);
}

TEST_CASE("sets drawn in pieces equal sets drawn at once, to the last bit") {
  for (const char* label_of : {"signal", "noise"}) {
    const std::unique_ptr<Problem> problem = problem_of({{"label_of", label_of}});
    check_pieces(*problem, kSeeds, Purpose::train_data, {1, 2, 30, 667});
  }
}

TEST_CASE("fewer clusters are the first of more, and smaller ranks are nested") {
  const auto distance = [](const SpanOfRows& span, const SpanOfRows& other) {
    return (span.projection() - other.projection()).cwiseAbs().maxCoeff();
  };
  for (int c = 0; c < 3; ++c) {
    const SpanOfRows span = span_of(Json::object(), c);
    CHECK(distance(span, span_of({{"clusters", 3}}, c)) < kRounding);
    CHECK(distance(span, span_of(Json::object(), c, kClusters, {1, 1})) > 0.1);
    CHECK(distance(span, span_of(Json::object(), (c + 1) % kClusters)) > 0.1);
    const SpanOfRows narrow = span_of({{"rank", 2}}, c);
    REQUIRE(narrow.rank == 2);
    CHECK((narrow.inside - span.projection() * narrow.inside).cwiseAbs().maxCoeff() < kRounding);
    const Matrix rows = Matrix::Identity(kDim, kDim).topRows(2) * span.projection();
    const auto answer = [&](const Json& changes, int clusters) {
      const Dataset data = sample_without_noise(changes, 40 * clusters);
      return Matrix(rows *
                    Regression(rows_of(data.x, data.cluster, c), rows_of(data.y, data.cluster, c)).map);
    };
    CHECK((answer(Json::object(), kClusters) - answer({{"clusters", 3}}, 3)).cwiseAbs().maxCoeff() <
          kRounding);
  }
}

TEST_CASE("a rank that fills the space is an error of the user") {
  for (const int rank : {kDim, kDim + 1}) {
    try {
      problem_of({{"rank", rank}});
      FAIL("a full rank was accepted");
    } catch (const InvalidOption& error) {
      CHECK(error.path() == "data.rank");
      CHECK(error.message().find(std::to_string(rank)) != std::string::npos);
    }
  }
  CHECK(problem_of({{"rank", kDim - 1}})->layout().input_dim == kDim);
}

}  // namespace
}  // namespace moelab::subspace_mixture_test
