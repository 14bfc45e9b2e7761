/// The Bayes predictor of the tokenized mixture: of sums, of targets normalised by tokens, and under label
/// noise.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/data/statistics.h"
#include "tests/sim/data/tokenized_mixture_problem.h"

namespace moelab::tokenized_mixture_bayes_test {
namespace {

using namespace tokenized_mixture_problem;

/// Means of products are compared within this many standard errors (two-sided level 6e-7 each).
constexpr double kStandardErrors = 5;
/// Sums of order-one numbers in a handful of dimensions.
constexpr double kRounding = 1e-11;

TEST_CASE("the Bayes predictor is the conditional mean, and exact without noise") {
  constexpr int kSamples = 20000;
  for (const std::string target : {"linear", "quadratic"}) {
    CAPTURE(target);
    const Json changes = {{"mean_std", 0.8}, {"target", {{"kind", target}, {"dim", 2}}}};
    const std::unique_ptr<Problem> problem = problem_of(changes);
    const Dataset data = sample(*problem, kSamples);
    const Matrix best = *problem->bayes_prediction(data.x);
    const auto loss = [&](const Matrix& prediction) {
      return (prediction - data.y).rowwise().squaredNorm().mean();
    };
    CHECK(loss(best) > 0.01);
    // The predictor that takes the noise for larger than it is has other posteriors, and the same W scaled.
    const Json louder = {{"mean_std", 0.8}, {"noise_std", 1.5}, {"target", {{"kind", target}, {"dim", 2}}}};
    const double ratio = std::hypot(0.8, 1.5) / std::hypot(0.8, 1.0);
    const Matrix blurred =
        *problem_of(louder)->bayes_prediction(data.x) * (target == "linear" ? ratio : ratio * ratio);
    const Matrix mean = data.y.colwise().mean().replicate(kSamples, 1);
    for (const Matrix& wrong : {mean, blurred, Matrix(best * 0.9), Matrix(best * 1.1)}) {
      CHECK(loss(best) < loss(wrong));
    }
    CHECK(residual_correlation(data.x, data.y, best) < kStandardErrors);
    CHECK(residual_correlation(data.x, data.y, blurred) > kStandardErrors);

    const std::unique_ptr<Problem> still =
        problem_of({{"noise_std", 0}, {"target", {{"kind", target}, {"dim", 2}}}});
    const Dataset points = sample(*still, 200);
    CHECK((*still->bayes_prediction(points.x) - points.y).cwiseAbs().maxCoeff() < kRounding);
  }
}

TEST_CASE("targets normalised by tokens are the sums divided by s, and so is their conditional mean") {
  for (const char* kind : {"linear", "quadratic"}) {
    const auto problem_with = [&](const char* normalize) {
      return problem_of({{"target", {{"kind", kind}, {"dim", 2}, {"normalize", normalize}}}});
    };
    const std::unique_ptr<Problem> sums = problem_with("none"), means = problem_with("tokens");
    const Dataset sum = sample(*sums, 50), mean = sample(*means, 50);
    CHECK(sum.x == mean.x);
    CHECK(mean.y == (sum.y / 3).eval());
    CHECK(*means->bayes_prediction(mean.x) == (*sums->bayes_prediction(sum.x) / 3).eval());
  }
}

TEST_CASE("label noise is what is left of y after its conditional mean, of the variance that was asked for") {
  constexpr int kRows = 4000;
  const std::unique_ptr<Problem> noisy = problem_of({{"noise_std", 0}, {"label_noise", 0.3}});
  const Dataset data = sample(*noisy, kRows);
  const Matrix left = data.y - *noisy->bayes_prediction(data.x);
  const double values = static_cast<double>(left.size());
  CHECK(std::abs(left.mean()) < kStandardErrors * 0.3 / std::sqrt(values));
  CHECK(std::abs(left.array().square().mean() / 0.09 - 1) < kStandardErrors * std::sqrt(2 / values));
  const std::unique_ptr<Problem> without = problem_of({{"noise_std", 0}});
  const Dataset still = sample(*without, kRows);
  CHECK((still.x.row(0) == data.x.row(0)));
  CHECK((still.y - *without->bayes_prediction(still.x)).cwiseAbs().maxCoeff() < kRounding);
}

}  // namespace
}  // namespace moelab::tokenized_mixture_bayes_test
