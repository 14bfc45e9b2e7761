#include <doctest/doctest.h>

#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::two_level_router_test {
namespace {

TEST_CASE("probabilities are the product of a group's and of an expert's in it, by hand") {
  // Experts 0, 1, 2 | 3, 4; x = 1; u = 0, log 3; w = log 2, log 2, 0 | log 4, 0.
  StartedRouter started(TwoLevelRouterOptions{}, {.input_dim = 1, .experts = 5}, {});
  const double w[] = {std::log(2), std::log(2), 0, std::log(4), 0}, u[] = {0, std::log(3)};
  std::copy(std::begin(w), std::end(w), started.parameters.begin());
  std::copy(std::begin(u), std::end(u), started.parameters.begin() + kernels::padded(5));
  const double x = 1;
  RouterContext<double> context;
  context.x = rows_of(&x, 1, 1);
  AlignedVector<double> scores(size(kernels::padded(5)));
  started.router->forward(context, started.parameters.data(), *started.scratch, scores.data());
  const double expected[] = {.25 * .4, .25 * .4, .25 * .2, .75 * .8, .75 * .2};
  for (int e = 0; e < 5; ++e) CHECK(std::exp(scores[size(e)]) == doctest::Approx(expected[e]).epsilon(1e-14));
}

TEST_CASE("one group, or one for each expert, is a linear router but for a shift of each row") {
  RouterProbe linear(RouterOptions::named("linear"), 3);
  for (const int groups : {1, RouterProbe::kExperts}) {
    RouterProbe probe(TwoLevelRouterOptions{.groups = groups}, 3);
    const std::string name = groups == 1 ? "router_within_weight" : "router_group_weight";
    const auto rows_in = [](const RouterProbe& of, const std::string& array) {
      for (const NamedArray<double>& named : of.router->arrays(of.parameters.data())) {
        if (named.name == array) return named.values;
      }
      return std::vector<double>();
    };
    linear.x = probe.x;
    const std::vector<double> rows = rows_in(probe, name);
    for (int e = 0; e < RouterProbe::kExperts; ++e) {
      for (int j = 0; j < RouterProbe::kInputs; ++j) {
        linear.parameters[entries(j, kernels::padded(RouterProbe::kExperts)) + size(e)] =
            rows[entries(e, RouterProbe::kInputs) + size(j)];
      }
    }
    probe.value();
    linear.value();
    for (int i = 0; i < RouterProbe::kRows; ++i) {
      const std::size_t at = entries(i, kernels::padded(RouterProbe::kExperts));
      for (std::size_t e = 1; e < RouterProbe::kExperts; ++e) {
        CHECK(probe.scores[at + e] - probe.scores[at] ==
              doctest::Approx(linear.scores[at + e] - linear.scores[at]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("biases of both levels: gradients, and logarithms of weights by hand") {
  RouterProbe probe(TwoLevelRouterOptions{.bias = true}, 5);
  probe.check_parameter_gradient();
  probe.check_input_gradient();
  StartedRouter started(TwoLevelRouterOptions{.init_scale = 0, .bias = true}, {.input_dim = 1, .experts = 3},
                        {});
  CHECK(started.router->parameter_count() == 2 * (3 + 2));
  const int stride = kernels::padded(3);
  const double within[] = {std::log(3), 0, 5}, groups[] = {0, std::log(4)};
  std::copy(std::begin(within), std::end(within), started.parameters.begin() + stride);
  std::copy(std::begin(groups), std::end(groups),
            started.parameters.begin() + 2 * stride + kernels::padded(2));
  const double x = 1;
  RouterContext<double> context;
  context.x = rows_of(&x, 1, 1);
  AlignedVector<double> scores(size(stride));
  started.router->forward(context, started.parameters.data(), *started.scratch, scores.data());
  const double expected[] = {.2 * .75, .2 * .25, .8};
  for (int e = 0; e < 3; ++e) CHECK(std::exp(scores[size(e)]) == doctest::Approx(expected[e]).epsilon(1e-14));
}

TEST_CASE("more groups than experts count as one for each") {
  const auto router = make_router<double>(TwoLevelRouterOptions{.groups = 5}, {.input_dim = 2, .experts = 3});
  CHECK(router->parameter_count() == 2 * (3 + 3));
}

}  // namespace
}  // namespace moelab::two_level_router_test
