/// Small language models, from the scenario to the metrics and arrays of a cell.

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "analysis/metrics/agreement.h"
#include "app/scenario/cells.h"
#include "tests/app/run/language_scenario.h"
#include "tests/app/run/test_scenario.h"
#include "tests/app/scenario/refused.h"

namespace moelab::language_run_test {

using namespace language_scenario;

TEST_CASE("a language model comes down to its floor, and not below") {
  const CellResult result = run(document());
  const auto metric = [&](const std::string& name) { return result.metrics.at(name); };
  CHECK(result.trace.front().metrics.at("test_loss_eval") > metric("unigram_loss"));
  CHECK(metric("test_loss_eval") < metric("bigram_loss"));
  CHECK(metric("test_loss_eval") > metric("bayes_loss"));
  CHECK(metric("train_loss") == doctest::Approx(metric("test_loss_eval")).epsilon(0.1));
  CHECK(metric("test_perplexity") == std::exp(metric("test_loss_eval")));
  for (const char* const name : {"test_accuracy_eval", "test_nmse_soft", "test_bits_per_byte", "silhouette"})
    CHECK_FALSE(result.metrics.contains(name));
}

TEST_CASE("saved arrays of a language model are ids, its routing and its weights; the metrics are theirs") {
  const CellResult result = run(document());
  const SavedArray &inputs = array_of(result, "test_inputs"), &targets = array_of(result, "test_targets");
  CHECK(inputs.shape == std::vector<std::int64_t>{kTest, kTokens});
  CHECK(targets.shape == inputs.shape);
  CHECK(inputs.labels[1] == targets.labels[0]);
  CHECK(array_of(result, "test_labels").shape == inputs.shape);
  const SavedArray& probabilities = array_of(result, "test_probs");
  CHECK(probabilities.shape == std::vector<std::int64_t>{kTest, kTokens, kExperts});
  CHECK(array_of(result, "embedding_token").shape == std::vector<std::int64_t>{8, 16});
  CHECK(array_of(result, "block0_attention_query").shape == std::vector<std::int64_t>{16, 16});
  CHECK(array_of(result, "expert_weight_1").shape == std::vector<std::int64_t>{kExperts, 16, 16});
  std::vector<int> tokens(inputs.labels.begin(), inputs.labels.end()), serving;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const auto first = probabilities.values.begin() + static_cast<std::ptrdiff_t>(row * kExperts);
    serving.push_back(static_cast<int>(std::max_element(first, first + kExperts) - first));
  }
  CHECK(result.metrics.at("top1_token_ari") == *adjusted_rand_index(routing_table(tokens, serving)));
}

TEST_CASE("text has bits a byte") {
  Json scenario = document();
  scenario["data"] = {{"generator", "text"},
                      {"paths", MOELAB_TEST_DATA "/CMakeLists.txt"},
                      {"tokens", 12},
                      {"train_samples", 64},
                      {"test_samples", 20}};
  scenario["train"] = Json::parse(R"({"batch_size": 16, "steps": 2, "optimizer": "adamw", "lr": 0.001})");
  const CellResult result = run(scenario);
  CHECK(result.metrics.at("test_bits_per_byte") ==
        doctest::Approx(result.metrics.at("test_loss_eval") / std::numbers::ln2).epsilon(1e-12));
  CHECK_FALSE(result.metrics.contains("bayes_loss"));
  // Of tokens of several bytes: fewer bits a byte than a token.
  Json pairs = scenario;
  pairs["data"]["tokenizer"] = {{"kind", "bpe"}, {"vocabulary", 400}};
  const CellResult merged = run(pairs);
  CHECK(merged.metrics.at("test_bits_per_byte") <
        merged.metrics.at("test_loss_eval") / std::numbers::ln2 / 1.5);
  CHECK(expand_scenario(pairs, "", {}).cells.front().id !=
        expand_scenario(scenario, "", {}).cells.front().id);
  // Ids of an evaluation's and a phase's text stand for the bytes that they stood for in training.
  Json elsewhere = pairs;
  elsewhere["evaluations"]["other"]["data.paths"] = MOELAB_TEST_DATA "/../LICENSE";
  elsewhere["phases"] = Json::parse(R"([{"name": "a"}, {"name": "b"}])");
  elsewhere["phases"][1]["data"]["paths"] = MOELAB_TEST_DATA "/../LICENSE";
  const Json config = config_json(*expand_scenario(elsewhere, "", {}).cells.front().options);
  const Json learned = Json::array({MOELAB_TEST_DATA "/CMakeLists.txt"});
  CHECK_FALSE(config.at("data").at("tokenizer").contains("paths"));
  CHECK(config.at("evaluations").at("other").at("tokenizer").at("paths") == learned);
  CHECK(config.at("phases")[1].at("data").at("tokenizer").at("paths") == learned);
  CHECK(config.at("phases")[0].at("evaluations").at("other").at("tokenizer").at("paths") == learned);
  scenario["train"] = document().at("train");
  scenario["data"].erase("train_samples");
  check_refused(scenario, "", {}, "data.paths", "a file is a sample without a law");
}

