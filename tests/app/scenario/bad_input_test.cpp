/// What a scenario may get wrong, and the place and reason that it is told: what is not on the page that
/// tests/app/commands/bad_input_page_test.cpp checks.

#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"

namespace moelab::bad_input_test {
namespace {

/// The example with one value changed.
struct Change {
  const char* pointer;
  const char* value;
  const char* path;
  const char* message;
};

void check_changes(std::initializer_list<Change> changes) {
  for (const Change& change : changes) {
    CAPTURE(change.pointer);
    CAPTURE(change.value);
    check_refused(example_with(change.pointer, change.value), "", {}, change.path, change.message);
  }
}

}  // namespace

TEST_CASE("wrong fields") {
  check_changes({
      {"/evaluation", "{}", "evaluation", "unknown key 'evaluation'; did you mean 'evaluations'?"},
      {"/data/clusters", "-3", "data.clusters", "got -3, needs"},
      {"/data/clusters", "true", "data.clusters", "got true, needs"},
      {"/data/noise_std", "-1", "data.noise_std", "got -1, needs a finite number of at least 0"},
      {"/data/target", "[]", "data.target", "got [], needs an object whose 'kind' is one of constant"},
      {"/data/target/kind", "\"constnat\"", "data.target.kind",
       "unknown target 'constnat'; did you mean 'constant'?"},
      {"/data/scale_to_separation", "true", "data.scale_to_separation", "got true, needs data.separation"},
      {"/train/gradient", "\"population\"", "sweep.data.train_samples[0]",
       "given, but train.gradient is \"population\""},
      {"/train/points", "64", "train.points", "given, but train.gradient is \"sample\""},
      {"/model/router/init", "\"samples\"", "model.router.init",
       "unknown init 'samples'; allowed: normal, train_samples"},
      {"/figures/0/kind", "\"embedding\"", "figures[0].x", "unknown key 'x'"},
      {"/figures/0", R"({"id": "e", "kind": "embedding", "arms": ["dense_small"]})", "figures[0].arms[0]",
       "which is dense"},
      {"/figures/0", R"({"id": "e", "kind": "embedding", "arms": ["learned"], "where": {"data.n": 1}})",
       "figures[0].where.data.n", "unknown swept path"},
      {"/figures/0", R"({"id": "e"})", "figures[0].x", "missing"},
      {"/figures/0", R"({"id": "h", "kind": "heat_map", "x": "data.train_samples", "y": "data.dim"})",
       "figures[0].value", "missing; needs"},
      {"/figures/0/value", "\"test_nmse_top1\"", "figures[0].value", "unknown key 'value'"},
      {"/data", R"({"generator": "dictionary", "atoms": 2, "rank": 3, "dim": 4, "train_samples": 10})",
       "data.rank", "got 3, needs at most data.atoms = 2"},
      {"/data", R"({"generator": "image_clusters", "path": "no/such/folder", "train_samples": 10})",
       "data.path", "no file no/such/folder/train.bin"},
      {"/loss/task", "\"cross_entropy\"", "loss.task",
       "got \"cross_entropy\", needs targets that are classes; data.generator \"gaussian_mixture\" has none"},
      {"/data",
       R"({"generator": "token_topics", "topics": 1, "dim": 4, "tokens": 2, "target": "constant", "train_samples": 10})",
       "data.topics_per_sequence", "got 2, needs at most data.topics = 1"},
      {"/model/router", "\"cnn\"", "model.router.kind",
       "needs images; generators that have them: image_clusters"},
      {"/model/gating/eval", R"({"kind": "topk"})", "model.gating.eval.k", "missing"},
      {"/model/match", "\"moe\"", "model.match", "given, but model.kind is not 'dense'"},
      {"/model/depth", "1", "model.depth", "given, but model.kind is not 'dense'"},
      {"/train/steps", "null", "train.steps", "missing; needs train.steps or train.epochs"},
      {"/train/lr", "null", "train.lr", "missing; train.optimizer \"sgd\" needs it"},
      {"/train/start", "\"cold\"", "train.start", "given, but train.optimizer is not 'lbfgs'"},
      {"/metrics/1", R"({"kind": "sparsity", "shuffles": 0})", "metrics[1].shuffles", "got 0, needs"},
      {"/metrics/1", "\"task\"", "metrics[1]", "a second time"},
      {"/metrics/1", R"({"kind": "convergence", "metric": "test_nmse_sofd"})", "metrics[1].metric",
       "did you mean 'test_nmse_soft'?"},
      {"/metrics/1", R"({"kind": "convergence", "metric": "routing_entropy"})", "metrics[1].metric",
       "belongs to the group 'routing', which \"metrics\" leaves out"},
      {"/metrics/1", R"({"kind": "convergence", "metric": "noisy.test_loss_soft"})", "metrics[1].metric",
       "unknown evaluation 'noisy'"},
      {"/metrics/1", R"({"kind": "convergence", "metric": "steps_to_target"})", "metrics[1].metric",
       "needs a metric of every recorded step"},
      {"/metrics/1", R"({"kind": "convergence", "name": "a b"})", "metrics[1].name", "needs a name"},
      {"/metrics/1", R"({"kind": "convergence", "direction": "bellow"})", "metrics[1].direction",
       "did you mean 'below'?"},
      {"/metrics", R"(["task", "convergence", "convergence"])", "metrics[2]", "a second time"},
      {"/metrics", R"(["task", {"kind": "convergence", "name": "a"}, {"kind": "convergence", "name": "a"}])",
       "metrics[2]", "a second time"},
      {"/metrics/1", R"({"kind": "fluctuation", "k": 65})", "metrics[1].k",
       "got 65, needs at most model.experts = 64"},
      {"/model/router", "\"attention_aware\"", "model.attention",
       "missing; model.router.kind \"attention_aware\" needs it"},
      {"/save", "[\"weight\"]", "save[0]", "did you mean 'weights'?"},
      {"/seeds/count", "0", "seeds.count", "got 0, needs a whole number of at least 1"},
      {"/seeds/count", "1000001", "seeds.count", "needs at most 1000000"},
      {"/seeds/count", "9007199254740992", "seeds.count", "needs at most 1000000"},
      {"/seeds/root", "-1", "seeds.root", "got -1, needs"},
      {"/seeds/root", "9007199254740993", "seeds.root", "got 9007199254740993, needs"},
      {"/seeds/root", "18446744073709551616", "seeds.root", "at least 0 and at most 9007199254740992"},
      {"/name", "\"\"", "name", "needs a non-empty text"},
      {"/name", "\"..\"", "name", "got \"..\", needs a name"},
      {"/name", "null", "name", "got null, needs a non-empty text"},
  });
  Json nameless = example_scenario();
  nameless.erase("name");
  check_refused(nameless, "", {}, "name", "missing; needs a non-empty text");
  check_refused(Json::array(), "", {}, "", "got [], needs a scenario");
}

TEST_CASE("wrong arms") {
  check_changes({
      {"/arms", "{}", "arms", "needs at least one arm"},
      {"/arms", R"({"": {}})", "arms", "non-empty name"},
      {"/arms/frozen", "true", "arms.frozen", "got true, needs an object"},
      {"/arms/frozen", R"({"model.router.trainable": "yes"})", "arms.frozen.model.router.trainable",
       "got \"yes\", needs true or false"},
      {"/arms/frozen", R"({"model.rooter.trainable": true})", "arms.frozen.model.rooter.trainable",
       "unknown key 'rooter'; did you mean 'router'?"},
      {"/arms/frozen", R"({"modle.router": "mlp"})", "arms.frozen.modle.router", "did you mean 'model'?"},
      {"/arms/frozen", R"({"seeds.count": 3})", "arms.frozen.seeds.count", "unknown field 'seeds'"},
      {"/arms/frozen", R"({"data.clusters.x": 3})", "arms.frozen.data.clusters.x", "leads into 64"},
      {"/arms/frozen", R"({"model.router": {"kind": "linear", "init_scal": 1}})",
       "arms.frozen.model.router.init_scal", "did you mean 'init_scale'?"},
      {"/arms/frozen", R"({"data.generator..x": 1})", "arms.frozen.data.generator..x", "no field ''"},
      {"/arms/frozen", R"({"model.expert": "linear", "model.expert.depth": 2})",
       "arms.frozen.model.expert.depth", "unknown key 'depth'"},
      {"/arms/frozen", R"({"model.expert.kind": "linear"})", "arms.frozen.model.expert.kind",
       "makes model.expert.depth wrong: unknown key 'depth'"},
      {"/arms/frozen", R"({"train.steps": 5, "train.epochs": 5})", "arms.frozen.train.steps", "exactly one"},
      {"/arms/frozen", R"({"metrics": ["taks"]})", "arms.frozen.metrics[0]", "did you mean 'task'?"},
  });
}

TEST_CASE("wrong sweeps") {
  check_changes({
      {"/sweep", "{}", "sweep", "needs at least one path"},
      {"/sweep", "[]", "sweep", "got [], needs an object"},
      {"/sweep", R"({"dta.train_samples": [1]})", "sweep.dta.train_samples", "did you mean 'data'?"},
      {"/sweep", R"({"seeds.count": [1]})", "sweep.seeds.count", "unknown field 'seeds'"},
      {"/sweep", R"({"data.train_samples": []})", "sweep.data.train_samples", "needs a list of at least 1"},
      {"/sweep", R"({"data.train_samples": 640})", "sweep.data.train_samples", "got 640, needs a list"},
      {"/sweep", R"({"data.train_samples": [640, -1]})", "sweep.data.train_samples[1]", "got -1, needs"},
      {"/sweep", R"({"data.train_samples": {"log2range": [64, 32]}})", "sweep.data.train_samples.log2range",
       "needs"},
      {"/sweep", R"({"data.train_samples": {"log2range": [64]}})", "sweep.data.train_samples.log2range",
       "got 1 values"},
      {"/sweep", R"({"data.train_samples": {"log2range": [0, 64]}})", "sweep.data.train_samples.log2range[0]",
       "got 0, needs"},
      {"/sweep", R"({"data.train_samples": {"log2rnage": [1, 2]}})", "sweep.data.train_samples.log2rnage",
       "did you mean 'log2range'?"},
      {"/sweep", R"({"data.train_samples": {}})", "sweep.data.train_samples", "needs a list of values"},
      {"/sweep", R"({"zip": {"data.dim": [1, 2], "data.clusters": [1, 0]}})", "sweep.zip.data.clusters[1]",
       "got 0, needs"},
      {"/sweep", R"({"zip": {"data.dim": [1], "data.cluster": [1]}})", "sweep.zip.data.cluster",
       "did you mean 'clusters'?"},
      {"/sweep", R"({"zip": {}})", "sweep.zip", "needs an object"},
      {"/sweep", R"({"zip": [1]})", "sweep.zip", "needs an object"},
      {"/sweep", R"({"data.dim": [2, 3], "zip": {"data.dim": [1, 2]}})", "sweep.zip", "swept, too"},
      {"/sweep", R"({"model.experts": [64, 1], "model.gating.eval": [{"kind": "topk", "k": 2}]})",
       "sweep.model.gating.eval[0].k", "got 2, needs at most model.experts = 1"},
  });
  Json grid = example_with("/sweep", "{}");
  for (const char* path : {"data.clusters", "data.dim", "model.experts", "train.steps"}) {
    grid["sweep"][path] =
        Json::object({{"log2range", {1, 1 << 16}}});  // 17 values each, and 4 below: 4 · 17⁴ points
  }
  grid["sweep"]["train.batch_size"] = Json::parse("[1, 2, 3, 4]");
  check_refused(grid, "", {}, "sweep", "needs at most 1000000");
  Json top2 = example_with("/model/gating/eval", R"({"kind": "topk", "k": 2})");
  top2["sweep"] = Json::parse(R"({"model.experts": [64, 1]})");
  check_refused(top2, "", {}, "sweep.model.experts[1]", "makes model.gating.eval.k wrong: got 2");
}

TEST_CASE("an embedding needs saved routing") {
  Json unsaved = example_with("/figures/0", R"({"id": "e", "kind": "embedding", "arms": ["learned"]})");
  unsaved["save"] = {"weights"};
  check_refused(unsaved, "", {}, "figures[0].arms[0]", "needs \"save\": [\"routing\"]");
}

TEST_CASE("wrong claims") {
  check_changes({
      {"/claims", "{}", "claims", "got {}, needs a list"},
      {"/claims/0/op", "\"~\"", "claims[0].tolerance", "missing"},
      {"/claims/0/tolerance", "0.1", "claims[0].tolerance", "unknown key"},
      {"/claims/0/id", "\"a b\"", "claims[0].id", "needs a name"},
      {"/claims/0/left", "{}", "claims[0].left.arm", "missing; a side needs arm and metric, or value"},
      {"/claims/0/left/metric", "\"contaminated.test_nmse_top1\"", "claims[0].left.metric",
       "unknown evaluation 'contaminated'; allowed: none"},
      {"/claims/0/left/metric", "\"train_loss_layer0\"", "claims[0].left.metric",
       "needs no ending of a layer for model.layers = 1"},
      {"/claims/0/left/relative_to", "\"forzen\"", "claims[0].left.relative_to", "did you mean 'frozen'?"},
      {"/claims/0/left/metric", "\"expert_load_std_percent\"", "claims[0].left.metric",
       "belongs to the group 'load'"},
      {"/claims/0/left/value", "1", "claims[0].left.arm", "given beside 'value'"},
      {"/claims/0/left/distance_from", "\"lerned\"", "claims[0].left.distance_from", "unknown arm"},
      {"/claims/0/left/metric", "\"test_nmse_top1 / data.train_sample\"", "claims[0].left.metric",
       "unknown metric or swept path 'data.train_sample'; did you mean 'data.train_samples'?"},
      {"/claims/0/left/metric", "\"test_nmse_top1 / data.generator\"", "claims[0].left.metric",
       "unknown metric or swept path 'data.generator'"},
      {"/claims/0/left/metric", "\"test_nmse_top1 /\"", "claims[0].left.metric", "which ends early"},
      {"/claims/0/left", R"({"value": "data.train_sample / 2"})", "claims[0].left.value",
       "unknown swept path 'data.train_sample'; did you mean 'data.train_samples'?"},
      {"/claims/0/left/metric", "\"steps_to_target\"", "claims[0].left.metric",
       "belongs to the group 'convergence'"},
      {"/claims/0/smallest_effect", "0", "claims[0].smallest_effect", "got 0, needs a finite number above 0"},
      {"/claims/0/origin", "\"papers\"", "claims[0].origin", "did you mean 'paper'?"},
      {"/claims/0/shape", "\"ends\"", "claims[0].shape", "unknown key"},
      {"/claims/0",
       R"({"id": "c", "left": {"arm": "learned", "metric": "test_nmse_top1"}, "op": "~", "tolerance": 0.1,
           "right": {"value": 1}, "smallest_effect": 0.1})",
       "claims[0].smallest_effect", "unknown key"},
      {"/claims/0",
       R"({"id": "c", "arm": "learned", "metric": "train_loss", "op": "decreases", "along": "step",
           "shape": "monoton"})",
       "claims[0].shape", "did you mean 'monotone'?"},
      {"/claims/0/left/factor", "0", "claims[0].left.factor", "got 0, needs a finite number above 0"},
      {"/claims/0/left/step", "1500", "claims[0].left.step", "needs a recorded step: a multiple of 1000"},
      {"/claims/0/left/step", "30000", "claims[0].left.step", "at most 20000"},
      {"/claims/0/left/step", "\"strat\"", "claims[0].left.step", "did you mean 'start'?"},
      {"/claims/0/left/where", R"({"data.train_sample": 640})", "claims[0].left.where.data.train_sample",
       "did you mean 'data.train_samples'?"},
      {"/claims/0/at", "\"lats\"", "claims[0].at", "did you mean 'last'?"},
      {"/claims/0/at", "[]", "claims[0].at", "needs"},
      {"/claims/0/at", "[641]", "claims[0].at[0]", "no sweep point"},
      {"/claims/0/at", R"([{"data.dim": 24}])", "claims[0].at[0].data.dim", "unknown swept path"},
      {"/claims/0",
       R"({"id": "t", "op": "decreases", "arm": "learned", "metric": "train_loss", "along": "data.dim"})",
       "claims[0].along", "unknown swept path 'data.dim'"},
      {"/claims/0",
       R"({"id": "t", "op": "decreases", "arm": "larned", "metric": "train_loss", "along": "step"})",
       "claims[0].arm", "did you mean 'learned'?"},
      {"/claims/1",
       R"({"id": "learned_beats_frozen", "op": "increases", "arm": "learned", "metric": "train_loss",
                        "along": "step"})",
       "claims[1].id", "a second time"},
  });
  Json single = example_with("/sweep/data.train_samples", "[640]");
  single["claims"] = Json::parse(
      R"([{"id": "t", "op": "decreases", "arm": "learned", "metric": "train_loss", "along": "data.train_samples"}])");
  check_refused(single, "", {}, "claims[0].along", "at least two swept values");
}

