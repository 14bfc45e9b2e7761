#include "sim/model/model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/model/dense_network.h"
#include "tests/sim/model/example.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4;

/// Sums of a handful of terms of order one to ten, rounded in double.
constexpr double kRounding = 1e-13;

const Gating kSoft{};
const Gating kTop1{Gating::Kind::top1};

Layout layout_of(const Json& spec) {
  return with_image(spec, {.input_dim = kInputs, .output_dim = kOutputs});
}

Model<double> started(const Json& spec) {
  Model<double> model(spec, layout_of(spec), 0.0);
  model.initialize({4, 2});
  return model;
}

std::vector<double> predicted(Model<double>& model, const std::vector<double>& x, const Gating& gating) {
  const int rows = static_cast<int>(x.size()) / model.layout().input_dim;
  std::vector<double> outputs(static_cast<std::size_t>(rows * model.layout().output_dim));
  model.predict(x.data(), rows, gating, outputs.data());
  return outputs;
}

std::vector<double> routed(Model<double>& model, const std::vector<double>& x) {
  const int rows = static_cast<int>(x.size()) / model.layout().input_dim;
  std::vector<double> probabilities(static_cast<std::size_t>(rows * model.experts()));
  model.route(x.data(), rows, probabilities.data());
  return probabilities;
}

/// f_e(x) (n, o) of every expert, by a mixture of that expert alone: expert e's parameters, found through
/// the saved arrays, in a one-expert model.
std::vector<std::vector<double>> outputs_of_experts(Model<double>& model, const Json& full_spec,
                                                    const std::vector<double>& x) {
  Json spec = full_spec;
  spec["experts"] = 1;
  Model<double> single = started(spec);
  const ArrayPlaces all = array_places(full_spec, layout_of(spec)), one = array_places(spec, layout_of(spec));
  std::vector<std::vector<double>> outputs;
  for (std::size_t e = 0; e < kExperts; ++e) {
    for (std::size_t a = 0; a < all.size(); ++a) {
      if (!all[a].first.starts_with("expert")) continue;
      const std::vector<std::size_t>&from = all[a].second, &to = one[a].second;
      REQUIRE(from.size() == kExperts * to.size());
      for (std::size_t i = 0; i < to.size(); ++i) {
        single.parameters()[to[i]] = model.parameters()[from[e * to.size() + i]];
      }
    }
    outputs.push_back(predicted(single, x, kSoft));
  }
  return outputs;
}

double largest_difference(const std::vector<double>& left, const std::vector<double>& right) {
  REQUIRE(left.size() == right.size());
  double worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i) worst = std::max(worst, std::abs(left[i] - right[i]));
  return worst;
}

/// Runs `check` on a model of every router and expert.
template <class Check>
void for_each_model(const Check& check) {
  for (const Kind& router : router_kinds()) {
    for (const Kind& expert : expert_kinds()) {
      CAPTURE(router.name);
      CAPTURE(expert.name);
      check(example_model(example_of(router), example_of(expert), "soft", kExperts));
    }
  }
}

