#include "sim/model/router/router.h"

#include "tests/sim/model/example.h"
#include "tests/sim/model/learning_routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::router_test {
namespace {

TEST_CASE("every router: gradients in the inputs and parameters, from scores and features") {
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    if (!learns(kind)) continue;
    RouterProbe probe(RouterOptions::example(kind.name), 7);
    probe.check_parameter_gradient();
    probe.check_input_gradient();
    // In training also of what the router adds to the loss; nothing below it learns from that.
    probe.training = true;
    probe.check_parameter_gradient();
  }
}

TEST_CASE("every router: nothing but a scratch changes in a pass, and another scratch gives the same") {
  for (const RouterKind& kind : RouterAxis::table()) {
    for (const bool training : {false, true}) {
      CAPTURE(kind.name);
      CAPTURE(training);
      RouterProbe probe(RouterOptions::example(kind.name), 9, 1, 2);
      probe.training = training;
      const std::vector<double> state = probe.state;
      const double first = probe.value();
      CHECK(probe.state == state);
      for (const double value : state) CHECK(std::isfinite(value));
      probe.scratch = probe.router->make_scratch();
      CHECK(probe.value() == first);
    }
  }
}

TEST_CASE("whether a router learns is its own field") {
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    if (!learns(kind)) continue;
    CHECK(is_trainable(RouterOptions::example(kind.name)));
    CHECK_FALSE(is_trainable(with_field(RouterOptions::example(kind.name), "trainable", false)));
  }
}

TEST_CASE("a CNN router reads the image and hands on its penultimate layer") {
  RouterProbe probe(RouterOptions::example("cnn"), 8);
  probe.value();
  const std::vector<double> features(probe.output.features, probe.output.features + probe.b.size());
  const AlignedVector<double> scores = probe.scores;
  CHECK(probe.router->feature_dim() == 6);  // the example's width
  CHECK(*std::min_element(features.begin(), features.end()) >= 0);
  CHECK(*std::max_element(features.begin(), features.end()) > 0);
  for (int column = 0; column < probe.x.columns; ++column) {
    CAPTURE(column);
    probe.x(0, column) += 1;
    probe.value();
    probe.x(0, column) -= 1;
    CHECK(probe.scores != scores);
  }
}

TEST_CASE("a CNN router refuses data without images") {
  try {
    make_router<float>(RouterOptions::example("cnn"), {.input_dim = 5, .experts = 4});
    FAIL("rows without an image were accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == "model.router.kind");
    CHECK(error.message().find("image_clusters") != std::string::npos);
  }
}

}  // namespace
}  // namespace moelab::router_test
