/// Which experts a row is sent to, and which of them serves it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/model/router/routers.h"
#include "tests/sim/model/example_model.h"

namespace moelab::routed_rows_test {
namespace {

constexpr int kExperts = 4;

/// γ(x) = x for rows of E columns, with biases of the selection.
ExampleModel<double> identity_router(const GatingRule& eval, const std::vector<double>& biases) {
  ModelOptions options = example_model(LinearRouterOptions{}, ExpertOptions::example("constant"),
                                       TopKGatingOptions{.k = 1}, kExperts);
  options.gating.eval = eval;
  options.gating.balance_rate = 0.0;
  ExampleModel<double> model(options, {.input_dim = kExperts, .output_dim = 2}, {1, 0});
  std::vector<NamedArray<double>> all = arrays(model.model);
  for (NamedArray<double>& array : all) {
    if (array.name == "selection_bias") array.values = biases;
    if (array.name != "router_weight") continue;
    for (std::size_t i = 0; i < array.values.size(); ++i) array.values[i] = i % (kExperts + 1) == 0;
  }
  restore(model.model, all);
  return model;
}

/// The row whose softmax is r.
std::vector<double> logarithms(const std::vector<double>& r) {
  std::vector<double> row;
  for (const double value : r) row.push_back(std::log(value));
  return row;
}

struct Expected {
  std::vector<unsigned char> selected;
  int serving;
};

void check_row(const std::vector<double>& r, const GatingRule& eval, const std::vector<double>& biases,
               const Expected& expected) {
  ExampleModel<double> model = identity_router(eval, biases);
  const std::vector<double> x = logarithms(r);
  const RoutedRows routed = evaluate(model.model, x.data(), nullptr, 1, model.workspace).layers[0];
  for (std::size_t e = 0; e < kExperts; ++e) {
    CHECK(routed.probabilities[e] == doctest::Approx(r[e]).epsilon(1e-14));  // rounding of exp and log
  }
  CHECK(routed.selected == expected.selected);
  CHECK(routed.serving == std::vector<int>{expected.serving});
}

TEST_CASE("biases choose the experts, and the selected one with the largest gate serves") {
  const std::vector<double> r = {.4, .3, .2, .1}, none = {0, 0, 0, 0};
  for (const bool renormalize : {true, false}) {
    const GatingRule top2 = TopKGatingOptions{.k = 2, .renormalize = renormalize};
    check_row(r, top2, none, {{1, 1, 0, 0}, 0});
    // r + b = 0.4 0.3 0.2 0.45: the last is chosen before the first, but its gate is smaller.
    check_row(r, top2, {0, 0, 0, .35}, {{1, 0, 0, 1}, 0});
    // r + b = 0.1 0.3 0.2 0.1: the likeliest expert is not chosen.
    check_row(r, top2, {-.3, 0, 0, 0}, {{0, 1, 1, 0}, 1});
    check_row(r, top2, {-.3, 0, .5, .5}, {{0, 0, 1, 1}, 2});
  }
  check_row(r, Top1GatingOptions{}, {0, 0, 0, .35}, {{0, 0, 0, 1}, 3});
  check_row(r, TopKGatingOptions{.k = 1}, {0, .2, 0, 0}, {{0, 1, 0, 0}, 1});
}

TEST_CASE("gatings without a selection do not see the biases, and a row may have no expert") {
  const std::vector<double> r = {.2, .3, .4, .1}, biases = {.9, 0, 0, 0};
  check_row(r, SoftGatingOptions{}, biases, {{1, 1, 1, 1}, 2});
  check_row(r, TopPGatingOptions{.p = .25}, biases, {{0, 1, 1, 0}, 2});
  check_row(r, SoftGatingOptions{.skip_below = .15}, biases, {{1, 1, 1, 0}, 2});
  check_row(r, SoftGatingOptions{.skip_below = .5}, biases, {{0, 0, 0, 0}, -1});
}

TEST_CASE("routed rows are those of the routing and the loads, for any number of rows") {
  constexpr int kRows = 2500;  // more than two blocks of evaluation
  for (const GatingKind& kind : GatingAxis::table()) {
    CAPTURE(kind.name);
    ExampleModel<double> model = identity_router(GatingRule::example(kind.name), {.1, 0, -.1, 0});
    const std::vector<double> x = model.batch(5, kRows).x;
    const EvaluatedSamples<double> evaluated =
        evaluate(model.model, x.data(), nullptr, kRows, model.workspace);
    CHECK(evaluated.outputs == model.predict(x, model.network().eval_gating()));
    CHECK(evaluate(model.model, x.data(), nullptr, kRows, model.workspace, false).layers.empty());
    const RoutedRows& routed = evaluated.layers[0];
    std::vector<std::int64_t> loads(kExperts, 0);
    for (std::size_t i = 0; i < routed.selected.size(); ++i) loads[i % kExperts] += routed.selected[i];
    CHECK(loads == model.expert_loads(x, model.network().eval_gating()));
    REQUIRE(routed.serving.size() == kRows);
    const bool all = model.network().eval_gating().activates_all();
    const GatingRule example = GatingRule::example(kind.name);
    const bool may_leave_rows = kind.may_leave_rows && kind.may_leave_rows(example.options(), kExperts);
    for (std::size_t i = 0; i < kRows; ++i) {
      if (may_leave_rows && routed.serving[i] < 0) continue;
      REQUIRE(routed.serving[i] >= 0);
      REQUIRE(routed.selected[i * kExperts + static_cast<std::size_t>(routed.serving[i])] == 1);
      if (!all) continue;
      const auto row = routed.probabilities.begin() + static_cast<std::ptrdiff_t>(i * kExperts);
      REQUIRE(routed.serving[i] == std::max_element(row, row + kExperts) - row);
    }
  }
}

}  // namespace
}  // namespace moelab::routed_rows_test
