#include "sim/model/model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/model/example_model.h"

namespace moelab::model_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

/// Sums of a handful of terms of order one to ten, rounded in double.
constexpr double kRounding = 1e-13;

const GatingRule kSoft = SoftGatingOptions{.skip_below = 0.0};

ExampleModel<double> started(const ModelOptions& options) {
  return {options, with_image(options, kLayout), {4, 2}};
}

std::vector<double> predicted(ExampleModel<double>& model, const std::vector<double>& x,
                              const GatingRule& gating) {
  return model.predict(x, *make_gating<double>(gating));
}

/// f_e(x) (n, o) of every expert, by a mixture of that expert alone: expert e's parameters, found through
/// the saved arrays, in a one-expert model.
std::vector<std::vector<double>> outputs_of_experts(ExampleModel<double>& model,
                                                    const ModelOptions& full_options,
                                                    const std::vector<double>& x) {
  ModelOptions options = full_options;
  options.experts = 1;
  ExampleModel<double> single = started(options);
  const ArrayPlaces all = array_places(model.network()), one = array_places(single.network());
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
  for (const RouterKind& router : RouterAxis::table()) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      CAPTURE(router.name);
      CAPTURE(expert.name);
      check(model_of_kinds(router.name, expert.name, kSoft, kExperts));
    }
  }
}

TEST_CASE("soft, top-1 and top-2 outputs are the gated sums of the experts' own outputs") {
  const GatingRule top1 = Top1GatingOptions{}, top2 = TopKGatingOptions{.k = 2, .renormalize = true},
                   raw2 = TopKGatingOptions{.k = 2, .renormalize = false};
  for_each_model([&](const ModelOptions& options) {
    ExampleModel<double> model = started(options);
    const ExampleBatch<double> batch = model.batch(1, 20);
    const std::vector<std::vector<double>> f = outputs_of_experts(model, options, batch.x);
    const std::vector<double> r = model.route(batch.x);
    for (const GatingRule* gating : {&kSoft, &top1, &top2, &raw2}) {
      std::vector<double> expected;
      for (std::size_t i = 0; i < 20; ++i) {
        std::vector<double> gates(r.begin() + static_cast<std::ptrdiff_t>(i * kExperts),
                                  r.begin() + static_cast<std::ptrdiff_t>((i + 1) * kExperts));
        CHECK(std::abs(gates[0] + gates[1] + gates[2] + gates[3] - 1) < kRounding);
        std::vector<double> sorted = gates;
        std::sort(sorted.rbegin(), sorted.rend());
        for (double& gate : gates) {
          if (gating == &top1) gate = gate == sorted[0] ? 1.0 : 0.0;
          if (gating == &top2 || gating == &raw2) gate = gate >= sorted[1] ? gate : 0.0;
          if (gating == &top2) gate /= sorted[0] + sorted[1];
        }
        for (std::size_t j = 0; j < kOutputs; ++j) {
          double sum = 0;
          for (std::size_t e = 0; e < kExperts; ++e) sum += gates[e] * f[e][i * kOutputs + j];
          expected.push_back(sum);
        }
      }
      CHECK(largest_difference(predicted(model, batch.x, *gating), expected) < kRounding);
    }
    CHECK(largest_difference(predicted(model, batch.x, kSoft), predicted(model, batch.x, top1)) > 1e-3);
  });
}

TEST_CASE("results do not depend on how rows are blocked, to the last bit") {
  constexpr int kRows = 2500;  // more than two blocks of evaluation
  const GatingRule top1 = Top1GatingOptions{}, top2 = TopKGatingOptions{.k = 2, .renormalize = true};
  for_each_model([&](const ModelOptions& options) {
    ExampleModel<double> model = started(options);
    const int inputs = model.layout().input_dim;
    const ExampleBatch<double> batch = model.batch(2, kRows);
    const std::vector<double> r = model.route(batch.x);
    for (const GatingRule& gating : {kSoft, top1, top2}) {
      const std::vector<double> whole = predicted(model, batch.x, gating);
      for (const int start : {0, 1, 777, 1023, 1024, 2499}) {
        const std::vector<double> tail(batch.x.begin() + start * inputs, batch.x.end());
        const std::vector<double> outputs = predicted(model, tail, gating);
        CHECK(std::equal(outputs.begin(), outputs.end(), whole.begin() + start * kOutputs));
        const std::vector<double> probabilities = model.route(tail);
        CHECK(std::equal(probabilities.begin(), probabilities.end(), r.begin() + start * kExperts));
      }
    }
    std::vector<std::int64_t> counted(kExperts, 0);
    for (auto row = r.begin(); row != r.end(); row += kExperts) {
      ++counted[static_cast<std::size_t>(std::max_element(row, row + kExperts) - row)];
    }
    CHECK(model.expert_loads(batch.x, model.network().top1_gating()) == counted);
  });
}

