/// Errors of scenarios with their place and reason. tests/app/cli/bad_input_page_test.cpp and
/// bad_claims_and_figures_test.cpp check the others.

#include <doctest/doctest.h>

#include <fstream>

#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"
#include "tests/temporary_folder.h"

namespace moelab::bad_input_test {

TEST_CASE("wrong fields") {
  check_refused_changes({
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
       "unknown init 'samples'; did you mean 'train_samples'? Allowed: normal, train_samples"},
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

TEST_CASE("wrong labels") {
  check_refused_changes({
      {"/labels", R"({"learnd": "x"})", "labels.learnd", "did you mean 'learned'?"},
      {"/labels", R"({"test_nmse_top": "x"})", "labels.test_nmse_top", "did you mean 'test_nmse_top1'?"},
      {"/labels", R"({"data.train_samples=64": "x"})", "labels.data.train_samples=64",
       "Allowed: 640, 1280, 2560, 5120"},
  });
}

TEST_CASE("wrong arms") {
  check_refused_changes({
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
  check_refused_changes({
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
      {"/sweep", R"({"zip": []})", "sweep.zip", "got [], needs an object {path: [values], …}"},
      {"/sweep", R"({"zip": {"data.dim": {"log2range": [32, 64]}}})", "sweep.zip.data.dim",
       "got {\"log2range\":[32,64]}, needs a list of at least one value"},
      {"/sweep", R"({"zip": {"data.dim": []}})", "sweep.zip.data.dim", "needs a list of at least one value"},
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

TEST_CASE("what cannot be trained is refused before anything runs") {
  Json phased = example_with("/phases", R"([{"name": "a", "learns": ["router", "experts", "layers"]},
    {"name": "b", "data": {"target": {"kind": "constant", "dim": 3}}, "learns": ["experts"]}])");
  for (const char* part : {"claims", "figures"}) phased.erase(part);
  check_refused(phased, "", {}, "phases[1].data", "has rows of 24 inputs, 3 outputs");

  phased["phases"][1].erase("data");
  phased["evaluations"] = Json::parse(R"({"a.e": {"data.noise_std": 2}})");
  check_refused(phased, "", {}, "evaluations.a.e", "begins with the name of the phase 'a' and a dot");
  phased["evaluations"] = Json::parse(R"({"ab.e": {"data.noise_std": 2}})");
  CHECK_NOTHROW(expand_scenario(phased, "", {}));

  const TemporaryFolder folder;
  const std::string file = (folder.path() / "text.txt").string(),
                    again = (folder.path() / "./text.txt").string();
  for (int line = 0; line < 1000; ++line) std::ofstream(file, std::ios::app) << line << '\n';
  Json texts = example_with("/data", R"({"generator": "text", "tokens": 8, "train_samples": 10})");
  texts["data"]["paths"] = {file, again};
  for (const char* part : {"claims", "figures", "sweep", "arms", "profiles"}) texts.erase(part);
  texts["model"] = Json::parse(R"({"kind": "transformer", "width": 4, "heads": 2, "experts": 3,
                                   "router": {"kind": "linear"}})");
  texts["loss"] = {{"task", "cross_entropy"}};
  texts["metrics"] = {"task"};
  check_refused(texts, "", {}, "data.paths[1]",
                "got '" + again + "' a second time, needs distinct files and folders");

  Json crowded = example_with("/metrics", R"([{"kind": "overlap", "neighbours": 10000}])");
  for (const char* part : {"claims", "figures"}) crowded.erase(part);
  check_refused(crowded, "", {}, "metrics[0].neighbours",
                "got 10000, needs at most 9999, the other test rows");
  crowded["metrics"][0]["neighbours"] = 9999;
  CHECK_NOTHROW(expand_scenario(crowded, "", {}));

  Json images = example_with("/data", R"({"generator": "image_clusters", "train_samples": 100})");
  for (const char* part : {"claims", "figures", "sweep", "arms", "profiles"}) images.erase(part);
  CHECK_NOTHROW(expand_scenario(images, "", {}));
  images["model"]["layers"] = 2;
  check_refused(images, "", {}, "model.layers", "needs 1 where an image leads the input");

  Json drawn = example_with("/data", R"({"generator": "dictionary", "atoms": 8, "dim": 6, "rank": 2})");
  for (const char* part : {"claims", "figures", "sweep", "arms", "profiles"}) drawn.erase(part);
  drawn["train"] = Json::parse(R"({"gradient": "population", "optimizer": "sgd", "lr": 0.1, "steps": 2,
                                   "points": 64, "rule": "quasi_monte_carlo"})");
  check_refused(drawn, "", {}, "train.rule", "no map from uniform variables");

  Json stable = example_with("/model/router", R"({"kind": "stable"})");
  for (const char* part : {"claims", "figures", "sweep", "arms", "profiles"}) stable.erase(part);
  stable["model"]["input_width"] = 30;
  check_refused(stable, "", {}, "model.input_width", "before that projection");
}

TEST_CASE("wrong profiles and settings") {
  const Json example = example_scenario();
  check_refused(example_with("/profiles", "{}"), "quick", {}, "--profile", "allowed: none");
  check_refused(example_with("/profiles/quick", R"({"train.step": 1})"), "quick", {},
                "profiles.quick.train.step", "did you mean 'steps'?");
  check_refused(example_with("/profiles/quick", R"({"tarin.steps": 1})"), "", {},
                "profiles.quick.tarin.steps", "did you mean 'train'?");
  check_refused(example_with("/profiles/quick", R"({"train.step": 1})"), "", {}, "profiles.quick.train.step",
                "did you mean 'steps'?");
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
