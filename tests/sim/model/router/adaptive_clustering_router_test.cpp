/// The adaptive clustering router in a stack: M from the assignment of the layer before.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/numerics.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::adaptive_clustering_router_test {
namespace {

using Options = AdaptiveClusteringRouterOptions;

constexpr int kInputs = 4, kOutputs = 2, kExperts = 3, kRows = 40;
/// Sums of a few dozen doubles of order one.
constexpr double kRounding = 1e-10;

ModelOptions stack(const RouterOptions& router, int layers = 2) {
  ModelOptions options =
      example_model(router, MlpExpertOptions{.depth = 2, .width = 6}, TopKGatingOptions{.k = 2}, kExperts);
  options.layers = layers;
  return options;
}

ExampleModel<double> started(const RouterOptions& router, int layers = 2) {
  return {stack(router, layers), {.input_dim = kInputs, .output_dim = kOutputs}, {9, 0}};
}

/// A step that leaves the parameters where they are.
void step(ExampleModel<double>& model, const ExampleBatch<double>& batch) {
  model.step(batch, *make_task_loss<double>("mse"));
}

/// An array of the parameters or the state.
std::vector<double> array_named(const ExampleModel<double>& model, const std::string& name) {
  for (const NamedArray<double>& array : arrays(model.model)) {
    if (array.name == name) return array.values;
  }
  throw std::invalid_argument("no array " + name);
}

/// Feature weights of each cluster of `x` (n, d) by the definition, in two passes over its rows.
std::vector<double> weights_by_definition(const std::vector<double>& x,
                                          const std::vector<double>& probabilities, bool variance) {
  std::vector<double> weights;
  for (int k = 0; k < kExperts; ++k) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < kRows; ++i) {
      const double* r = probabilities.data() + i * kExperts;
      if (std::max_element(r, r + kExperts) - r == k) rows.push_back(i);
    }
    std::vector<double> dispersion;
    for (std::size_t q = 0; q < kInputs; ++q) {
      double mean = 0, spread = 0;
      for (const std::size_t i : rows) mean += x[i * kInputs + q] / static_cast<double>(rows.size());
      for (const std::size_t i : rows) {
        const double deviation = x[i * kInputs + q] - mean;
        spread += (variance ? deviation * deviation : std::abs(deviation)) / static_cast<double>(rows.size());
      }
      dispersion.push_back(spread);
    }
    for (const double w : inverse_dispersion_weights(dispersion)) weights.push_back(w);
  }
  return weights;
}

TEST_CASE("scores are those of a linear router on inputs weighted by the row's cluster") {
  for (const Options::Dispersion dispersion : {Options::Dispersion::mad, Options::Dispersion::variance}) {
    const bool variance = dispersion == Options::Dispersion::variance;
    CAPTURE(variance);
    ExampleModel<double> model = started(Options{.dispersion = dispersion});
    ExampleModel<double> linear = started(LinearRouterOptions{});
    REQUIRE(model.parameters() == linear.parameters());
    const ExampleBatch<double> batch = model.batch(1, kRows);
    const std::vector<double> first = model.route(batch.x, 0), second = model.route(batch.x, 1);
    CHECK(first == linear.route(batch.x, 0));  // no layer before the first

    const std::vector<double> weights = weights_by_definition(batch.x, first, variance);
    // What a step leaves is M of its batch.
    CHECK(array_named(model, "router_feature_weights_layer1") == std::vector<double>(weights.size(), 1));
    step(model, batch);
    const std::vector<double> used = array_named(model, "router_feature_weights_layer1");
    CHECK(array_named(model, "router_dispersion_batches_layer1") == std::vector<double>{1});
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CHECK(used[i] == doctest::Approx(weights[i]).epsilon(kRounding));
    }
    // The second layer's input from a plain stack's first layer, which has the same parameters. Evaluation is
    // top1 here: the branch is the likeliest expert's.
    ExampleModel<double> single(stack(LinearRouterOptions{}, 1),
                                {.input_dim = kInputs, .output_dim = kInputs}, {9, 0});
    std::copy_n(model.parameters().begin(), single.parameters().size(), single.parameters().begin());
    const std::vector<double> h = single.predict(batch.x, single.network().eval_gating());
    const std::vector<double> w = array_named(model, "router_weight_layer1");
    for (std::size_t i = 0; i < kRows; ++i) {
      const double* r = first.data() + i * kExperts;
      const std::size_t k = static_cast<std::size_t>(std::max_element(r, r + kExperts) - r);
      double scores[kExperts], total = 0;
      for (std::size_t e = 0; e < kExperts; ++e) {
        scores[e] = 0;
        for (std::size_t q = 0; q < kInputs; ++q) {
          scores[e] +=
              w[e * kInputs + q] * weights[k * kInputs + q] * (batch.x[i * kInputs + q] + h[i * kInputs + q]);
        }
        total += std::exp(scores[e]);
      }
      for (std::size_t e = 0; e < kExperts; ++e) {
        CHECK(second[i * kExperts + e] == doctest::Approx(std::exp(scores[e]) / total).epsilon(kRounding));
      }
    }
  }
}