TEST_CASE("wrong evaluations, and metrics of evaluations and layers that there are not") {
  check_changes({
      {"/evaluations", "[]", "evaluations", "got [], needs an object"},
      {"/evaluations", R"({"a b": {}})", "evaluations.a b", "needs a name"},
      {"/evaluations", R"({"noisy": 3})", "evaluations.noisy", "got 3, needs an object"},
      {"/evaluations", R"({"noisy": {"model.experts": 3}})", "evaluations.noisy.model.experts",
       "got \"model.experts\", needs a path below data"},
      {"/evaluations", R"({"noisy": {"data.contaminatoin": "none"}})", "evaluations.noisy.data.contaminatoin",
       "did you mean 'contamination'?"},
      {"/evaluations", R"({"noisy": {"data.contamination": {"kind": "nois"}}})",
       "evaluations.noisy.data.contamination.kind", "did you mean 'noise'?"},
      {"/evaluations", R"({"noisy": {"data.contamination": {"kind": "noise", "std": -1}}})",
       "evaluations.noisy.data.contamination.std", "got -1, needs"},
      {"/evaluations", R"({"noisy": {"data.contamination.std": 1}})",
       "evaluations.noisy.data.contamination.std", "unknown key 'std'"},
  });
  Json layered = example_with("/model/layers", "2");
  layered["evaluations"] = Json::parse(R"({"noisy": {"data.contamination": {"kind": "noise", "std": 1}}})");
  for (const char* group : {"load", "layer_loads"}) layered["metrics"].push_back(group);
  layered["arms"].erase("dense_small");
  layered["arms"].erase("dense_large");
  struct Row {
    const char* metric;
    const char* message;  ///< null where the claim is right
  };
  const Row rows[] = {
      {"noisy.test_nmse_top1", nullptr},
      {"noisy.expert_load_std_percent_layer1", nullptr},
      {"nosy.test_nmse_top1", "unknown evaluation 'nosy'; did you mean 'noisy'?"},
      {"expert_load_std_percent", "needs an ending _layer0 … _layer1 for model.layers = 2"},
      {"noisy.expert_load_std_percent", "needs an ending _layer0 … _layer1 for model.layers = 2"},
      {"expert_load_std_percent_layer2", "needs an ending _layer0 … _layer1 for model.layers = 2"},
      {"noisy.expert_load_std_percent_mean", nullptr},
      {"expert_load_std_percent_mean_layer0", "needs no ending of a layer for model.layers = 2"},
      {"test_nmse_top1_layer0", "needs no ending of a layer for model.layers = 2"},
      {"routing_entropy_layer0", "belongs to the group 'routing'"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.metric);
    layered["claims"][0]["left"]["metric"] = row.metric;
    if (row.message) {
      check_refused(layered, "", {}, "claims[0].left.metric", row.message);
    } else {
      CHECK_NOTHROW(expand_scenario(layered, "", {}));
    }
  }
}

