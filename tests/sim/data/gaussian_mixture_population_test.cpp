#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/data/statistics.h"

namespace moelab::gaussian_mixture_population_test {
namespace {

constexpr Seeds kSeeds{5, 0};

std::unique_ptr<Problem> problem_of(const Json& changes) {
  Json data = {{"generator", "gaussian_mixture"},
               {"clusters", 6},
               {"dim", 5},
               {"noise_std", 0.5},
               {"target", {{"kind", "constant"}, {"dim", 2}}}};
  data.update(changes);
  return draw_problem(data_of(data), kSeeds);
}

/// μ_c (k, dim): the image of the uniforms in the middle of each component, whose normals are zero.
Matrix means_of(const Problem& problem) {
  Matrix uniforms = Matrix::Constant(problem.clusters(), problem.uniforms_per_sample(), 0.5);
  for (int c = 0; c < problem.clusters(); ++c) uniforms(c, 0) = (c + 0.5) / problem.clusters();
  const Dataset data = problem.map_uniforms(uniforms);
  for (int c = 0; c < problem.clusters(); ++c) CHECK(data.cluster[static_cast<std::size_t>(c)] == c);
  return data.x;
}

TEST_CASE("scale_to_separation puts the two nearest means exactly that far apart") {
  const double unit = 0.5 * std::sqrt(5.0);  // σ √d
  for (const double separation : {0.5, 3.0}) {
    const Matrix scaled = means_of(*problem_of({{"separation", separation}, {"scale_to_separation", true}}));
    CHECK(closest_pair(scaled) == doctest::Approx(separation * unit).epsilon(1e-12));
    // All by one factor: the directions of the plain draw stay.
    const Matrix plain = means_of(*problem_of(Json::object()));
    CHECK((scaled / scaled.norm() - plain / plain.norm()).norm() < 1e-12);
  }
  const Matrix drawn = means_of(*problem_of({{"separation", 0.5}}));
  CHECK(closest_pair(drawn) > 0.5 * unit * (1 + 1e-6));  // without it the separation is a lower bound
}

TEST_CASE("images of uniforms have the law of draws") {
  const std::unique_ptr<Problem> problem = problem_of({{"spurious_dims", 2}});
  const int n = 20000, d = problem->layout().input_dim;
  REQUIRE(problem->uniforms_per_sample() == 1 + d);
  Engine engine(3);
  Matrix uniforms(n, 1 + d);
  for (Eigen::Index i = 0; i < uniforms.size(); ++i) uniforms.data()[i] = draw_uniform(engine);
  const Dataset mapped = problem->map_uniforms(uniforms);
  const Dataset drawn = draw_set(*problem, kSeeds, Purpose::train_data, n);
  // First and second moments of x and y beside each other, in standard errors of their difference.
  constexpr double kStandardErrors = 4.5;
  Matrix a(n, d + 2), b(n, d + 2);
  a << mapped.x, mapped.y;
  b << drawn.x, drawn.y;
  double worst = 0;
  for (Eigen::Index i = 0; i < a.cols(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Eigen::ArrayXd p = a.col(i).array() * a.col(j).array(), q = b.col(i).array() * b.col(j).array();
      const double error = std::sqrt(((p - p.mean()).square().mean() + (q - q.mean()).square().mean()) / n);
      worst = std::max(worst, std::abs(p.mean() - q.mean()) / error);
    }
  }
  CHECK(worst < kStandardErrors);
}

}  // namespace
}  // namespace moelab::gaussian_mixture_population_test