TEST_CASE("with fixed weights the gradient of a stack agrees with central differences") {
  // One cluster of a row: a step of the parameters changes none. Mixing shares depend on the layer before,
  // and no gradient goes through them.
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const bool weighted_experts : {false, true}) {
    const Options options{.weights = Options::Weights::random, .weighted_experts = weighted_experts};
    ExampleModel<double> model(stack(options, 3), {.input_dim = kInputs, .output_dim = kOutputs}, {7, 0});
    check_parameter_gradients(model, 8, *loss);
  }
  // The router alone, with a fixed dispersion, from the layer before.
  for (const int mixed : {0, 1}) {
    RouterProbe probe(Options{.mixed_clusters = mixed}, 7, 1, 2);
    probe.check_parameter_gradient();
    probe.check_input_gradient();
  }
}

TEST_CASE("mixing, placement and frozen statistics do what their names say") {
  const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
  const auto routed = [&](const RouterOptions& router, int layers, int layer) {
    return started(router, layers).route(batch.x, layer);
  };
  const LinearRouterOptions linear;
  CHECK(routed(Options{.mixed_clusters = 2}, 2, 1) != routed(Options{}, 2, 1));
  CHECK(routed(Options{.mixed_clusters = 0}, 2, 1) == routed(Options{.mixed_clusters = kExperts}, 2, 1));
  const Options skip_1{.placement = Options::Placement::skip_1};
  const Options alternating{.placement = Options::Placement::alternating};
  const Options back_half{.placement = Options::Placement::back_half};
  CHECK(routed(skip_1, 3, 1) == routed(linear, 3, 1));
  CHECK(routed(skip_1, 3, 2) != routed(linear, 3, 2));
  CHECK(routed(alternating, 3, 1) == routed(Options{}, 3, 1));
  CHECK(routed(back_half, 4, 1) == routed(linear, 4, 1));
  CHECK(routed(back_half, 4, 2) != routed(linear, 4, 2));

  // Frozen statistics: after a training step, routing of a part of the batch is the routing in the whole.
  for (const Options::Statistics statistics : {Options::Statistics::frozen, Options::Statistics::batch}) {
    ExampleModel<double> model = started(Options{.statistics = statistics});
    step(model, batch);
    const std::vector<double> rows(batch.x.begin(), batch.x.begin() + 10 * kInputs);
    const std::vector<double> whole = model.route(batch.x, 1), part = model.route(rows, 1);
    CHECK(std::equal(part.begin(), part.end(), whole.begin()) == (statistics == Options::Statistics::frozen));
  }
}

TEST_CASE("in measuring, dispersions are those of a group of rows") {
  using Memberships = Options::Memberships;
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const int layers : {1, 2}) {
    CAPTURE(layers);
    const Options router{.memberships = layers == 1 ? Memberships::own : Memberships::previous};
    constexpr int kGroup = 16;  // 40 rows: the last group is smaller
    ModelOptions options = stack(router, layers);
    options.group_samples = kGroup;
    ExampleModel<double> model(options, {.input_dim = kInputs, .output_dim = kOutputs}, {9, 0});
    const ExampleBatch<double> batch = model.batch(1, kRows);
    std::vector<double> of_groups;
    for (int first = 0; first < kRows; first += kGroup) {
      const int end = std::min(first + kGroup, kRows);
      const std::vector<double> rows(batch.x.begin() + first * kInputs, batch.x.begin() + end * kInputs);
      const std::vector<double> routed = model.route(rows, layers - 1);
      of_groups.insert(of_groups.end(), routed.begin(), routed.end());
    }
    CHECK(model.route(batch.x, layers - 1) == of_groups);
    CHECK(started(router, layers).route(batch.x, layers - 1) != of_groups);
    // A step's batch is one group.
    ExampleModel<double> together = started(router, layers);
    CHECK(model.loss_and_gradient(batch, *loss) == together.loss_and_gradient(batch, *loss));
    CHECK_FALSE(separates_samples<double>(model.network(), {*loss}));
  }
}

/// M x of every row, its cluster k by `memberships` (n, E).
std::vector<double> weighted_rows(const std::vector<double>& x, const std::vector<double>& memberships) {
  const std::vector<double> weights = weights_by_definition(x, memberships, false);
  std::vector<double> rows = x;
  for (std::size_t i = 0; i < kRows; ++i) {
    const double* const r = memberships.data() + i * kExperts;
    const std::size_t k = static_cast<std::size_t>(std::max_element(r, r + kExperts) - r);
    for (std::size_t q = 0; q < kInputs; ++q) rows[i * kInputs + q] *= weights[k * kInputs + q];
  }
  return rows;
}

