#include <doctest/doctest.h>

#include "analysis/metrics/measured_data.h"

namespace moelab::labels_test {

TEST_CASE("labels of paths and metrics") {
  CHECK(axis_label("data.train_samples") == "training samples");
  CHECK(axis_label("contaminated.test_nmse_top1") == "test loss ÷ label variance (top-1), contaminated");
  CHECK(axis_label("noisy.silhouette_layer1") == "silhouette of experts, layer 1, noisy");
  CHECK(axis_label("steps_to_target.fast") == "steps to the target, fast");
  CHECK(axis_label("model.unheard_of") == "model.unheard_of");
  CHECK(legend_label("effective_experts_shuffled") == "shuffled");
}

}  // namespace moelab::labels_test
