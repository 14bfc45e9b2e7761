#include <doctest/doctest.h>

#include "sim/model/router/routers.h"
#include "sim/model/router/row_draws.h"
#include "sim/train/experiment.h"
#include "tests/sim/model/example_model.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::oracle_router_test {
namespace {

TEST_CASE("a row's expert is its cluster, and second choices are a fixed order for each") {
  RouterProbe probe(OracleRouterOptions{.scale = 3}, 5);  // clusters 2, 0, 5, 1, 1, 3 of four experts
  probe.value();
  const auto score = [&](int row, int e) {
    return probe.scores[entries(row, kernels::padded(RouterProbe::kExperts)) + size(e)];
  };
  const std::vector<int> experts = {2, 0, 1, 1, 1, 3};
  for (int row = 0; row < RouterProbe::kRows; ++row) {
    for (int e = 0; e < RouterProbe::kExperts; ++e) {
      CAPTURE(row);
      CAPTURE(e);
      if (e == experts[size(row)]) {
        CHECK(score(row, e) == 3);
      } else {
        CHECK(score(row, e) <= 0);
        CHECK(score(row, e) > -1e-3);
      }
    }
  }
  // Clusters 1 and 5 share an expert, and each has its own order.
  for (int e = 0; e < RouterProbe::kExperts; ++e) CHECK(score(3, e) == score(4, e));
  CHECK(score(2, 0) != score(3, 0));
  const RouterProbe::Gradient gradient = probe.gradient();
  CHECK(std::all_of(gradient.inputs.begin(), gradient.inputs.end(), [](double value) { return value == 0; }));
}

TEST_CASE("without labels there are no scores") {
  const ModelOptions options = model_of_kinds("oracle", "linear", SoftGatingOptions{}, 4);
  ExampleModel<double> model(options, {.input_dim = 5, .output_dim = 3}, {1, 0});
  const std::vector<double> x(5, 1.0);
  std::vector<double> outputs(3);
  CHECK_THROWS_WITH_AS(
      predict(model.model, model.network().soft_gating(), x.data(), 1, model.workspace, outputs.data()),
      doctest::Contains("which needs the true cluster of every row"), InvalidOption);
}

ExperimentOptions with_data(DataOptions data) {
  ExperimentOptions options;
  options.data = std::move(data);
  options.data.train_samples = 200;
  options.data.test_samples = 50;
  options.model = model_of_kinds("oracle", "linear", TopKGatingOptions{.k = 1}, 5);
  options.train.lr = 0.05;
  options.train.batch_size = 50;
  options.train.steps = 20;
  return options;
}

TEST_CASE("data without a label for each row are refused, others trained on") {
  for (const GeneratorKind& kind : GeneratorAxis::table()) {
    CAPTURE(kind.name);
    if (kind.files && kind.name == "file") continue;  // its example names files that are not there
    if (kind.token_ids) continue;                     // for transformers
    DataOptions data;
    static_cast<OneOf<GeneratorAxis>&>(data) = OneOf<GeneratorAxis>::example(kind.name);
    const ExperimentOptions options = with_data(std::move(data));
    const bool has_labels = kind.has_labels(options.data.options());
    CHECK(has_labels == (kind.name != "dictionary"));
    if (!has_labels) {
      CHECK_THROWS_AS(check(options), InvalidOption);
      continue;
    }
    Experiment<float> experiment(options, {1, 0});
    CHECK(experiment.train().state == TrainState::done);
    const Dataset test = draw_set(experiment.problem(), {1, 0}, Purpose::test_data, 50);
    const std::vector<float> x(test.x.data(), test.x.data() + test.x.size());
    const RoutedRows routed =
        evaluate(experiment.model(), {x.data(), test.cluster.data()}, nullptr, 50, experiment.workspace())
            .layers[0];
    for (std::size_t i = 0; i < test.cluster.size(); ++i) CHECK(routed.serving[i] == test.cluster[i] % 5);
  }
}

}  // namespace
}  // namespace moelab::oracle_router_test