TEST_CASE("own and oracle memberships have M in a first layer, and experts read M x where they are to") {
  ExampleModel<double> linear = started(LinearRouterOptions{}, 1);  // the same parameters without M
  const ExampleBatch<double> batch = linear.batch(1, kRows);
  std::vector<double> truth(kRows * kExperts, 0.0);
  for (std::size_t i = 0; i < kRows; ++i) truth[i * kExperts + size(batch.labels[i])] = 1;
  using Memberships = Options::Memberships;
  for (const Memberships memberships : {Memberships::own, Memberships::oracle}) {
    const bool is_own = memberships == Memberships::own;
    CAPTURE(is_own);
    const std::vector<double> rows = weighted_rows(batch.x, is_own ? linear.route(batch.x, 0) : truth);
    const std::vector<double> expected = linear.route(rows, 0);
    ExampleModel<double> router_alone = started(Options{.memberships = memberships}, 1);
    ExampleModel<double> both = started(Options{.memberships = memberships, .weighted_experts = true}, 1);
    const std::vector<double> routed = router_alone.route(batch.x, 0);
    CHECK(routed != linear.route(batch.x, 0));
    for (std::size_t i = 0; i < routed.size(); ++i)
      CHECK(routed[i] == doctest::Approx(expected[i]).epsilon(kRounding));
    // Router and experts on M x are a plain mixture on these rows; a router alone is not.
    const Gating<double>& gating = linear.network().soft_gating();
    const std::vector<double> outputs = both.predict(batch.x, gating), of_rows = linear.predict(rows, gating);
    double least = 1e9;
    const std::vector<double> unweighted = router_alone.predict(batch.x, gating);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i] == doctest::Approx(of_rows[i]).epsilon(kRounding));
      least = std::min(least, std::abs(unweighted[i] - of_rows[i]));
    }
    CHECK(least > 1e-9);
  }
}

TEST_CASE("permuted oracle memberships give each row M of the row half a batch away") {
  ExampleModel<double> linear = started(LinearRouterOptions{}, 1);
  const ExampleBatch<double> batch = linear.batch(1, kRows);
  std::vector<double> truth(kRows * kExperts, 0.0);
  for (std::size_t i = 0; i < kRows; ++i) truth[i * kExperts + size(batch.labels[i])] = 1;
  const std::vector<double> weights = weights_by_definition(batch.x, truth, false);
  std::vector<double> rows = batch.x;
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::size_t k = size(batch.labels[(i + kRows / 2) % kRows]);
    for (std::size_t q = 0; q < kInputs; ++q) rows[i * kInputs + q] *= weights[k * kInputs + q];
  }
  ExampleModel<double> permuted = started(Options{.memberships = Options::Memberships::permuted_oracle}, 1);
  const std::vector<double> routed = permuted.route(batch.x, 0), expected = linear.route(rows, 0);
  for (std::size_t i = 0; i < routed.size(); ++i)
    CHECK(routed[i] == doctest::Approx(expected[i]).epsilon(kRounding));
}

TEST_CASE("random weights are kept, or drawn anew at every step") {
  const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
  for (const Options::Weights weights : {Options::Weights::random, Options::Weights::redrawn}) {
    const bool is_redrawn = weights == Options::Weights::redrawn;
    CAPTURE(is_redrawn);
    ExampleModel<double> model = started(Options{.weights = weights});
    ExampleModel<double> twin = started(Options{.weights = weights});
    std::vector<double> last = array_named(model, "router_feature_weights_layer1");
    for (int i = 0; i < 3; ++i) {
      step(model, batch);
      step(twin, batch);
      const std::vector<double> now = array_named(model, "router_feature_weights_layer1");
      CHECK((now != last) == is_redrawn);
      CHECK(now == array_named(twin, "router_feature_weights_layer1"));
      last = now;
    }
  }
}

TEST_CASE("frozen statistics are a running mean of those of the steps; a router without M has no state") {
  constexpr double kDecay = 0.99;
  ExampleModel<double> frozen = started(Options{.statistics = Options::Statistics::frozen});
  ExampleModel<double> last = started(Options{.statistics = Options::Statistics::batch});
  std::vector<double> mean;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const ExampleBatch<double> batch = frozen.batch(seed, kRows);
    step(frozen, batch);
    step(last, batch);
    const std::vector<double> of_batch = array_named(last, "router_dispersion_layer1");
    if (mean.empty()) mean = of_batch;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = kDecay * mean[i] + (1 - kDecay) * of_batch[i];
    CHECK(array_named(frozen, "router_dispersion_layer1") == mean);
    if (seed > 1) CHECK(mean != of_batch);
    CHECK(array_named(frozen, "router_dispersion_batches_layer1").front() == static_cast<double>(seed));
  }
  CHECK(frozen.network().state_arrays().size() == 3);
  const Options random{.weights = Options::Weights::random};
  CHECK(started(random).network().state_arrays().size() == 1);
  CHECK(started(random, 1).network().state_arrays().empty());
  CHECK(started(Options{.placement = Options::Placement::skip_1}).network().state_arrays().empty());
}

}  // namespace
}  // namespace moelab::adaptive_clustering_router_test
