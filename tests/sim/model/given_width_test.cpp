/// Dense models of a given width, and mixtures behind a projection.

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::given_width_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 7, kWidth = 6;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

ModelOptions dense_of_width(int width, int depth) {
  ModelOptions options;
  options.kind = DenseOptions{.width = width, .depth = depth};
  return options;
}

ModelOptions projected(int layers) {
  ModelOptions options = example_model(LinearRouterOptions{}, MlpExpertOptions{.depth = 2, .width = 4},
                                       SoftGatingOptions{}, kExperts);
  options.layers = layers;
  options.kind = MoeOptions{.input_width = kWidth};
  return options;
}

}  // namespace

TEST_CASE("a dense model of a given width needs nothing of a mixture") {
  const ModelOptions options = dense_of_width(kWidth, 3);
  const Network<double> network(options, kLayout);
  const std::size_t parameters = (kInputs + 1) * kWidth + (kWidth + 1) * kWidth + (kWidth + 1) * kOutputs;
  CHECK(network.parameter_count() == parameters);
  CHECK(!network.has_router());
  check_gradients(options, kLayout, kRows);
}

TEST_CASE("what a width does not go with") {
  ModelOptions options;
  options.kind = DenseOptions{.match = Match::moe, .width = kWidth, .depth = 2};
  check_refused(options, "model.width", "given, but model.match says which width; needs one");
  options.kind = DenseOptions{.width = kWidth};
  check_refused(options, "model.depth", "missing; a dense model with model.width needs it");
  const auto resolved = [](const char* text) { return resolve_options<ModelOptions>(Json::parse(text)); };
  check_refused(resolved(R"({"width": 6})"), "model.width", "given, but model.kind is not 'dense'");
  check_refused(resolved(R"({"kind": "dense", "width": 6, "depth": 2, "input_width": 6})"),
                "model.input_width", "given, but model.kind is not 'moe'");
  options = ModelOptions{};
  check_refused(options, "model.experts", "missing; a mixture, and a dense model that matches one, needs it");
}

TEST_CASE("behind a projection routers and experts read its width, and gradients reach it") {
  for (const int layers : {1, 2}) {
    CAPTURE(layers);
    const ModelOptions options = projected(layers);
    const Network<double> network(options, kLayout);
    const Model<double> model(options, kLayout, {{1, 0}});
    const std::vector<NamedArray<double>> arrays = network.arrays(model.parameters);
    CHECK(arrays.front().name == "projection_weight_1");
    CHECK(arrays.front().shape == std::vector<std::int64_t>{kWidth, kInputs});
    for (const NamedArray<double>& array : arrays) {
      if (array.name.starts_with("router_weight"))
        CHECK(array.shape == std::vector<std::int64_t>{kExperts, kWidth});
    }
    check_gradients(options, kLayout, kRows);
  }
}

TEST_CASE("a projection learns below a frozen router, as part of the layers") {
  ModelOptions options = projected(1);
  options.router = LinearRouterOptions{.trainable = false};
  const Network<double> network(options, kLayout);
  const ParameterGroup& group = network.groups().front();
  CHECK(group.trainable);
  CHECK(group.part == ParameterGroup::Part::layers);
  CHECK(group.end == kernels::padded(kWidth) * (kInputs + 1));
  check_gradients(options, kLayout, kRows);
}

}  // namespace moelab::given_width_test