TEST_CASE("masked tokens: learned from both sides, with no floor of the next token") {
  Json scenario = document();
  scenario["model"]["causal"] = false;
  scenario["loss"] = {{"task", "masked_tokens"}, {"mask_share", 0.25}};
  const CellResult result = run(scenario);
  const auto loss_at = [](const TraceEntry& entry) { return entry.metrics.at("test_loss_eval"); };
  CHECK(loss_at(result.trace.front()) > std::log(8.0));
  // The unigram loses least of all that know only how often each token is.
  CHECK(result.metrics.at("test_loss_eval") < 0.97 * run(document()).metrics.at("unigram_loss"));
  CHECK(result.metrics.at("train_loss") ==
        doctest::Approx(result.metrics.at("test_loss_eval")).epsilon(0.15));
  for (const char* const name : {"bayes_loss", "oracle_domain_loss", "bigram_loss", "unigram_loss"})
    CHECK_FALSE(result.metrics.contains(name));
  const SavedArray &inputs = array_of(result, "test_inputs"), &targets = array_of(result, "test_targets");
  for (std::size_t at = 0; at < inputs.labels.size(); ++at)
    CHECK((inputs.labels[at] == 8) == (targets.labels[at] >= 0));
  CHECK(std::count(inputs.labels.begin(), inputs.labels.end(), 8) == kTest * kTokens / 4);
  CHECK(array_of(result, "embedding_token").shape == std::vector<std::int64_t>{9, 16});
  CHECK(run(scenario).metrics == result.metrics);

  Json claims = scenario;
  claims["claims"] =
      Json::parse(R"([{"id": "floor", "left": {"arm": "base", "metric": "test_loss_eval"}, "op": ">",
                                      "right": {"arm": "base", "metric": "bayes_loss"}}])");
  check_refused(claims, "", {}, "claims[0].right.metric", "the next token as the task");
  Json causal = scenario;
  causal["model"].erase("causal");
  check_refused(causal, "", {}, "loss.task", "got \"masked_tokens\", but model.causal is true");
  Json next = scenario;
  next["loss"] = {{"task", "cross_entropy"}};
  check_refused(next, "", {}, "model.causal", "got false, but loss.task is \"cross_entropy\"");
  next["model"].erase("causal");
  next["loss"]["mask_share"] = 0.2;
  check_refused(next, "", {}, "loss.mask_share", "given, but loss.task is \"cross_entropy\"");
  Json numbers = scenario;
  numbers["data"] = Json::parse(R"({"generator": "gaussian_mixture", "clusters": 3, "dim": 4,
                                    "target": {"kind": "constant", "dim": 2}})");
  numbers["model"] = Json::parse(R"({"experts": 2, "router": "linear", "expert": "linear"})");
  check_refused(numbers, "", {}, "loss.task", "needs ids of tokens");
}

TEST_CASE("masked tokens of a training set are masked anew, those of a test set once") {
  Json scenario = document();
  scenario["model"]["causal"] = false;
  scenario["loss"] = {{"task", "masked_tokens"}};
  scenario["data"]["train_samples"] = 32;
  scenario["train"] = Json::parse(R"({"batch_size": 32, "steps": 3, "lr": 0, "record_every": 1})");
  // Without learning the test loss stands still.
  const CellResult result = run(scenario);
  for (const TraceEntry& entry : result.trace)
    CHECK(entry.metrics.at("test_loss_eval") == result.metrics.at("test_loss_eval"));
  scenario["train"]["lr"] = 0.01;
  const CellResult trained = run(scenario);
  CHECK(trained.metrics.at("test_loss_eval") != result.metrics.at("test_loss_eval"));
  Json text = scenario;
  text["data"] = {{"generator", "text"},
                  {"paths", MOELAB_TEST_DATA "/CMakeLists.txt"},
                  {"tokens", 12},
                  {"train_samples", 64},
                  {"test_samples", 20}};
  // Of bytes a masked token is a byte.
  const CellResult bytes = run(text);
  CHECK(bytes.metrics.at("test_bits_per_byte") ==
        doctest::Approx(bytes.metrics.at("test_loss_eval") / std::numbers::ln2).epsilon(1e-12));
}

