/// What a batch that is not finite leaves in the workspace is not read by the next one.

#include <doctest/doctest.h>

#include <limits>

#include "tests/sim/model/example_model.h"

namespace moelab::finite_again_test {

TEST_CASE("every router and gating: the gradient of a batch is the same after one that is not finite") {
  const Layout layout{.input_dim = 5, .output_dim = 3, .sequences = false, .tokens = 1};
  const auto loss = make_task_loss<float>("mse");
  int trained = 0;
  for (const RouterKind& router : RouterAxis::table()) {
    for (const NamedGating& gating : example_gatings()) {
      CAPTURE(router.name);
      CAPTURE(gating.name);
      const ModelOptions options = model_of_kinds(router.name, "linear", gating.rule, 4);
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
        ExampleModel<float> model(options, with_image(options, layout), {1, 0});
        const auto batch = model.batch(2, 5);
        auto spoilt = model.batch(3, 5);
        const double value = model.loss_and_gradient(batch, *loss);
        const auto gradient = model.gradient();
        std::fill(spoilt.x.begin(), spoilt.x.end(), bad);
        model.loss_and_gradient(spoilt, *loss);
        CHECK(model.loss_and_gradient(batch, *loss) == value);
        CHECK(model.gradient() == gradient);
        ++trained;
      }
    }
  }
  CHECK(trained > 300);
}

}  // namespace moelab::finite_again_test
