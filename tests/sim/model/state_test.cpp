/// What changes in a model, when, and what it takes to put it back.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/example_model.h"

namespace moelab::state_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 40;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};
const MlpExpertOptions kExpert{.depth = 2, .width = 6};

/// Models of all that keeps a state.
std::vector<std::pair<std::string, ModelOptions>> models_with_state() {
  const GatingRule top2 = TopKGatingOptions{.k = 2};
  ModelOptions balanced = example_model(LinearRouterOptions{}, kExpert, top2, kExperts);
  balanced.gating.balance_rate = 0.01;
  balanced.gating.eval = top2;
  const AdaptiveClusteringRouterOptions frozen{.statistics =
                                                   AdaptiveClusteringRouterOptions::Statistics::frozen};
  ModelOptions adaptive = example_model(frozen, kExpert, top2, kExperts);
  adaptive.layers = 3;
  ModelOptions stable = example_model(StableRouterOptions{.distil_share = 0.5}, kExpert, top2, kExperts);
  stable.layers = 2;
  return {{"balanced", balanced}, {"adaptive", adaptive}, {"stable", stable}};
}

bool equal_bits(const AlignedVector<double>& left, const AlignedVector<double>& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(double)) == 0;
}

/// Two training steps, the second in the second half of the training.
void train(ExampleModel<double>& model, const TaskLoss<double>& loss) {
  model.descend(model.batch(1, kRows), loss, 0.1, 0);
  model.descend(model.batch(2, kRows), loss, 0.1, 0.5);
}

/// Outputs under both gatings and the routing of every layer.
std::vector<double> answers(ExampleModel<double>& model, const std::vector<double>& x) {
  std::vector<double> all = model.predict(x, model.network().train_gating());
  const auto append = [&](const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  append(model.predict(x, model.network().eval_gating()));
  for (int layer = 0; layer < model.network().layers(); ++layer) append(model.route(x, layer));
  return all;
}

TEST_CASE("gradients, predictions, routing and visits change neither parameters nor state") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const auto& [given_name, options] : models_with_state()) {
    const auto& name = given_name;
    CAPTURE(name);
    ExampleModel<double> model(options, kLayout, {3, 0});
    for (const bool trained : {false, true}) {
      CAPTURE(trained);
      if (trained) train(model, *loss);
      const AlignedVector<double> parameters = model.parameters();
      const State state = model.model.state;
      CHECK(state.values.size() == model.network().state_size());
      CHECK(model.network().state_size() > 0);
      const ExampleBatch<double> batch = model.batch(4, kRows);
      const double value = model.loss_and_gradient(batch, *loss);
      const AlignedVector<double> gradient = model.gradient();
      const std::vector<double> before = answers(model, batch.x);
      AlignedVector<double> of_inputs(entries(kRows, kernels::padded(kInputs)));
      input_gradient(model.model, *loss, batch.x.data(), batch.y.data(), kRows, model.workspace,
                     of_inputs.data());
      evaluate(model.model, batch.x.data(), nullptr, kRows, model.workspace);
      int visits = 0;
      visit_blocks(model.model, model.network().train_gating(), batch.x.data(), kRows, model.workspace,
                   [&](int) { ++visits; });
      CHECK(visits == 1);
      CHECK(equal_bits(model.parameters(), parameters));
      CHECK(model.model.state == state);
      // Nor does one of them leave anything to another.
      CHECK(answers(model, batch.x) == before);
      CHECK(model.loss_and_gradient(batch, *loss) == value);
      CHECK(equal_bits(model.gradient(), gradient));
    }
  }
}

TEST_CASE("the beginning and the end of a step change the state, and nothing else does") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const auto& [given_name, options] : models_with_state()) {
    const auto& name = given_name;
    CAPTURE(name);
    ExampleModel<double> model(options, kLayout, {3, 0});
    const AlignedVector<double> parameters = model.parameters();
    const std::vector<double> start = model.model.state.values;
    CHECK(model.model.state.progress == 0);
    model.step(model.batch(1, kRows), *loss, 0.25);
    CHECK(model.model.state.progress == 0.25);
    model.step(model.batch(2, kRows), *loss, 0.75);
    CHECK(model.model.state.progress == 0.75);
    CHECK(model.model.state.values != start);
    CHECK(equal_bits(model.parameters(), parameters));
    // A new start forgets it all.
    model.network().initialize({{3, 0}}, model.model.parameters, model.model.state);
    CHECK(model.model.state == State{0, start});
  }
}