TEST_CASE("soft, top-1 and top-2 outputs are the gated sums of the experts' own outputs") {
  for_each_model([&](const Json& spec) {
    Model<double> model = started(spec);
    const ExampleBatch<double> batch(1, 20, model.layout().input_dim, kOutputs);
    const std::vector<std::vector<double>> f = outputs_of_experts(model, spec, batch.x);
    const std::vector<double> r = routed(model, batch.x);
    const Gating top2{Gating::Kind::topk, 2, true}, raw2{Gating::Kind::topk, 2, false};
    for (const Gating& gating : {kSoft, kTop1, top2, raw2}) {
      std::vector<double> expected;
      for (std::size_t i = 0; i < 20; ++i) {
        std::vector<double> gates(r.begin() + static_cast<std::ptrdiff_t>(i * kExperts),
                                  r.begin() + static_cast<std::ptrdiff_t>((i + 1) * kExperts));
        CHECK(std::abs(gates[0] + gates[1] + gates[2] + gates[3] - 1) < kRounding);
        std::vector<double> sorted = gates;
        std::sort(sorted.rbegin(), sorted.rend());
        for (double& gate : gates) {
          if (gating.kind == Gating::Kind::top1) gate = gate == sorted[0] ? 1.0 : 0.0;
          if (gating.kind == Gating::Kind::topk) gate = gate >= sorted[1] ? gate : 0.0;
          if (gating.kind == Gating::Kind::topk && gating.renormalize) gate /= sorted[0] + sorted[1];
        }
        for (std::size_t j = 0; j < kOutputs; ++j) {
          double sum = 0;
          for (std::size_t e = 0; e < kExperts; ++e) sum += gates[e] * f[e][i * kOutputs + j];
          expected.push_back(sum);
        }
      }
      CHECK(largest_difference(predicted(model, batch.x, gating), expected) < kRounding);
    }
    CHECK(largest_difference(predicted(model, batch.x, kSoft), predicted(model, batch.x, kTop1)) > 1e-3);
  });
}

TEST_CASE("results do not depend on how rows are blocked, to the last bit") {
  constexpr int kRows = 2500;  // more than two blocks of evaluation
  for_each_model([&](const Json& spec) {
    Model<double> model = started(spec);
    const int inputs = model.layout().input_dim;
    const ExampleBatch<double> batch(2, kRows, inputs, kOutputs);
    const std::vector<double> r = routed(model, batch.x);
    for (const Gating& gating : {kSoft, kTop1, Gating{Gating::Kind::topk, 2, true}}) {
      const std::vector<double> whole = predicted(model, batch.x, gating);
      for (const int start : {0, 1, 777, 1023, 1024, 2499}) {
        const std::vector<double> tail(batch.x.begin() + start * inputs, batch.x.end());
        const std::vector<double> outputs = predicted(model, tail, gating);
        CHECK(std::equal(outputs.begin(), outputs.end(), whole.begin() + start * kOutputs));
        const std::vector<double> probabilities = routed(model, tail);
        CHECK(std::equal(probabilities.begin(), probabilities.end(), r.begin() + start * kExperts));
      }
    }
    const std::vector<std::int64_t> loads = model.expert_loads(batch.x.data(), kRows, kTop1);
    std::vector<std::int64_t> counted(kExperts, 0);
    for (auto row = r.begin(); row != r.end(); row += kExperts)
      ++counted[static_cast<std::size_t>(std::max_element(row, row + kExperts) - row)];
    CHECK(loads == counted);
  });
}

TEST_CASE("the start of expert e, its router row included, does not depend on the number of experts") {
  for_each_model([&](Json spec) {
    const std::vector<NamedArray<double>> few = started(spec).arrays();
    spec["experts"] = 21;
    const std::vector<NamedArray<double>> many = started(spec).arrays();
    REQUIRE(few.size() == many.size());
    for (std::size_t a = 0; a < few.size(); ++a) {
      CAPTURE(few[a].name);
      REQUIRE(few[a].name == many[a].name);
      // Arrays with a row per expert are cut to the first four; hidden layers of a router are equal whole.
      CHECK(std::equal(few[a].values.begin(), few[a].values.end(), many[a].values.begin()));
      if (few[a].shape[0] == kExperts) CHECK(many[a].shape[0] == 21);
    }
  });
  const Json spec = model_of_kinds("linear", "constant", "soft", kExperts);
  Model<double> model = started(spec), other(spec, layout_of(spec), 0.0);
  other.initialize({4, 3});
  CHECK(model.parameters() != other.parameters());
}

