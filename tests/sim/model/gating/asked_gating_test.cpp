/// Mixtures asked with every expert, or the likeliest alone, by the probabilities of their evaluation gating.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/model/expert/expert.h"
#include "sim/model/gating/gating.h"
#include "sim/model/model.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::asked_gating_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 200;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

/// A model evaluated by a gating, its experts' values (E, o) drawn, and rows.
struct Asked {
  explicit Asked(const GatingRule& rule)
      : model(options_of(rule), kLayout, {3, 0}),
        x(model.batch(1, kRows).x),
        workspace(model.network().make_workspace()) {
    Engine engine(2);
    for (const auto& [name, places] : array_places(model.network())) {
      for (const std::size_t place : places) model.parameters()[place] = draw_normal(engine);
    }
    for (const NamedArray<double>& array : model.network().arrays(model.parameters())) {
      if (array.name == "expert_output") values = array.values;
    }
    probabilities.resize(kRows * kExperts);
    route<double>(model.model, 0, {x.data()}, kRows, workspace, probabilities.data());
    evaluated = evaluate<double>(model.model, {x.data()}, nullptr, kRows, workspace).layers[0];
  }

  static ModelOptions options_of(const GatingRule& rule) {
    ModelOptions options =
        example_model(LinearRouterOptions{}, ConstantExpertOptions{}, SoftGatingOptions{}, kExperts);
    options.gating.eval = rule;
    return options;
  }

  ExampleModel<double> model;
  std::vector<double> x;
  Workspace<double> workspace;
  std::vector<double> values, probabilities;
  RoutedRows evaluated;
};

}  // namespace

TEST_CASE("routing apart from experts, soft and top-1 mixtures go by r of the evaluation gating") {
  std::vector<GatingRule> rules;
  for (const GatingKind& kind : GatingAxis::table()) rules.push_back(GatingRule::example(kind.name));
  rules.emplace_back(SigmoidGatingOptions{});
  rules.emplace_back(SoftSlotsGatingOptions{.slots = 3});
  int differing = 0;
  for (const GatingRule& rule : rules) {
    CAPTURE(rule.chosen());
    Asked asked(rule);
    REQUIRE(asked.values.size() == kExperts * kOutputs);
    CHECK(asked.probabilities == asked.evaluated.probabilities);
    const Network<double>& network = asked.model.network();
    differing += network.eval_gating().is_softmax() ? 0 : 1;
    const std::vector<double> soft = asked.model.predict(asked.x, network.soft_gating());
    const std::vector<double> top1 = asked.model.predict(asked.x, network.top1_gating());
    for (std::size_t row = 0; row < kRows; ++row) {
      const double* const r = asked.probabilities.data() + row * kExperts;
      const auto best = static_cast<std::size_t>(std::max_element(r, r + kExperts) - r);
      const bool is_tied = std::count(r, r + kExperts, r[best]) > 1;
      for (std::size_t q = 0; q < kOutputs; ++q) {
        double mean = 0;
        for (std::size_t e = 0; e < kExperts; ++e) mean += r[e] * asked.values[e * kOutputs + q];
        CHECK(soft[row * kOutputs + q] == doctest::Approx(mean).epsilon(1e-12));
        if (!is_tied) CHECK(top1[row * kOutputs + q] == asked.values[best * kOutputs + q]);
      }
    }
  }
  CHECK(differing >= 4);
}

TEST_CASE("rows of which r says nothing are uniform, and are served by the largest score") {
  Asked asked(ReluGatingOptions{});
  int idle = 0;
  const std::vector<double> top1 = asked.model.predict(asked.x, asked.model.network().top1_gating());
  std::vector<double> weight;
  for (const NamedArray<double>& array : asked.model.network().arrays(asked.model.parameters())) {
    if (array.name == "router_weight") weight = array.values;
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    if (asked.evaluated.serving[row] >= 0) continue;
    ++idle;
    std::vector<double> scores(kExperts);
    for (std::size_t e = 0; e < kExperts; ++e) {
      CHECK(asked.probabilities[row * kExperts + e] == 1.0 / kExperts);
      for (std::size_t j = 0; j < kInputs; ++j)
        scores[e] += weight[e * kInputs + j] * asked.x[row * kInputs + j];
    }
    const auto best =
        static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    CHECK(top1[row * kOutputs] == asked.values[best * kOutputs]);
  }
  CHECK(idle > 0);
}

}  // namespace moelab::asked_gating_test
