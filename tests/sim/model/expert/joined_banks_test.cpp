#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::joined_banks_test {
namespace {

constexpr int kInputs = 4, kOutputs = 3, kExperts = 4, kRows = 7;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

ModelOptions model_with(const std::string& expert, const GatingRule& gating, int shared, int null,
                        const std::string& router = "linear") {
  ModelOptions options = model_of_kinds(router, expert, gating, kExperts);
  options.shared_experts = shared;
  options.null_experts = null;
  return options;
}

TEST_CASE("by hand: a shared constant is added to every row, a null expert takes its share of the gates") {
  // γ = x on three columns, the last the null expert's: probabilities 1/2, 1/4, 1/4.
  ModelOptions options =
      example_model(LinearRouterOptions{}, ConstantExpertOptions{}, TopKGatingOptions{.k = 2}, 2);
  options.null_experts = 1;
  options.shared_experts = 1;
  ExampleModel<double> model(options, {.input_dim = 3, .output_dim = 1}, {1, 0});
  CHECK(model.network().experts() == 3);
  CHECK(model.network().mixture(0).networks() == 2);
  CHECK(model.parameter_count() == 3 * 3 + 2 + 1);
  for (const auto& [name, places] : array_places(model.network())) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      double& parameter = model.parameters()[places[i]];
      if (name == "router_weight") parameter = i % 4 == 0;
      if (name == "expert_output") parameter = i == 0 ? 12 : 30;
      if (name == "shared_expert_output") parameter = 100;
    }
  }
  const std::vector<double> x = {std::log(2.0), 0, 0, /**/ 0, -1, std::log(3.0)};
  const std::vector<double> y = model.predict(x, model.network().train_gating());
  CHECK(y[0] == doctest::Approx(100 + 2.0 / 3 * 12 + 1.0 / 3 * 30).epsilon(1e-14));
  CHECK(y[1] == doctest::Approx(100 + 1.0 / 4 * 12).epsilon(1e-14));  // 3/4 went to the null expert
  CHECK(model.expert_loads(x, model.network().train_gating()) == std::vector<std::int64_t>{2, 1, 1});
}

TEST_CASE("every expert and router: gradients with shared and null experts") {
  const std::vector<GatingRule> gatings = {SoftGatingOptions{}, TopKGatingOptions{.k = 2}};
  for (const ExpertKind& expert : ExpertAxis::table()) {
    for (const GatingRule& gating : gatings) {
      for (const auto& [given_shared, given_null] : {std::pair(2, 0), std::pair(0, 2), std::pair(1, 13)}) {
        const auto& null = given_null;
        const auto& shared = given_shared;
        CAPTURE(expert.name);
        CAPTURE(gating.chosen());
        CAPTURE(shared);
        CAPTURE(null);
        check_gradients(model_with(expert.name, gating, shared, null), kLayout, kRows);
      }
    }
  }
  for (const RouterKind& router : RouterAxis::table()) {
    CAPTURE(router.name);
    const ModelOptions options = model_with("mlp", gatings[1], 1, 1, router.name);
    check_gradients(options, with_image(options, kLayout), kRows);
  }
}

TEST_CASE("losses on outputs see null experts as outputs of zero, and no shared ones") {
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  for (const ExpertKind& expert : ExpertAxis::table()) {
    CAPTURE(expert.name);
    ExampleModel<double> model(model_with(expert.name, TopKGatingOptions{.k = 3}, 1, 1), kLayout, {5, 0});
    LossOptions losses;
    losses.coefficient("orthogonality") = 10;
    losses.coefficient("importance") = 1;
    model.losses = AuxiliaryLosses(losses);
    check_parameter_gradients(model, kRows, *task);
  }
}

TEST_CASE("experts start the same whatever stands beside them, and shared ones by themselves") {
  const auto arrays = [](int shared, int null) {
    return ExampleModel<double>(model_with("mlp", SoftGatingOptions{}, shared, null), kLayout, {3, 0})
        .arrays();
  };
  const std::vector<NamedArray<double>> plain = arrays(0, 0), one = arrays(1, 2), two = arrays(2, 0);
  const auto named = [](const std::vector<NamedArray<double>>& all, const std::string& name) {
    for (const NamedArray<double>& array : all) {
      if (array.name == name) return array;
    }
    throw std::runtime_error("no array " + name);
  };
  for (const NamedArray<double>& array : plain) {
    CAPTURE(array.name);
    const std::vector<double> with_one = named(one, array.name).values;
    CHECK(std::equal(array.values.begin(), array.values.end(), with_one.begin()));
    CHECK(named(two, array.name).values == array.values);
  }
  const NamedArray<double> of_one = named(one, "shared_expert_weight_1"),
                           of_two = named(two, "shared_expert_weight_1");
  CHECK(of_two.shape[0] == 2);
  CHECK(std::equal(of_one.values.begin(), of_one.values.end(), of_two.values.begin()));
  CHECK(of_one.values[0] != named(plain, "expert_weight_1").values[0]);
}

TEST_CASE("stacks, sequences and attention with shared and null experts") {
  for (const int layers : {1, 2}) {
    ModelOptions options = model_with("linear", TopKGatingOptions{.k = 2}, 1, 2);
    options.layers = layers;
    options.attention = AttentionOptions{.heads = 2};
    const Layout layout{
        .input_dim = kInputs, .output_dim = kOutputs, .sequences = true, .tokens = 3, .labels = 3};
    check_gradients(options, layout, 3);
  }
}

}  // namespace
}  // namespace moelab::joined_banks_test