TEST_CASE("the start of expert e, its router row included, does not depend on the number of experts") {
  for_each_model([&](ModelOptions options) {
    const std::vector<NamedArray<double>> few = started(options).arrays();
    options.experts = 21;
    const std::vector<NamedArray<double>> many = started(options).arrays();
    REQUIRE(few.size() == many.size());
    for (std::size_t a = 0; a < few.size(); ++a) {
      CAPTURE(few[a].name);
      REQUIRE(few[a].name == many[a].name);
      // Arrays with a row per expert are cut to the first four; hidden layers of a router are equal whole.
      CHECK(std::equal(few[a].values.begin(), few[a].values.end(), many[a].values.begin()));
      if (few[a].shape[0] == kExperts) CHECK(many[a].shape[0] == 21);
    }
  });
  const ModelOptions options = model_of_kinds("linear", "constant", kSoft, kExperts);
  ExampleModel<double> model = started(options), other(options, kLayout, {4, 3});
  CHECK(model.parameters() != other.parameters());
}

TEST_CASE("router rows start N(0, init_scale² / d)") {
  constexpr int kMany = 4000;
  constexpr double kStandardErrors = 5, kScale = 3;
  const ExpertOptions expert = ExpertOptions::example(ExpertAxis::table().front().name);
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    if (!kind.starts_at_rows) continue;
    const RouterOptions router = with_field(RouterOptions::example(kind.name), "init_scale", kScale);
    const std::vector<NamedArray<double>> arrays =
        started(example_model(router, expert, kSoft, kMany)).arrays();
    const NamedArray<double>* rows = nullptr;  // the last array of the router with a row per expert
    for (const NamedArray<double>& array : arrays) {
      if (array.name.starts_with("router") && array.shape.size() == 2 && array.shape[0] == kMany) {
        rows = &array;
      }
    }
    REQUIRE(rows != nullptr);
    double square = 0;
    for (const double value : rows->values) {
      square += value * value / static_cast<double>(rows->values.size());
    }
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
    for (std::size_t j = 0; j < kOutputs; ++j) {
      difference += std::pow(exact[i * kOutputs + j] - skipped[i * kOutputs + j], 2);
    }
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
  for_each_model([&](ModelOptions options) {
    options.router = with_field(options.router, "init_scale", 3.0);
    ExampleModel<double> model = started(options);
    const ExampleBatch<double> batch = model.batch(3, kRows);
    const std::vector<std::vector<double>> f = outputs_of_experts(model, options, batch.x);
    const std::vector<double> exact = predicted(model, batch.x, kSoft), r = model.route(batch.x);
    model.loss_and_gradient(batch, *loss);
    // Some pairs are below the last threshold, however even the probabilities of a router are.
    std::vector<double> sorted = r;
    std::sort(sorted.begin(), sorted.end());
    const double median = std::max(sorted[sorted.size() / 2], 0.2);
    double difference = 0;
    for (const double below : {1e-8, 1e-4, 1e-2, median}) {
      CAPTURE(below);
      options.gating.train = SoftGatingOptions{.skip_below = below};
      CHECK(skipping_ratio(exact, predicted(model, batch.x, options.gating.train), r, f, below) <= 1);

      ExampleModel<double> skipping = started(options);
      skipping.loss_and_gradient(batch, *loss);
      difference = 0;
      for (std::size_t i = 0; i < model.gradient().size(); ++i) {
        difference = std::max(difference, std::abs(model.gradient()[i] - skipping.gradient()[i]));
      }
      // Each of the terms left out is a product of a gate below the threshold with weights, inputs and
      // residuals whose product stays below this here.
      constexpr double kLargestTerm = 1e3;
      CHECK(difference <= kLargestTerm * below);
    }
    CHECK(difference > 0);  // below the last one something was skipped
    CHECK(skipping_ratio(exact, predicted(model, batch.x, Top1GatingOptions{}), r, f, median) > 1);
  });
}

TEST_CASE("saved arrays hold every parameter once") {
  for_each_model([&](const ModelOptions& options) {
    const ExampleModel<double> model = started(options);
    std::size_t count = 0;
    for (const NamedArray<double>& array : model.arrays()) {
      std::size_t product = 1;
      for (const std::int64_t length : array.shape) product *= static_cast<std::size_t>(length);
      CHECK(array.values.size() == product);
      count += product;
    }
    CHECK(count == model.parameter_count());
  });
}

}  // namespace
}  // namespace moelab::model_test