TEST_CASE("router rows start N(0, init_scale² / d)") {
  constexpr int kMany = 4000;
  constexpr double kStandardErrors = 5, kScale = 3;
  for (const Kind& kind : router_kinds()) {
    CAPTURE(kind.name);
    Json router = example_of(kind);
    set_init_scale(router, kScale);
    Model<double> model = started(example_model(router, example_of(expert_kinds().front()), "soft", kMany));
    const std::vector<NamedArray<double>> arrays = model.arrays();
    const NamedArray<double>* rows = nullptr;  // the last array of the router with a row per expert
    for (const NamedArray<double>& array : arrays) {
      if (array.name.starts_with("router") && array.shape.size() == 2 && array.shape[0] == kMany)
        rows = &array;
    }
    REQUIRE(rows != nullptr);
    double square = 0;
    for (const double value : rows->values)
      square += value * value / static_cast<double>(rows->values.size());
    const double variance = kScale * kScale / static_cast<double>(rows->shape[1]);
    const double error = variance * std::sqrt(2.0 / static_cast<double>(rows->values.size()));
    CHECK(std::abs(square - variance) < kStandardErrors * error);
    CHECK_FALSE(std::abs(square / kScale - variance) < kStandardErrors * error);
  }
}

/// Largest ratio of what skipping changed to what it may change, over rows: ‖f_skip − f‖ ≤ Σ_skipped r_e
/// ‖f_e‖.
double skipping_ratio(const std::vector<double>& exact, const std::vector<double>& skipped,
                      const std::vector<double>& r, const std::vector<std::vector<double>>& f, double below) {
  double worst = 0;
  for (std::size_t i = 0; i < exact.size() / kOutputs; ++i) {
    double difference = 0, bound = kRounding;
    for (std::size_t j = 0; j < kOutputs; ++j)
      difference += std::pow(exact[i * kOutputs + j] - skipped[i * kOutputs + j], 2);
    for (std::size_t e = 0; e < kExperts; ++e) {
      double norm = 0;
      for (std::size_t j = 0; j < kOutputs; ++j) norm += std::pow(f[e][i * kOutputs + j], 2);
      if (r[i * kExperts + e] < below) bound += r[i * kExperts + e] * std::sqrt(norm);
    }
    worst = std::max(worst, std::sqrt(difference) / bound);
  }
  return worst;
}

TEST_CASE("skipped pairs change outputs and gradients by no more than their gates") {
  constexpr int kRows = 200;
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for_each_model([&](Json spec) {
    spec["router"]["init_scale"] = 3.0;
    Model<double> model = started(spec);
    const ExampleBatch<double> batch(3, kRows, model.layout().input_dim, kOutputs);
    const std::vector<std::vector<double>> f = outputs_of_experts(model, spec, batch.x);
    const std::vector<double> exact = predicted(model, batch.x, kSoft), r = routed(model, batch.x);
    model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
    const AlignedVector<double> gradient = model.gradient();
    double difference = 0;
    for (const double below : {1e-8, 1e-4, 1e-2, 0.2}) {
      CAPTURE(below);
      const std::vector<double> skipped = predicted(model, batch.x, {Gating::Kind::soft, 1, true, below});
      CHECK(skipping_ratio(exact, skipped, r, f, below) <= 1);

      spec["gating"]["train"]["skip_below"] = below;
      Model<double> skipping = started(spec);
      skipping.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
      difference = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i)
        difference = std::max(difference, std::abs(gradient[i] - skipping.gradient()[i]));
      // Each of the terms left out is a product of a gate below the threshold with weights, inputs and
      // residuals whose product stays below this here.
      constexpr double kLargestTerm = 1e3;
      CHECK(difference <= kLargestTerm * below);
    }
    CHECK(difference > 0);  // at 0.2 something was skipped
    CHECK(skipping_ratio(exact, predicted(model, batch.x, kTop1), r, f, 0.2) > 1);
  });
}

