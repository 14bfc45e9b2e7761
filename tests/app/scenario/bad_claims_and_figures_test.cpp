/// What claims, evaluations and figures of a scenario may get wrong, and the place and reason that it is
/// told.

#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"

namespace moelab::bad_claims_and_figures_test {

TEST_CASE("wrong claims") {
  check_refused_changes({
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
      {"/claims/0/left/value", "1", "claims[0].left.arm", "cannot be combined with 'value'"},
      {"/claims/0/left/distance_from", "\"lerned\"", "claims[0].left.distance_from", "unknown arm"},
      {"/claims/0/left/metric", "\"test_nmse_top1 / data.train_sample\"", "claims[0].left.metric",
       "unknown metric or swept path 'data.train_sample'; did you mean 'data.train_samples'?"},
      {"/claims/0/left/metric", "\"test_nmse_top1 / data.generator\"", "claims[0].left.metric",
       "unknown metric or swept path 'data.generator'"},
      {"/claims/0/left/metric", "\"test_nmse_top1 /\"", "claims[0].left.metric", "which ends early"},
      {"/claims/0/left/metric", "\"test_nmse_top1 / 0\"", "claims[0].left.metric", "divides by 0"},
      {"/claims/0/left", R"({"value": "data.train_sample / 2"})", "claims[0].left.value",
       "unknown metric or swept path 'data.train_sample'; did you mean 'data.train_samples'?"},
      {"/claims/0/right", R"({"value": "test_nmse_tp1 / 2"})", "claims[0].right.value",
       "unknown metric or swept path 'test_nmse_tp1'; did you mean 'test_nmse_top1'?"},
      {"/claims/0/right", R"({"value": "expert_load_std_percent / 2"})", "claims[0].right.value",
       "belongs to the group 'load'"},
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
      {"/claims/0",
       R"({"id": "r", "op": "rate", "arm": "learned", "metric": "test_nmse_top1", "along": "data.train_samples",
           "exponent": -0.5, "diverged": "loses"})",
       "claims[0].diverged", "unknown key"},
      {"/claims/0",
       R"({"id": "l", "left": {"arm": "learned", "metric": "train_loss", "relative_to": "frozen"}, "op": "<",
           "right": {"value": 1}, "diverged": "loses"})",
       "claims[0].diverged", "is about two arms"},
      {"/claims/0",
       R"({"id": "l", "left": {"arm": "learned", "metric": "2 * train_loss"}, "op": "<",
           "right": {"arm": "frozen", "metric": "train_loss"}, "diverged": "loses"})",
       "claims[0].diverged", "is an expression"},
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
  check_refused_changes({
      {"/evaluations", "[]", "evaluations", "got [], needs an object"},
      {"/evaluations", R"({"wide": {"data.target.dim": 2}})", "evaluations.wide",
       "has rows of 24 inputs, 2 outputs, needs rows of 24 inputs, 10 outputs"},
      {"/evaluations", R"({"wide": {"data.dim": 20}})", "evaluations.wide", "has rows of 20 inputs"},
      {"/evaluations", R"({"wide": {"data.spurious_dims": 3}})", "evaluations.wide", "has rows of 27 inputs"},
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
  check_refused_changes({
      {"/figures/0/id", "\"../loss\"", "figures[0].id", "needs a name"},
      {"/figures/0/x", "\"data.dim\"", "figures[0].x", "unknown swept path 'data.dim'"},
      {"/figures/0/x_range", "[3, 2]", "figures[0].x_range", "needs [low, high]"},
      {"/figures/0/y_range", "[0, 2]", "figures[0].y_range", "above 0 on a logarithmic scale"},
      {"/figures/0/kind", "\"linse\"", "figures[0].kind", "did you mean 'lines'?"},
      {"/labels", R"({"larned": "x"})", "labels.larned", "did you mean 'learned'?"},
      {"/labels", R"({"data.train_samples=1281": "x"})", "labels.data.train_samples=1281",
       "unknown value of data.train_samples '1281'; did you mean '1280'?"},
      {"/figures/0/y", "\"train_los\"", "figures[0].y", "did you mean 'train_loss'?"},
      {"/figures/0/y", "[\"train_loss\", \"x\"]", "figures[0].y[1]", "unknown metric 'x'"},
      {"/figures/0/series", "\"arms\"", "figures[0].series", "did you mean 'arm'?"},
      {"/figures/0/series", "\"data.train_samples\"", "figures[0].series", "is the x axis already"},
      {"/figures/0/x_scale", "\"lgo\"", "figures[0].x_scale", "did you mean 'log'?"},
      {"/figures/0/arms", "[\"larned\"]", "figures[0].arms[0]", "did you mean 'learned'?"},
      {"/figures/0/arms", "[\"learned\", \"learned\"]", "figures[0].arms[1]", "a second time"},
      {"/figures/0/where", R"({"data.train_samples": 7})", "figures[0].where", "no point of the sweep"},
      {"/figures/0", R"({"id": "c", "kind": "claim", "claim": "learned_beats_frozen", "arms": ["learned"]})",
       "figures[0].arms", "given, but a figure of kind \"claim\" has the arms of its claim"},
      {"/figures/0",
       R"({"id": "c", "kind": "claim", "claim": "learned_beats_frozen", "where": {"data.train_samples": 640}})",
       "figures[0].where", "given, but a figure of kind \"claim\" has the points of its claim"},
      {"/figures/0/titel", "\"x\"", "figures[0].titel", "did you mean 'title'?"},
  });
}

TEST_CASE("an embedding needs saved routing") {
  Json unsaved = example_with("/figures/0", R"({"id": "e", "kind": "embedding", "arms": ["learned"]})");
  unsaved["save"] = {"weights"};
  check_refused(unsaved, "", {}, "figures[0].arms[0]", "needs \"save\": [\"routing\"]");
}

}  // namespace moelab::bad_claims_and_figures_test
