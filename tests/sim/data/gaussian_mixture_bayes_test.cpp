/// The Bayes predictor of the Gaussian mixture.

#include <doctest/doctest.h>

#include <optional>

#include "tests/sim/data/gaussian_mixture_problem.h"
#include "tests/sim/data/statistics.h"

namespace moelab::gaussian_mixture_bayes_test {
namespace {

/// Means of products are compared within this many standard errors (two-sided level 6e-7 each).
constexpr double kStandardErrors = 5;

TEST_CASE("the Bayes predictor is the conditional mean") {
  constexpr int kRows = 20000;
  const std::vector<double> weights = {1, 1, 2, 4, 8};
  for (const std::string target : {"constant", "linear"}) {
    for (const bool rotate : {false, true}) {
      CAPTURE(target);
      CAPTURE(rotate);
      const Json changes = {{"mean_std", 0.8},
                            {"weights", weights},
                            {"rotate", rotate},
                            {"spurious_dims", 2},
                            {"target", {{"kind", target}, {"dim", 3}}}};
      Json unweighted = changes;
      unweighted.erase("weights");
      const std::unique_ptr<Problem> problem = mixture_problem(changes);
      const Dataset data = mixture_sample(*problem, kRows);
      const std::optional<Matrix> best = problem->bayes_prediction(data.x);
      REQUIRE(best.has_value());
      const auto loss = [&](const Matrix& prediction) {
        return (prediction - data.y).rowwise().squaredNorm().eval();
      };
      const Vector floor = loss(*best);
      CHECK(floor.mean() > 0.01);

      // Every other predictor loses: the mean, the likeliest cluster's answer, wrong weights, a scaled
      // prediction.
      const Matrix uniform_weights = *mixture_problem(unweighted)->bayes_prediction(data.x);
      const Matrix mean = data.y.colwise().mean().replicate(kRows, 1);
      for (const Matrix& other : {mean, uniform_weights, Matrix(*best * 0.9), Matrix(*best * 1.1)}) {
        CHECK(floor.mean() < loss(other).mean());
      }
      CHECK(residual_correlation(data.x, data.y, *best) < kStandardErrors);
      CHECK(residual_correlation(data.x, data.y, uniform_weights) > kStandardErrors);
    }
  }
}

TEST_CASE("the Bayes floor vanishes for separated clusters and without noise") {
  for (const std::string target : {"constant", "linear"}) {
    for (const double noise : {0.0, 0.05, 1.0}) {
      CAPTURE(target);
      CAPTURE(noise);
      const std::unique_ptr<Problem> problem = mixture_problem(
          {{"mean_std", 3.0}, {"noise_std", noise}, {"target", {{"kind", target}, {"dim", 3}}}});
      const Dataset data = mixture_sample(*problem, 2000);
      const double loss = (*problem->bayes_prediction(data.x) - data.y).rowwise().squaredNorm().mean();
      if (noise < 1) {
        CHECK(loss < 1e-12);
      } else {
        CHECK(loss > 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace moelab::gaussian_mixture_bayes_test
