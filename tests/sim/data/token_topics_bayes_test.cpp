/// The Bayes predictor of token topics, which sums over the topics of a sequence.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/data/token_topics_problem.h"

namespace moelab::token_topics_bayes_test {
namespace {

using namespace token_topics_problem;

/// Sums of order-one numbers in a handful of dimensions.
constexpr double kRounding = 1e-10;

/// E[y_t | x] as a plain sum over sets of topics and the clusters of all three tokens, for two of `topics`.
Matrix summed_prediction(const Matrix& means, double noise_std, const Matrix& sequence,
                         const std::vector<Matrix>& targets, int topics) {
  Matrix total = Matrix::Zero(3, targets[0].cols());
  double mass = 0;
  const auto likelihood = [&](int t, int c) {
    return std::exp(-(sequence.row(t) - means.row(c)).squaredNorm() / (2 * noise_std * noise_std));
  };
  const int clusters = static_cast<int>(means.rows());
  for (int a = 0; a < clusters; ++a) {
    for (int b = 0; b < clusters; ++b) {
      for (int c = 0; c < clusters; ++c) {
        int sets = 0;  // of two topics that hold all three clusters
        for (int first = 0; first < topics; ++first) {
          for (int second = 0; second < first; ++second) {
            const auto holds = [&](int cluster) {
              return cluster / kPerTopic == first || cluster / kPerTopic == second;
            };
            sets += holds(a) && holds(b) && holds(c) ? 1 : 0;
          }
        }
        const double weight = sets * likelihood(0, a) * likelihood(1, b) * likelihood(2, c);
        mass += weight;
        const int chosen[] = {a, b, c};
        for (int t = 0; t < 3; ++t) {
          total.row(t) += weight * targets[static_cast<std::size_t>(t)].row(chosen[t]);
        }
      }
    }
  }
  return total / mass;
}

TEST_CASE("the Bayes predictor sums over topics and clusters, and beats the one that forgets the sequence") {
  const Json changes = {{"mean_std", 1.0}};
  const Matrix means = means_of(changes);
  const std::unique_ptr<Problem> problem = problem_of(changes);
  const Dataset data = sample(*problem, 3000);
  const Matrix best = *problem->bayes_prediction(data.x);
  const Matrix y = token_rows(*problem, data.y, 3);
  Matrix values(means.rows(), 3);
  for (int c = 0; c < means.rows(); ++c) values.row(c) = rows_of(y, data.cluster, c).row(0);
  double largest = 0;
  for (Eigen::Index i = 0; i < 50; ++i) {
    const Matrix sequence = MatrixView(data.x.row(i).data(), 3, kDim);
    const Matrix expected = summed_prediction(means, 1.0, sequence, {3, values}, kTopics);
    largest = std::max(largest, (MatrixView(best.row(i).data(), 3, 3) - expected).cwiseAbs().maxCoeff());
  }
  CHECK(largest < kRounding);
  // Token by token: sequences of one token.
  const std::unique_ptr<Problem> single = problem_of({{"mean_std", 1.0}, {"tokens", 1}});
  const Matrix alone = *single->bayes_prediction(token_rows(*problem, data.x, kDim));
  const Matrix together = token_rows(*problem, best, 3);
  CHECK((together - y).squaredNorm() < 0.95 * (alone - y).squaredNorm());
}

TEST_CASE("with weights, tight features and spurious coordinates no function of x explains its errors") {
  const Json tight = {{"kind", "tight_subsets"}, {"tight_features", 2}, {"tight_std", 0.3}};
  const Json changes = {
      {"mean_std", 0.5}, {"weight_power", 1.0}, {"spurious_dims", 1}, {"covariance", tight}};
  const std::unique_ptr<Problem> problem = problem_of(changes);
  const Dataset data = sample(*problem, 20000);
  const Matrix best = *problem->bayes_prediction(data.x);
  CHECK(residual_correlation(data.x, data.y, best) < 5);
  // The predictor of the same clusters at equal weights is another function.
  Json equal = changes;
  equal.erase("weight_power");
  const Matrix other = *problem_of(equal)->bayes_prediction(data.x);
  CHECK((best - data.y).squaredNorm() < 0.999 * (other - data.y).squaredNorm());
  CHECK(residual_correlation(data.x, data.y, other) > 5);
}

TEST_CASE("without noise the Bayes predictor is exact, and classes are certain") {
  for (const Json& target : {kConstant, kClass}) {
    const std::unique_ptr<Problem> still = problem_of({{"noise_std", 0}, {"target", target}});
    const Dataset points = sample(*still, 200);
    CHECK((*still->bayes_prediction(points.x) - points.y).cwiseAbs().maxCoeff() < kRounding);
  }
  // Rows of a token far from every mean are still probabilities.
  const std::unique_ptr<Problem> classes = problem_of({{"target", kClass}, {"noise_std", 0.1}});
  const Matrix far = *classes->bayes_prediction(Matrix::Constant(1, 3 * kDim, 1e3));
  CHECK(std::abs(far.sum() - 3) < kRounding);
  CHECK_FALSE(
      problem_of({{"topics", 30}, {"topics_per_sequence", 3}})->bayes_prediction(Matrix::Zero(1, 12)));
}

}  // namespace
}  // namespace moelab::token_topics_bayes_test