TEST_CASE("parameter counts by hand") {
  // d = 5, o = 3, E = 4; routers: 5·4; an MLP 5-6-6-4 with biases; on images of 2 × 4 × 4, convolutions to 3
  // × 2 × 2 and 5 × 1 × 1, then an MLP 5-6-4, whose six hidden units the experts read, too; cosines 5·4 + 4.
  // Experts: 3; 5·3 + 3, whatever φ; an MLP 5-6-6-3 with biases.
  struct Counts {
    std::string kind;
    std::size_t parameters, per_feature;
  };
  const std::vector<Counts> routers = {{"linear", 20, 0},
                                       {"mlp", 36 + 42 + 28, 0},
                                       {"cnn", 19 * 3 + 28 * 5 + 36 + 28, 6},
                                       {"cosine", 24, 0},
                                       {"perturbed_cosine", 24, 0}};
  const std::vector<Counts> experts = {{"constant", 3, 0},
                                       {"linear", 18, 3},
                                       {"mlp", 36 + 42 + 21, 6},
                                       {"polynomial", 18, 3},
                                       {"relu", 18, 3}};
  for (const Counts& router : routers) {
    for (const Counts& expert : experts) {
      const Model<double> model = started(model_of_kinds(router.kind, expert.kind, "soft", kExperts));
      const std::size_t per_expert = expert.parameters + router.per_feature * expert.per_feature;
      CHECK(model.layer(0).router_parameter_count() == router.parameters);
      CHECK(model.layer(0).parameters_per_expert() == per_expert);
      CHECK(model.parameter_count() == router.parameters + kExperts * per_expert);
    }
  }
}

TEST_CASE("saved arrays hold every parameter once") {
  for_each_model([&](const Json& spec) {
    const Model<double> model = started(spec);
    std::size_t entries = 0;
    for (const NamedArray<double>& array : model.arrays()) {
      std::size_t product = 1;
      for (const std::int64_t length : array.shape) product *= static_cast<std::size_t>(length);
      CHECK(array.values.size() == product);
      entries += product;
    }
    CHECK(entries == model.parameter_count());
  });
}

TEST_CASE("a dense network of given depth: one matrix at depth 1, the width of least miss above") {
  Json spec = example_model(example_of(router_kinds().front()), {{"kind", "linear"}, {"init_scale", 1.0}},
                            "soft", 32);
  spec["kind"] = "dense";
  spec["match"] = "moe";
  const Layout layout{.input_dim = kInputs, .output_dim = kOutputs};
  spec["depth"] = 1;
  const Model<double> linear(spec, layout, 0.0);
  CHECK(linear.parameter_count() == (kInputs + 1) * kOutputs);
  spec["depth"] = 2;
  const Json given = dense_network(spec, layout);
  spec.erase("depth");
  CHECK(given == dense_network(spec, layout));
}

TEST_CASE("a dense network has one more layer than an expert and the width of least miss") {
  for (const Kind& expert : expert_kinds()) {
    for (const char* match : {"expert", "moe"}) {
      for (const int experts : {1, 7, 64}) {
        CAPTURE(expert.name);
        CAPTURE(match);
        CAPTURE(experts);
        Json spec = example_model(example_of(router_kinds().front()), example_of(expert), "soft", experts);
        const Model<double> mixture(spec, kInputs, kOutputs, 0.0);
        const std::size_t target = std::string(match) == "moe" ? mixture.parameter_count()
                                                               : mixture.layer(0).parameters_per_expert();
        spec["kind"] = "dense";
        spec["match"] = match;
        const Json network = dense_network(spec, {.input_dim = kInputs, .output_dim = kOutputs});
        const int depth = network.at("depth");
        CHECK(depth == expert_depth(example_of(expert)) + 1);
        const auto miss = [&](int width) {
          // d → w → … → w → o with biases.
          const int count =
              (kInputs + 1) * width + (depth - 2) * (width + 1) * width + (width + 1) * kOutputs;
          return std::abs(count - static_cast<int>(target));
        };
        const int width = network.at("width");
        for (int other = 1; other < 2000; ++other) REQUIRE(miss(width) <= miss(other));
        const Model<double> dense(spec, kInputs, kOutputs, 0.0);
        CHECK_FALSE(dense.has_router());
        CHECK(std::abs(static_cast<int>(dense.parameter_count()) - static_cast<int>(target)) == miss(width));
      }
    }
  }
}

}  // namespace
}  // namespace moelab
