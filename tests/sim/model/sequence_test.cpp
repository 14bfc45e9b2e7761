#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/model/gradient_check.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kTokens = 3;

/// Sums of a few terms of order one to ten, rounded in double.
constexpr double kRounding = 1e-12;

/// Sequences of kTokens tokens, with one target a sequence or one a token; tokens with an image where the
/// router of `spec` reads one.
Layout sequences(const Json& spec, bool target_per_token) {
  return with_image(spec, {.input_dim = kInputs,
                           .output_dim = kOutputs,
                           .sequences = true,
                           .tokens = kTokens,
                           .target_per_token = target_per_token,
                           .labels = kTokens});
}
Layout single_tokens(const Json& spec) {
  return with_image(spec, {.input_dim = kInputs, .output_dim = kOutputs});
}

ExampleBatch<double> batch_for(const Model<double>& model, std::uint64_t seed, int samples) {
  return {seed, samples, model.layout().sample_dim(), model.layout().target_dim()};
}

Json dense_model(const std::string& reads) {
  Json spec = model_of_kinds("linear", "linear", "soft", kExperts);
  spec["kind"] = "dense";
  spec["match"] = "moe";
  spec["reads"] = reads;
  return spec;
}

/// Runs `check` on every router and expert, and on a dense model that reads tokens.
template <class Check>
void for_each_model_of_tokens(const Check& check) {
  for (const Kind& router : router_kinds()) {
    for (const Kind& expert : expert_kinds()) {
      CAPTURE(router.name);
      CAPTURE(expert.name);
      check(example_model(example_of(router), example_of(expert), "soft", kExperts));
    }
  }
  check(dense_model("tokens"));
}

Model<double> started(const Json& spec, const Layout& layout) {
  Model<double> model(spec, layout, 0.0);
  model.initialize({4, 2});
  return model;
}

std::vector<double> predicted(Model<double>& model, const std::vector<double>& x, int samples,
                              const Gating& gating) {
  std::vector<double> outputs(static_cast<std::size_t>(samples * model.layout().target_dim()));
  model.predict(x.data(), samples, gating, outputs.data());
  return outputs;
}

/// Σ_t of rows (n·s, o), (n, o).
std::vector<double> summed_over_tokens(const std::vector<double>& rows) {
  std::vector<double> sums(rows.size() / kTokens, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sums[i / (kTokens * kOutputs) * kOutputs + i % kOutputs] += rows[i];
  }
  return sums;
}

double largest_difference(const std::vector<double>& left, const std::vector<double>& right) {
  REQUIRE(left.size() == right.size());
  double worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i) worst = std::max(worst, std::abs(left[i] - right[i]));
  return worst;
}

TEST_CASE("a sequence's output is the sum of its tokens' outputs, or all of them") {
  constexpr int kSamples = 500;  // more than one block of evaluation, no multiple of it
  for_each_model_of_tokens([&](const Json& spec) {
    Model<double> single = started(spec, single_tokens(spec)), summed = started(spec, sequences(spec, false)),
                  separate = started(spec, sequences(spec, true));
    const std::vector<double> x = batch_for(summed, 1, kSamples).x;
    for (const Gating& gating : {Gating{}, Gating{Gating::Kind::top1}, Gating{Gating::Kind::topk, 2, true}}) {
      const std::vector<double> tokens = predicted(single, x, kSamples * kTokens, gating);
      const std::vector<double> each = predicted(separate, x, kSamples, gating);
      CHECK((each == tokens) == !mixes_tokens(spec.at("router")));
      const std::vector<double> outputs = predicted(summed, x, kSamples, gating);
      CHECK(largest_difference(outputs, summed_over_tokens(each)) < kRounding);
      // A mean over the tokens is another output.
      std::vector<double> tripled = outputs;
      for (double& value : tripled) value *= kTokens;
      CHECK(largest_difference(tripled, summed_over_tokens(each)) > 0.1);
    }
  });
}