TEST_CASE("a metric of convergence names an entry that there is") {
  Json document = example_scenario();
  document["metrics"].push_back({{"kind", "convergence"}, {"name", "fast"}});
  const auto claim_on = [&](const char* metric) {
    document["claims"][0]["left"]["metric"] = metric;
    return document;
  };
  CHECK_NOTHROW(expand_scenario(claim_on("steps_to_target.fast"), "", {}));
  CHECK_NOTHROW(expand_scenario(claim_on("steps_to_target.fast / data.train_samples"), "", {}));
  check_refused(claim_on("steps_to_target"), "", {}, "claims[0].left.metric", "unknown metric");
  check_refused(claim_on("steps_to_target.fats"), "", {}, "claims[0].left.metric",
                "did you mean 'steps_to_target.fast'?");
}

TEST_CASE("wrong figures") {
  check_changes({
      {"/figures/0/id", "\"../loss\"", "figures[0].id", "needs a name"},
      {"/figures/0/x", "\"data.dim\"", "figures[0].x", "unknown swept path 'data.dim'"},
      {"/figures/0/x_range", "[3, 2]", "figures[0].x_range", "needs [low, high]"},
      {"/figures/0/y_range", "[0, 2]", "figures[0].y_range", "above 0 on a logarithmic scale"},
      {"/figures/0/kind", "\"linse\"", "figures[0].kind", "did you mean 'lines'?"},
      {"/labels", R"({"larned": "x"})", "labels.larned", "did you mean 'learned'?"},
      {"/figures/0/y", "\"train_los\"", "figures[0].y", "did you mean 'train_loss'?"},
      {"/figures/0/y", "[\"train_loss\", \"x\"]", "figures[0].y[1]", "unknown metric 'x'"},
      {"/figures/0/series", "\"arms\"", "figures[0].series", "did you mean 'arm'?"},
      {"/figures/0/series", "\"data.train_samples\"", "figures[0].series", "is the x axis already"},
      {"/figures/0/x_scale", "\"lgo\"", "figures[0].x_scale", "did you mean 'log'?"},
      {"/figures/0/arms", "[\"larned\"]", "figures[0].arms[0]", "did you mean 'learned'?"},
      {"/figures/0/where", R"({"data.train_samples": 7})", "figures[0].where", "no point of the sweep"},
      {"/figures/0/titel", "\"x\"", "figures[0].titel", "did you mean 'title'?"},
  });
}

