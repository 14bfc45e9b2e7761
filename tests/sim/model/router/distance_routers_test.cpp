/// squared_distance, and nearest_centroid with its scores.

#include <doctest/doctest.h>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::distance_routers_test {
namespace {

/// Sums of a few terms of order ten, rounded in double.
constexpr double kRounding = 1e-14;

RouterContext<double> context_of(const std::vector<double>& x, const std::vector<double>& state = {}) {
  RouterContext<double> context;
  context.x = rows_of(x.data(), static_cast<int>(x.size()) / 2, 2);
  context.state = state.data();
  context.training = true;
  return context;
}

TEST_CASE("squared distances by hand, in their own widths, down to the least") {
  SquaredDistanceRouterOptions options;
  options.std = 2.0;
  StartedRouter started(options, {.input_dim = 2, .experts = 2}, {});
  const int stride = kernels::padded(2);
  const double centers[2][2] = {{1, 2}, {-1, 0}};
  for (int e = 0; e < 2; ++e) {
    for (int j = 0; j < 2; ++j) started.parameters[entries(j, stride) + size(e)] = centers[e][j];
  }
  double* const widths = started.parameters.data() + entries(2, stride);
  CHECK(widths[0] == 2);  // its start
  const std::vector<double> x = {4, 6};
  AlignedVector<double> scores(size(stride)), gradient(started.parameters.size()), ones(size(stride));
  ones[0] = ones[1] = 1;
  const auto run = [&] {
    started.router->forward(context_of(x), started.parameters.data(), *started.scratch, scores.data());
    started.router->backward(context_of(x), started.parameters.data(), *started.scratch,
                             {ones.data(), nullptr, gradient.data(), nullptr});
  };
  run();
  CHECK(std::abs(scores[0] + 25.0 / 8) < kRounding);
  CHECK(std::abs(scores[1] + 61.0 / 8) < kRounding);
  CHECK(std::abs(gradient[0] - 3.0 / 4) < kRounding);                    // (4 − 1) / s²
  CHECK(std::abs(gradient[entries(2, stride)] - 25.0 / 8) < kRounding);  // ‖x − w‖² / s³
  // Below the least width: scores of the least, and no gradient that would lower it (they rise with it).
  widths[0] = -1;
  run();
  CHECK(std::abs(scores[0] / (-25 / (2 * kLeastRouterStd * kLeastRouterStd)) - 1) < kRounding);
  CHECK(gradient[entries(2, stride)] == 0);
  ones[0] = -1;
  run();
  CHECK(gradient[entries(2, stride)] < 0);
}

TEST_CASE("biases are added to squared distances of one width or of learned ones") {
  for (const std::optional<double> width : {std::optional<double>(), std::optional<double>(2)}) {
    SquaredDistanceRouterOptions options{.std = width, .bias = true}, without{.std = width};
    RouterProbe probe(options, 6);
    probe.check_parameter_gradient();
    probe.check_input_gradient();
    RouterProbe same(without, 6);
    std::copy_n(probe.parameters.begin(), same.parameters.size(), same.parameters.begin());
    same.x = probe.x;
    probe.value();
    same.value();
    const double* const biases = probe.parameters.data() + same.parameters.size();
    for (std::size_t e = 0; e < RouterProbe::kExperts; ++e)
      CHECK(probe.scores[e] == doctest::Approx(same.scores[e] + biases[e]).epsilon(1e-14));
  }
}

TEST_CASE("centroids are the means of the rows that were nearest, whatever the batches") {
  StartedRouter started(NearestCentroidRouterOptions{}, {.input_dim = 2, .experts = 3}, {});
  CHECK(started.router->parameter_count() == 0);
  REQUIRE(started.state.size() == 9);
  const double start[] = {0, 0, 10, 0, -50, 0};
  std::copy(std::begin(start), std::end(start), started.state.begin());
  const auto step = [&](const std::vector<double>& x) {
    AlignedVector<double> scores(entries(static_cast<std::ptrdiff_t>(x.size()), kernels::padded(3)));
    started.router->begin_step(0, nullptr, started.state.data());
    started.router->forward(context_of(x, started.state), nullptr, *started.scratch, scores.data());
    started.router->end_step(*started.scratch, started.state.data());
    return scores;
  };
  const AlignedVector<double> scores = step({1, 1, 2, 3, 9, 1});
  CHECK(scores[0] == -1);
  CHECK(scores[1] == -41);  // −(81 + 1) / 2
  CHECK(started.state == std::vector<double>{1.5, 2, 9, 1, -50, 0, 2, 1, 0});
  step({0, 5, 12, 0});
  CHECK(started.state[0] == doctest::Approx(1).epsilon(kRounding));
  CHECK(started.state[1] == doctest::Approx(3).epsilon(kRounding));
  CHECK(started.state[2] == 10.5);
  CHECK(started.state[6] == 3);
  // Without a step, or not trainable, nothing moves.
  const std::vector<double> kept = started.state;
  StartedRouter still(NearestCentroidRouterOptions{.trainable = false}, {.input_dim = 2, .experts = 3}, {});
  const std::vector<double> first = still.state;
  AlignedVector<double> unused(size(kernels::padded(3)));
  const std::vector<double> x = {1, 1};
  still.router->forward(context_of(x, still.state), nullptr, *still.scratch, unused.data());
  still.router->end_step(*still.scratch, still.state.data());
  CHECK(still.state == first);
  CHECK(started.state == kept);
}

TEST_CASE("centroids hand on a gradient to the rows that they read, and start as a router's rows") {
  RouterProbe probe(NearestCentroidRouterOptions{}, 3);
  probe.check_input_gradient();
  StartedRouter centroids(NearestCentroidRouterOptions{.init_scale = 2}, probe.setting, {{4, 0}});
  StartedRouter centers(SquaredDistanceRouterOptions{.init_scale = 2}, probe.setting, {{4, 0}});
  const std::vector<double> rows = centers.router->arrays(centers.parameters.data())[0].values;
  CHECK(std::equal(rows.begin(), rows.end(), centroids.state.begin()));
}

}  // namespace
}  // namespace moelab::distance_routers_test