TEST_CASE("tokens are routed and counted one by one, whatever the sequence they stand in") {
  constexpr int kSamples = 500;
  for (const Kind& router : router_kinds()) {
    CAPTURE(router.name);
    if (mixes_tokens(example_of(router))) continue;
    const Json spec = example_model(example_of(router), example_of(expert_kinds().front()), "soft", kExperts);
    Model<double> single = started(spec, single_tokens(spec)),
                  sequence = started(spec, sequences(spec, false));
    const std::vector<double> x = batch_for(sequence, 2, kSamples).x;
    std::vector<double> of_rows(kSamples * kTokens * kExperts), of_sequences(of_rows.size());
    single.route(x.data(), kSamples * kTokens, of_rows.data());
    sequence.route(x.data(), kSamples, of_sequences.data());
    CHECK(of_sequences == of_rows);
    const Gating top1{Gating::Kind::top1};
    CHECK(sequence.expert_loads(x.data(), kSamples, top1) ==
          single.expert_loads(x.data(), kSamples * kTokens, top1));
  }
}

TEST_CASE("the loss compares one sum a sequence, or each token, with its target") {
  constexpr int kSamples = 6;
  const Json spec = model_of_kinds("linear", "mlp", "soft", kExperts);
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const bool per_token : {false, true}) {
    CAPTURE(per_token);
    Model<double> model = started(spec, sequences(spec, per_token));
    const ExampleBatch<double> batch = batch_for(model, 3, kSamples);
    const std::vector<double> outputs = predicted(model, batch.x, kSamples, Gating{});
    double squares = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) squares += std::pow(outputs[i] - batch.y[i], 2);
    const double rows = per_token ? kSamples * kTokens : kSamples;
    const double value = model.loss_and_gradient(batch.x.data(), batch.y.data(), kSamples, *loss);
    CHECK(std::abs(value - squares / rows) < kRounding);
  }
}

TEST_CASE("a dense model may read a sequence whole: order and all, and as many parameters") {
  constexpr int kSamples = 20;
  const Json spec = dense_model("tokens");
  const Layout layout = sequences(spec, false);
  Model<double> whole = started(dense_model("sequence"), layout), tokens = started(spec, layout);
  CHECK(whole.layout().sample_dim() == layout.sample_dim());
  CHECK(whole.layout().tokens == 1);
  const std::vector<double> x = batch_for(tokens, 4, kSamples).x;
  // Two tokens that change places leave a sum over tokens alone, but not a function of the whole sequence.
  std::vector<double> swapped = x;
  for (auto at = swapped.begin(); at != swapped.end(); at += kTokens * kInputs) {
    std::swap_ranges(at, at + kInputs, at + kInputs);
  }
  const auto change = [&](Model<double>& model) {
    return largest_difference(predicted(model, swapped, kSamples, Gating{}),
                              predicted(model, x, kSamples, Gating{}));
  };
  CHECK(change(whole) > 0.01);
  CHECK(change(tokens) < kRounding);

  // As near to the mixture's parameters as a width allows: one more unit has inputs + outputs + 1 of them.
  Json mixture = spec;
  mixture["kind"] = "moe";
  const double target = static_cast<double>(started(mixture, layout).parameter_count());
  CHECK(std::abs(static_cast<double>(whole.parameter_count()) - target) <=
        (kTokens * kInputs + kOutputs + 1) / 2.0);
  CHECK(std::abs(static_cast<double>(tokens.parameter_count()) - target) <= (kInputs + kOutputs + 1) / 2.0);
}

TEST_CASE("sequences, every router and gating: gradients equal central differences") {
  constexpr int kSamples = 4;
  // Experts see tokens one by one, as they see rows: one kind stands for all.
  const Json expert = {{"kind", "mlp"}, {"depth", 2}, {"width", 4}};
  for (const bool per_token : {false, true}) {
    for (const Kind& router : router_kinds()) {
      for (const NamedGating& gating : example_gatings()) {
        CAPTURE(per_token);
        CAPTURE(router.name);
        CAPTURE(gating.name);
        const Json spec = example_model(example_of(router), expert, gating.spec, kExperts);
        check_gradients(spec, sequences(spec, per_token), kSamples, "mse");
      }
    }
    for (const char* reads : {"tokens", "sequence"}) {
      CAPTURE(per_token);
      CAPTURE(reads);
      const Json spec = dense_model(reads);
      check_gradients(spec, sequences(spec, per_token), kSamples, "mse");
    }
  }
}

}  // namespace
}  // namespace moelab
