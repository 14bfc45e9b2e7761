/// Transformers that see the whole sequence and tell what stood where it is masked, and dropout.

#include <doctest/doctest.h>

#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/small_transformer.h"

namespace moelab::masked_tokens_test {
namespace {

using namespace small_transformer;

std::size_t count_of(const ModelOptions& options) {
  return Network<double>(options, kLayout).parameter_count();
}

}  // namespace

TEST_CASE("gradients of transformers that see the whole sequence, in masked tokens") {
  ModelOptions options = transformer();
  own(options).causal = false;
  check_gradients(options, kLayout, kSamples, "masked_tokens");
  own(options).tied_embedding = true;
  own(options).positions = TransformerOptions::Positions::rotary;
  own(options).heads = 3;
  options.layers = 2;
  own(options).moe_layers = std::vector<std::string>{"1"};
  check_gradients(options, kLayout, kSamples, "masked_tokens");
  Layout layout = kLayout;
  layout.tokens = layout.labels = 70;  // three blocks of queries, the last one short
  options = dense();
  own(options).causal = false;
  own(options).width = 4;
  own(options).heads = 1;
  check_gradients(options, layout, 1, "masked_tokens");
}

TEST_CASE("routers that mix tokens work where the whole sequence is seen") {
  int mixing = 0;
  for (const RouterKind& kind : RouterAxis::table()) {
    ModelOptions options = transformer();
    own(options).causal = false;
    options.router = RouterOptions::example(kind.name);
    try {
      check(options);
    } catch (const InvalidOption&) {
      continue;
    }
    CAPTURE(kind.name);
    check_gradients(options, kLayout, kSamples, "masked_tokens");
    mixing += kind.mixes_tokens;
  }
  CHECK(mixing >= 1);
}

TEST_CASE(
    "where the whole sequence is seen every score depends on every token; a mask is a token of its own") {
  ModelOptions options = transformer();
  own(options).causal = false;
  own(options).heads = 1;
  ExampleModel<double> model(options, kLayout, {1, 0});
  ExampleBatch<double> batch = model.batch(1, 1);
  const std::vector<double> before = model.predict(batch.x, model.network().eval_gating());
  batch.x[2] = kVocabulary;
  const std::vector<double> after = model.predict(batch.x, model.network().eval_gating());
  CHECK(after.size() == kTokens * kVocabulary);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i] != after[i]);
  ModelOptions causal = options;
  own(causal).causal = true;
  CHECK(count_of(options) == count_of(causal) + kWidth);
  // Tokens start where they do without a mask.
  const ExampleModel<double> other(causal, kLayout, {1, 0});
  const std::vector<double> with_mask = model.arrays().front().values,
                            without = other.arrays().front().values;
  CHECK(std::equal(without.begin(), without.end(), with_mask.begin()));
  CHECK(with_mask.size() == without.size() + kWidth);
}

TEST_CASE("losses of masked tokens are those of tokens that have a target") {
  ModelOptions options = transformer();
  own(options).causal = false;
  ExampleModel<double> model(options, kLayout, {1, 0});
  const ExampleBatch<double> plain = model.batch(1, 3);
  model.masks = {0.5, kVocabulary};
  const ExampleBatch<double> batch = model.batch(1, 3);
  const Gating<double>& gating = model.network().train_gating();
  const std::vector<double> losses =
      token_losses(model.model, gating, batch.x.data(), batch.y.data(), batch.rows, model.workspace);
  REQUIRE(losses.size() == 3 * kTokens / 2);
  const std::vector<double> scores = model.predict(batch.x, gating);
  double sum = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch.y.size(); ++i) {
    if (batch.x[i] != kVocabulary) continue;
    double mass = 0;
    for (int v = 0; v < kVocabulary; ++v)
      mass += std::exp(scores[i * kVocabulary + static_cast<std::size_t>(v)]);
    const double loss = std::log(mass) - scores[i * kVocabulary + static_cast<std::size_t>(plain.x[i])];
    CHECK(losses[next++] == doctest::Approx(loss).epsilon(1e-12));
    sum += loss;
  }
  LossOptions loss;
  loss.task = "masked_tokens";
  CHECK(model.loss_and_gradient(batch, *make_task_loss<double>(loss, true)) ==
        doctest::Approx(sum / static_cast<double>(losses.size())).epsilon(1e-12));
  CHECK_THROWS_AS(make_task_loss<double>(loss), InvalidOption);
}

TEST_CASE("gradients of transformers with dropout") {
  ModelOptions options = transformer();
  own(options).dropout = 0.3;
  check_gradients(options, kLayout, kSamples, "cross_entropy");
  options.layers = 2;
  own(options).moe_layers = std::vector<std::string>{"1"};
  options.gating.jitter = 0.2;
  options.gating.train = NoisyTopKGatingOptions{};
  check_gradients(options, kLayout, kSamples, "cross_entropy");
}

TEST_CASE("dropout: anew in each step, none in measuring, and none where it is 0") {
  ModelOptions options = dense(), without = dense();
  own(options).dropout = 0.4;
  own(without).dropout = 0;
  ExampleModel<double> model(options, kLayout, {1, 0}), plain(dense(), kLayout, {1, 0}),
      zero(without, kLayout, {1, 0});
  LossOptions loss_options;
  loss_options.task = "cross_entropy";
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>(loss_options, true);
  const ExampleBatch<double> batch = model.batch(1, 4);
  const double first = model.step(batch, *loss);
  CHECK(model.loss_and_gradient(batch, *loss) == first);  // the same step
  CHECK(model.step(batch, *loss) != first);
  const Gating<double>& gating = plain.network().eval_gating();
  CHECK(model.predict(batch.x, model.network().eval_gating()) == plain.predict(batch.x, gating));
  CHECK(zero.step(batch, *loss) == plain.step(batch, *loss));
  CHECK(plain.network().state_size() == 0);
  CHECK(zero.network().state_size() == 0);
  std::vector<std::string> names;
  for (const StateArray& array : model.network().state_arrays()) names.push_back(array.name);
  CHECK(names == std::vector<std::string>{"block0_attention_dropout", "block0_dropout"});
}

}  // namespace moelab::masked_tokens_test
