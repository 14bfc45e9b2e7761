#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/model/expert/expert.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::sequence_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kTokens = 3;
const GatingRule kSoft = SoftGatingOptions{};

/// Sums of a few terms of order one to ten, rounded in double.
constexpr double kRounding = 1e-12;

/// Sequences of kTokens tokens, with one target a sequence or one a token; tokens with an image where the
/// router reads one.
Layout sequences(const ModelOptions& options, bool target_per_token) {
  return with_image(options, {.input_dim = kInputs,
                              .output_dim = kOutputs,
                              .sequences = true,
                              .tokens = kTokens,
                              .target_per_token = target_per_token,
                              .labels = kTokens});
}
Layout single_tokens(const ModelOptions& options) {
  return with_image(options, {.input_dim = kInputs, .output_dim = kOutputs});
}

using Reads = DenseOptions::Reads;

ModelOptions dense_model(Reads reads) {
  ModelOptions options = model_of_kinds("linear", "linear", kSoft, kExperts);
  options.kind = DenseOptions{.match = Match::moe, .reads = reads};
  return options;
}

/// Runs `check` on every router and expert, and on a dense model that reads tokens.
template <class Check>
void for_each_model_of_tokens(const Check& check) {
  for (const RouterKind& router : RouterAxis::table()) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      CAPTURE(router.name);
      CAPTURE(expert.name);
      check(model_of_kinds(router.name, expert.name, kSoft, kExperts), router.mixes_tokens);
    }
  }
  check(dense_model(Reads::tokens), false);
}

ExampleModel<double> started(const ModelOptions& options, const Layout& layout) {
  return {options, layout, {4, 2}};
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
  std::vector<std::unique_ptr<Gating<double>>> gatings;
  for (const GatingRule& rule :
       {kSoft, GatingRule(Top1GatingOptions{}), GatingRule(TopKGatingOptions{.k = 2, .renormalize = true})}) {
    gatings.push_back(make_gating<double>(rule));
  }
  for_each_model_of_tokens([&](const ModelOptions& options, bool mixes_tokens) {
    ExampleModel<double> single = started(options, single_tokens(options)),
                         summed = started(options, sequences(options, false)),
                         separate = started(options, sequences(options, true));
    const std::vector<double> x = summed.batch(1, kSamples).x;
    for (const std::unique_ptr<Gating<double>>& gating : gatings) {
      const std::vector<double> tokens = single.predict(x, *gating);
      const std::vector<double> each = separate.predict(x, *gating);
      CHECK((each == tokens) == !mixes_tokens);
      const std::vector<double> outputs = summed.predict(x, *gating);
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
  for (const RouterKind& router : RouterAxis::table()) {
    CAPTURE(router.name);
    if (router.mixes_tokens) continue;
    const ModelOptions options =
        model_of_kinds(router.name, ExpertAxis::table().front().name, kSoft, kExperts);
    ExampleModel<double> single = started(options, single_tokens(options)),
                         sequence = started(options, sequences(options, false));
    const std::vector<double> x = sequence.batch(2, kSamples).x;
    CHECK(sequence.route(x) == single.route(x));
    const Gating<double>& top1 = single.network().top1_gating();
    CHECK(sequence.expert_loads(x, top1) == single.expert_loads(x, top1));
  }
}

TEST_CASE("the loss compares one sum a sequence, or each token, with its target") {
  constexpr int kSamples = 6;
  const ModelOptions options = model_of_kinds("linear", "mlp", kSoft, kExperts);
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const bool per_token : {false, true}) {
    CAPTURE(per_token);
    ExampleModel<double> model = started(options, sequences(options, per_token));
    const ExampleBatch<double> batch = model.batch(3, kSamples);
    const std::vector<double> outputs = model.predict(batch.x, model.network().soft_gating());
    double squares = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) squares += std::pow(outputs[i] - batch.y[i], 2);
    const double rows = per_token ? kSamples * kTokens : kSamples;
    CHECK(std::abs(model.loss_and_gradient(batch, *loss) - squares / rows) < kRounding);
  }
}

TEST_CASE("a dense model may read a sequence whole: order and all, and as many parameters") {
  constexpr int kSamples = 20;
  const ModelOptions options = dense_model(Reads::tokens);
  const Layout layout = sequences(options, false);
  ExampleModel<double> whole = started(dense_model(Reads::sequence), layout),
                       tokens = started(options, layout);
  CHECK(whole.layout().sample_dim() == layout.sample_dim());
  CHECK(whole.layout().tokens == 1);
  const std::vector<double> x = tokens.batch(4, kSamples).x;
  // Two tokens that change places leave a sum over tokens alone, but not a function of the whole sequence.
  std::vector<double> swapped = x;
  for (auto at = swapped.begin(); at != swapped.end(); at += kTokens * kInputs) {
    std::swap_ranges(at, at + kInputs, at + kInputs);
  }
  const auto change = [&](ExampleModel<double>& model) {
    const Gating<double>& soft = model.network().soft_gating();
    return largest_difference(model.predict(swapped, soft), model.predict(x, soft));
  };
  CHECK(change(whole) > 0.01);
  CHECK(change(tokens) < kRounding);

  // As near to the mixture's parameters as a width allows: one more unit has inputs + outputs + 1 of them.
  ModelOptions mixture = model_of_kinds("linear", "linear", kSoft, kExperts);
  const double target = static_cast<double>(started(mixture, layout).parameter_count());
  CHECK(std::abs(static_cast<double>(whole.parameter_count()) - target) <=
        (kTokens * kInputs + kOutputs + 1) / 2.0);
  CHECK(std::abs(static_cast<double>(tokens.parameter_count()) - target) <= (kInputs + kOutputs + 1) / 2.0);
}

TEST_CASE("sequences, every router and gating: gradients equal central differences") {
  constexpr int kSamples = 4;
  // Experts see tokens one by one, as they see rows: one kind stands for all.
  const MlpExpertOptions expert{.depth = 2, .width = 4};
  for (const bool per_token : {false, true}) {
    CAPTURE(per_token);
    for (const RouterKind& router : RouterAxis::table()) {
      for (const NamedGating& gating : example_gatings()) {
        CAPTURE(router.name);
        CAPTURE(gating.name);
        // All tokens of a sequence have the same scores, so a softmax over its tokens is constant.
        if (router.name == "sequence_mean" && gating.name == "patch_choice") continue;
        const ModelOptions options =
            example_model(RouterOptions::example(router.name), expert, gating.rule, kExperts);
        check_gradients(options, sequences(options, per_token), kSamples);
      }
    }
    for (const Reads reads : {Reads::tokens, Reads::sequence}) {
      CAPTURE(static_cast<int>(reads));
      const ModelOptions options = dense_model(reads);
      check_gradients(options, sequences(options, per_token), kSamples);
    }
  }
}

}  // namespace
}  // namespace moelab::sequence_test
