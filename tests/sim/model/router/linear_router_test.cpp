#include <doctest/doctest.h>

#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::linear_router_test {
namespace {

TEST_CASE("a learned temperature divides scores, biases included, and has its gradient") {
  for (const bool bias : {false, true}) {
    CAPTURE(bias);
    RouterProbe probe(LinearRouterOptions{.bias = bias, .temperature = Temperature{2, true}}, 5);
    probe.check_parameter_gradient();
    probe.check_input_gradient();
    RouterProbe plain(LinearRouterOptions{.bias = bias}, 5);
    std::copy_n(probe.parameters.begin(), plain.parameters.size(), plain.parameters.begin());
    plain.x = probe.x;
    const double scale = std::exp(probe.parameters[plain.parameters.size()]);
    CHECK(scale == doctest::Approx(0.5).epsilon(0.5));  // the probe moves every parameter a little
    probe.value();
    plain.value();
    for (std::size_t e = 0; e < RouterProbe::kExperts; ++e)
      CHECK(probe.scores[e] == doctest::Approx(scale * plain.scores[e]).epsilon(1e-14));
    CHECK(probe.router->parameter_count() == plain.router->parameter_count() + 1);
  }
}

TEST_CASE("a fixed temperature divides scores and is no parameter") {
  for (const bool bias : {false, true}) {
    CAPTURE(bias);
    RouterProbe probe(LinearRouterOptions{.bias = bias, .temperature = Temperature{2, false}}, 5);
    probe.check_parameter_gradient();
    probe.check_input_gradient();
    RouterProbe plain(LinearRouterOptions{.bias = bias}, 5);
    REQUIRE(probe.parameters.size() == plain.parameters.size());
    plain.parameters = probe.parameters;
    plain.x = probe.x;
    probe.value();
    plain.value();
    for (std::size_t e = 0; e < RouterProbe::kExperts; ++e)
      CHECK(probe.scores[e] == doctest::Approx(plain.scores[e] / 2).epsilon(1e-14));
    CHECK(probe.router->parameter_count() == plain.router->parameter_count());
  }
}

}  // namespace
}  // namespace moelab::linear_router_test
