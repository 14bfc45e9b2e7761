/// The adaptive clustering router in a stack: M from the assignment of the layer before.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/feature_weights.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab {
namespace {

constexpr int kInputs = 4, kOutputs = 2, kExperts = 3, kRows = 40;
/// Sums of a few dozen doubles of order one.
constexpr double kRounding = 1e-10;

Json stack(const Json& router, int layers = 2) {
  Json spec = example_model(
      resolve(Shape::variant(router_kinds()), router, "router"),
      resolve(Shape::variant(expert_kinds()), {{"kind", "mlp"}, {"depth", 2}, {"width", 6}}, ""),
      {{"kind", "topk"}, {"k", 2}}, kExperts);
  spec["layers"] = layers;
  return spec;
}

Json adaptive(Json fields) {
  fields["kind"] = "adaptive_clustering";
  return fields;
}

std::vector<double> array_named(const Model<double>& model, const std::string& name) {
  for (const NamedArray<double>& array : model.arrays()) {
    if (array.name == name) return {array.values.begin(), array.values.end()};
  }
  throw UserError("array", name);
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
  for (const char* dispersion : {"mad", "variance"}) {
    CAPTURE(dispersion);
    Model<double> model(stack(adaptive({{"dispersion", dispersion}})), kInputs, kOutputs, 0.0);
    Model<double> linear(stack("linear"), kInputs, kOutputs, 0.0);
    model.initialize({9, 0});
    linear.initialize({9, 0});
    REQUIRE(std::equal(model.parameters().begin(), model.parameters().end(), linear.parameters().begin()));
    const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
    const std::vector<double> x(batch.x.begin(), batch.x.end());
    std::vector<double> first(kRows * kExperts), second(kRows * kExperts), plain(kRows * kExperts);
    model.route(x.data(), kRows, first.data(), 0);
    linear.route(x.data(), kRows, plain.data(), 0);
    CHECK(first == plain);  // no layer before the first
    model.route(x.data(), kRows, second.data(), 1);

    const std::vector<double> weights = weights_by_definition(x, first, dispersion[0] == 'v');
    const std::vector<double> used = array_named(model, "router_feature_weights_layer1");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CHECK(used[i] == doctest::Approx(weights[i]).epsilon(kRounding));
    }
    // The second layer's input from the plain stack's first layer, which has the same parameters.
    Model<double> single(stack("linear", 1), kInputs, kInputs, 0.0);
    std::copy_n(model.parameters().begin(), single.parameters().size(), single.parameters().begin());
    std::vector<double> h(kRows * kInputs);
    single.predict(x.data(), kRows, model.train_gating(), h.data());
    // Evaluation is top1 here: the branch is the likeliest expert's.
    single.predict(x.data(), kRows, model.eval_gating(), h.data());
    const std::vector<double> w = array_named(model, "router_weight_layer1");
    for (std::size_t i = 0; i < kRows; ++i) {
      const double* r = first.data() + i * kExperts;
      const std::size_t k = static_cast<std::size_t>(std::max_element(r, r + kExperts) - r);
      double scores[kExperts], total = 0;
      for (std::size_t e = 0; e < kExperts; ++e) {
        scores[e] = 0;
        for (std::size_t q = 0; q < kInputs; ++q) {
          scores[e] +=
              w[e * kInputs + q] * weights[k * kInputs + q] * (x[i * kInputs + q] + h[i * kInputs + q]);
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
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  // One cluster of a row: a step of the parameters changes none. Mixing shares depend on the layer before,
  // and no gradient goes through them.
  Model<double> model(stack(adaptive({{"weights", "random"}}), 3), kInputs, kOutputs, 0.0);
  model.initialize({7, 0});
  const ExampleBatch<double> batch = smooth_batch(model, 8, *loss);
  for (const ParameterGroup& group : model.groups()) {
    double bend = 0;
    const std::vector<double> differences = central_differences(model, batch, *loss, group, bend);
    model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, *loss);
    CHECK(relative_difference(gradient_of(model, group), differences) <= kTolerance);
  }
}

TEST_CASE("mixing, placement and frozen statistics do what their names say") {
  const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
  const auto routed = [&](const Json& router, int layers, int layer) {
    Model<double> model(stack(router, layers), kInputs, kOutputs, 0.0);
    model.initialize({9, 0});
    std::vector<double> r(kRows * kExperts);
    model.route(batch.x.data(), kRows, r.data(), layer);
    return r;
  };
  CHECK(routed(adaptive({{"mixed_clusters", 2}}), 2, 1) != routed(adaptive({}), 2, 1));
  CHECK(routed(adaptive({{"mixed_clusters", 0}}), 2, 1) ==
        routed(adaptive({{"mixed_clusters", kExperts}}), 2, 1));
  CHECK(routed(adaptive({{"placement", "skip_1"}}), 3, 1) == routed("linear", 3, 1));
  CHECK(routed(adaptive({{"placement", "skip_1"}}), 3, 2) != routed("linear", 3, 2));
  CHECK(routed(adaptive({{"placement", "alternating"}}), 3, 1) == routed(adaptive({}), 3, 1));
  CHECK(routed(adaptive({{"placement", "back_half"}}), 4, 1) == routed("linear", 4, 1));
  CHECK(routed(adaptive({{"placement", "back_half"}}), 4, 2) != routed("linear", 4, 2));

  // Frozen statistics: after a training step, routing of a part of the batch is the routing in the whole.
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const bool frozen : {true, false}) {
    Model<double> model(stack(adaptive({{"statistics", frozen ? "frozen" : "batch"}})), kInputs, kOutputs,
                        0.0);
    model.initialize({9, 0});
    model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
    std::vector<double> whole(kRows * kExperts), part(10 * kExperts);
    model.route(batch.x.data(), kRows, whole.data(), 1);
    model.route(batch.x.data(), 10, part.data(), 1);
    CHECK(std::equal(part.begin(), part.end(), whole.begin()) == frozen);
  }
}

}  // namespace
}  // namespace moelab