TEST_CASE("dropout changes training alone, and at 0 nothing") {
  Json scenario = document();
  scenario["train"]["steps"] = 20;
  const Json plain = scenario;
  scenario["model"]["dropout"] = 0.2;
  const CellResult without = run(plain), with = run(scenario);
  CHECK(without.trace.front().metrics == with.trace.front().metrics);
  CHECK(without.metrics.at("test_loss_eval") != with.metrics.at("test_loss_eval"));
  CHECK(run(scenario).metrics == with.metrics);
  CHECK(array_of(with, "block0_attention_dropout").shape == std::vector<std::int64_t>{3});
  scenario["model"]["dropout"] = 0;
  CHECK(run(scenario).metrics == without.metrics);
}

TEST_CASE("a cell is known by what its text holds, file after file") {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, char letter) {
    std::ofstream(folder.path() / name) << std::string(100, letter);
    return (folder.path() / name).string();
  };
  const auto id_of = [](const Json& paths) {
    Json scenario = document();
    scenario["data"] = {
        {"generator", "text"}, {"paths", paths}, {"tokens", 4}, {"train_samples", 5}, {"test_samples", 5}};
    scenario["train"] = Json::parse(R"({"batch_size": 5, "steps": 1, "lr": 0.001})");
    return expand_scenario(scenario, "", {}).cells.front().id;
  };
  const std::string a = write("a", 'a'), b = write("b", 'b'), c = write("c", 'a');
  CHECK(id_of({a, b}) == id_of({c, b}));
  CHECK(id_of({a, b}) != id_of({b, a}));
  CHECK(id_of({a, b}) != id_of({a}));
  CHECK(id_of({a}) == id_of(a));
}

TEST_CASE("layers with a mixture are counted from 0") {
  Json scenario = document();
  for (const auto& [given, layers] :
       {std::pair<Json, int>{Json::array({0}), 1}, std::pair<Json, int>{Json::array({0, 1}), 2},
        std::pair<Json, int>{"all", 2}, std::pair<Json, int>{Json::array(), 0}}) {
    scenario["model"]["moe_layers"] = given;
    const ModelOptions model = expand_scenario(scenario, "", {}).cells.front().options->experiment.model;
    CHECK(mixtures_of(model) == layers);
  }
}

TEST_CASE("what does not go with ids of tokens") {
  const auto refuse = [](const char* part, const char* field, const Json& value, const std::string& message) {
    Json changed = document();
    changed[part][field] = value;
    check_refused(changed, "", {}, std::string(part) + "." + field, message);
  };
  refuse("loss", "task", "mse",
         "got \"mse\", but targets are ids of tokens; needs \"cross_entropy\" or \"masked_tokens\"");
  refuse("data", "contamination", "replaced",
         "got \"replaced\", which moves numbers; samples of data.generator \"synthetic_language\" are ids of "
         "tokens");
  refuse("data", "contamination", {{"kind", "pgd"}, {"budget", 0.1}}, "got \"pgd\", which moves numbers");
  refuse("model", "moe_layers", {2}, "got 2, needs \"all\", \"alternate\", or different layers");
  Json mixture = document();
  mixture["model"] = Json::parse(R"({"experts": 2, "router": "linear", "expert": "linear"})");
  check_refused(mixture, "", {}, "model.kind",
                "samples of data.generator \"synthetic_language\" are ids of tokens; needs \"transformer\"");
  Json numbers = document();
  numbers["data"] = Json::parse(R"({"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2,
                                    "noise_std": 1, "target": {"kind": "constant", "dim": 2}})");
  check_refused(numbers, "", {}, "model.kind", "got \"transformer\", but samples of data.generator");
  numbers["model"] = mixture["model"];
  numbers["loss"] = {{"task", "mse"}};
  numbers["data"]["contamination"] = "swapped";
  check_refused(
      numbers, "", {}, "data.contamination",
      "got \"swapped\", which swaps tokens; samples of data.generator \"gaussian_mixture\" are no ids "
      "of tokens");
}

}  // namespace moelab::language_run_test