TEST_CASE("a copy of a model predicts the same, and the two then train apart") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const auto& [given_name, options] : models_with_state()) {
    const auto& name = given_name;
    CAPTURE(name);
    ExampleModel<double> model(options, kLayout, {3, 0});
    train(model, *loss);
    const std::vector<double> x = model.batch(4, kRows).x;
    const std::vector<double> before = answers(model, x);
    ExampleModel<double> copy(model);
    CHECK(answers(copy, x) == before);
    const State state = model.model.state;
    copy.descend(copy.batch(3, kRows), *loss, 0.1, 0.75);
    CHECK(answers(copy, x) != before);
    CHECK(answers(model, x) == before);
    CHECK(model.model.state == state);
    // The same step takes the first where the second is.
    model.descend(model.batch(3, kRows), *loss, 0.1, 0.75);
    CHECK(equal_bits(model.parameters(), copy.parameters()));
    CHECK(model.model.state == copy.model.state);
  }
}

/// A trained model's arrays make another of the same options predict the same.
template <class Real>
void check_restore(const ModelOptions& options, const Layout& layout) {
  const std::unique_ptr<TaskLoss<Real>> loss = make_task_loss<Real>("mse");
  ExampleModel<Real> model(options, layout, {3, 0}), other(options, layout, {4, 0});
  for (int step = 0; step < 3; ++step) {
    model.descend(model.batch(1, kRows), *loss, 0.01, step / 4.0);
  }
  const std::vector<Real> x = model.batch(4, kRows).x;
  const Gating<Real>& gating = model.network().train_gating();
  const std::vector<Real> expected = model.predict(x, gating);
  CHECK(other.predict(x, gating) != expected);
  restore(other.model, arrays(model.model));
  State state = model.model.state;  // arrays have the precision of the parameters
  for (double& value : state.values) value = static_cast<double>(static_cast<Real>(value));
  CHECK(other.model.state == state);
  CHECK(other.predict(x, gating) == expected);
  CHECK(other.predict(x, model.network().eval_gating()) == model.predict(x, model.network().eval_gating()));
  if (model.network().has_router()) CHECK(other.route(x) == model.route(x));
}

TEST_CASE("arrays restore a model of every router, expert and gating to the last bit") {
  for (const RouterKind& router : RouterAxis::table()) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      CAPTURE(router.name);
      CAPTURE(expert.name);
      const ModelOptions options = model_of_kinds(router.name, expert.name, SoftGatingOptions{}, kExperts);
      check_restore<double>(options, with_image(options, kLayout));
      check_restore<float>(options, with_image(options, kLayout));
    }
    for (const NamedGating& gating : example_gatings()) {
      CAPTURE(router.name);
      CAPTURE(gating.name);
      ModelOptions options =
          example_model(RouterOptions::example(router.name), kExpert, gating.rule, kExperts);
      if (!router.needs_image) options.layers = 2;
      if (gating.rule.entry().selects) options.gating.balance_rate = 0.01;
      check_restore<double>(options, with_image(options, kLayout));
    }
  }
  for (const auto& [given_name, options] : models_with_state()) {
    const auto& name = given_name;
    CAPTURE(name);
    check_restore<double>(options, kLayout);
    check_restore<float>(options, kLayout);
  }
}

TEST_CASE("arrays of another model are refused, and change nothing") {
  const ModelOptions options = models_with_state()[0].second;
  ExampleModel<double> model(options, kLayout, {3, 0});
  const ExampleModel<double> source(options, kLayout, {4, 0});
  const AlignedVector<double> before = model.parameters();
  const auto refused = [&](const auto& change) {
    std::vector<NamedArray<double>> changed = arrays(source.model);
    change(changed);
    CHECK_THROWS_AS(restore(model.model, changed), std::invalid_argument);
    CHECK(equal_bits(model.parameters(), before));
  };
  using Arrays = std::vector<NamedArray<double>>;
  for (std::size_t i = 0; i < arrays(source.model).size(); ++i) {
    refused([&](Arrays& all) { all[i].name += "_other"; });
    refused([&](Arrays& all) { all[i].values.push_back(0); });
    refused([&](Arrays& all) { all[i].shape.insert(all[i].shape.begin(), 1); });
    refused([&](Arrays& all) { all.erase(all.begin() + static_cast<std::ptrdiff_t>(i)); });
    refused([&](Arrays& all) { all.push_back(all[i]); });
  }
  refused([](Arrays& all) { all.push_back({"further", {1}, {0}}); });
  // Their order does not matter.
  Arrays reversed = arrays(source.model);
  std::reverse(reversed.begin(), reversed.end());
  restore(model.model, reversed);
  CHECK(equal_bits(model.parameters(), source.model.parameters));
}

}  // namespace
}  // namespace moelab::state_test