TEST_CASE("wrong profiles and settings") {
  const Json example = example_scenario();
  check_refused(example_with("/profiles", "{}"), "quick", {}, "--profile", "allowed: none");
  check_refused(example_with("/profiles/quick", R"({"train.step": 1})"), "quick", {},
                "profiles.quick.train.step", "did you mean 'steps'?");
  check_refused(example_with("/profiles/quick", R"({"tarin.steps": 1})"), "", {},
                "profiles.quick.tarin.steps", "did you mean 'train'?");
  check_refused(example_with("/profiles/quick", R"({"train.steps": 1.5})"), "quick", {},
                "profiles.quick.train.steps", "got 1.5, needs");
  check_refused(example_with("/profiles/quick", R"({"sweep.data.train_samples": [5, 0.5]})"), "quick", {},
                "profiles.quick.sweep.data.train_samples[1]", "got 0.5, needs");

  struct Row {
    const char* setting;
    const char* path;
    const char* message;
  };
  const Row rows[] = {
      {"=3", "--set", "needs path=value"},
      {"", "--set", "needs path=value"},
      {"train.steps=\xff", "--set", "not UTF-8"},
      {"train.steps=", "--set train.steps", "got \"\", needs a whole number"},
      {"train.steps=1e999", "--set train.steps", "got 1e999, needs a number that a double holds: at most"},
      {"train.lr=1e-400", "--set train.lr", "got 1e-400, needs a number that a double holds: 0, or at least"},
      {"trian.steps=3", "--set trian.steps", "did you mean 'train'?"},
      {"profiles.quick={}", "--set profiles.quick", "unknown field 'profiles'"},
      {"train=3", "--set train", "got 3, needs an object"},
      {"train={\"lr\": -1}", "--set train.lr", "got -1, needs"},
      {"sweep.data.train_samples=[3, 3]", "--set sweep.data.train_samples[1]", "a second time"},
      {"sweep.data.dimm=[3]", "--set sweep.data.dimm", "did you mean 'dim'?"},
      {"arms.frozen.model.router.trainable=maybe", "--set arms.frozen.model.router.trainable",
       "got \"maybe\", needs"},
      {"arms.frozen={\"model.router.trainable\": 1}", "--set arms.frozen.model.router.trainable",
       "got 1, needs"},
      {"arms.frozen.model.rooter=1", "--set arms.frozen.model.rooter", "did you mean 'router'?"},
      {"claims=[{\"id\": \"x\", \"op\": \"=\"}]", "--set claims[0].op", "unknown op '='"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.setting);
    check_refused(example, "", {row.setting}, row.path, row.message);
  }
}

}  // namespace moelab::bad_input_test
