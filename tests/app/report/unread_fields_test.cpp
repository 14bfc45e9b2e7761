/// Notes on fields that nothing reads: one case for each rule, next to a control in which the field is read.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/report/hints.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/language_scenario.h"

namespace moelab::unread_fields_test {
namespace {

/// The tiny scenario with one cell.
Json one_cell() {
  Json scenario = tiny();
  scenario.erase("arms");
  scenario.erase("sweep");
  scenario["seeds"]["count"] = 1;
  scenario["metrics"] = {"task"};
  scenario["model"]["expert"] = {{"kind", "linear"}};
  return scenario;
}

/// Merges a change into the scenario. Another generator replaces the data.
Json changed(Json scenario, const char* change) {
  const Json patch = Json::parse(change);
  if (patch.contains("data") && patch["data"].contains("generator")) scenario["data"] = Json::object();
  scenario.merge_patch(patch);
  return scenario;
}

std::vector<std::string> hints_of(const Json& scenario) {
  return scenario_hints(expand_scenario(scenario, "", {}));
}

bool has(const std::vector<std::string>& hints, const std::string& beginning) {
  return std::any_of(hints.begin(), hints.end(),
                     [&](const std::string& hint) { return hint.starts_with(beginning); });
}

struct Case {
  const char* given;    ///< a change after which nothing reads the field
  const char* note;     ///< the beginning of the note
  const char* control;  ///< a further change after which the field is read
};

void check_cases(const Json& scenario, const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    CAPTURE(each.given);
    CAPTURE(each.control);
    const std::string note = each.note;
    const Json unread = changed(scenario, each.given);
    const std::vector<std::string> hints = hints_of(unread);
    std::string all;
    for (const std::string& hint : hints) all += hint + "\n";
    CHECK_MESSAGE(has(hints, note), all);
    CHECK_FALSE(has(hints_of(changed(unread, each.control)), note.substr(0, note.find(": ") + 2)));
  }
}

}  // namespace

TEST_CASE("a scenario that reads all its fields has no note") {
  CHECK(hints_of(tiny()).empty());
  CHECK(hints_of(one_cell()).empty());
  CHECK(hints_of(language_scenario::document()).empty());
}

TEST_CASE("losses that nothing learns from") {
  check_cases(
      one_cell(),
      {{R"({"loss": {"aux": 0.1}, "model": {"kind": "dense", "width": 4, "depth": 2}})",
        "loss.aux: given, but nothing learns from it: the model has no router",
        R"({"model": {"kind": "moe", "width": null, "depth": null}})"},
       {R"({"loss": {"aux": 0.1}, "model": {"router": {"trainable": false}}})",
        "loss.aux: given, but nothing learns from it: no router learns by gradient",
        R"({"model": {"router": {"trainable": true}}})"},
       {R"({"loss": {"z": 0.1}, "model": {"router": {"kind": "hash"}}})",
        "loss.z: given, but nothing learns from it: no router learns by gradient",
        R"({"model": {"layers": 2}})"},
       {R"({"loss": {"load": 0.1}, "model": {"gating": {"train": {"kind": "noisy_topk", "k": 3}}}})",
        "loss.load: given, but nothing learns from it: every expert is selected",
        R"({"model": {"gating": {"train": {"k": 2}}}})"},
       {R"({"loss": {"orthogonality": 0.1}, "model": {"gating": {"train": {"kind": "topk", "k": 2}}},
            "train": {"optimizer": "minimum_norm"}})",
        "loss.orthogonality: given, but nothing learns from it: train.optimizer \"minimum_norm\" moves "
        "experts",
        R"({"train": {"optimizer": "sgd"}})"},
       {R"({"loss": {"aux": 0.1, "aux_group": 2}})",
        "loss.aux_group: given, but nothing reads it: neither loss.aux_sequence nor loss.aux_mixed is given",
        R"({"metrics": ["task", "auxiliary_losses"]})"}});
}

TEST_CASE("fields of mixtures, gatings and widths that nothing reads") {
  const char* const mixture = R"({"model": {"kind": "moe", "width": null, "depth": null}})";
  check_cases(
      one_cell(),
      {{R"({"model": {"kind": "dense", "width": 4, "depth": 2}})",
        "model.experts: given, but nothing reads it: the model has no mixture", mixture},
       {R"({"model": {"kind": "dense", "width": 4, "depth": 2}})",
        "model.router: given, but nothing reads it: the model has no mixture", mixture},
       {R"({"model": {"kind": "dense", "width": 4, "depth": 2, "gating": {"train": {"kind": "topk", "k": 2}}}})",
        "model.gating: given, but nothing reads it: the model has no mixture", mixture},
       {R"({"model": {"kind": "dense", "width": 4, "depth": 2, "layers": 2}})",
        "model.layers: given, but nothing reads it: model.depth is the depth", mixture},
       {R"({"model": {"gating": {"train": {"kind": "topk", "k": 3}, "balance_rate": 0.1}}})",
        "model.gating.balance_rate: given, but nothing reads it: every expert is selected",
        R"({"model": {"gating": {"train": {"k": 2}}}})"},
       {R"({"model": {"gating": {"train": {"kind": "sigmoid"}, "balance_rate": 0.1}}})",
        "model.gating.balance_rate: given, but nothing reads it: model.gating.train \"sigmoid\" selects",
        R"({"model": {"gating": {"train": {"k": 2}}}})"},
       {R"({"model": {"router": {"kind": "random"}, "gating": {"jitter": 0.1}}})",
        "model.gating.jitter: given, but nothing reads it: model.router \"random\" does not read the rows",
        R"({"model": {"router": {"kind": "linear"}}})"},
       {R"({"model": {"gating": {"train": {"kind": "soft_slots", "slots": 1, "init_scale": 2}}}})",
        "model.gating.train.init_scale: given, but nothing reads it",
        R"({"model": {"gating": {"train": {"slots": 2}}}})"},
       {R"({"model": {"gating": {"train": {"kind": "noisy_topk", "k": 2, "noise": "uniform",
                                           "noise_per": "sequence"}}}})",
        "model.gating.train.noise_per: given, but nothing reads it: each sample has a single row",
        R"({"data": {"generator": "task_pool", "train_samples": 20, "test_samples": 30}})"},
       {R"({"model": {"router": {"kind": "mlp", "depth": 1, "width": 8}}})",
        "model.router.width: given, but nothing reads it: at depth 1",
        R"({"model": {"router": {"depth": 2}}})"},
       {R"({"model": {"expert": {"kind": "mlp", "depth": 1, "width": 8}}})",
        "model.expert.width: given, but nothing reads it: at depth 1",
        R"({"model": {"expert": {"depth": 2}}})"}});
}

TEST_CASE("adaptive clustering without cluster weights, and its fields for other weights") {
  check_cases(
      one_cell(),
      {{R"({"model": {"router": {"kind": "adaptive_clustering"}}})",
        "model.router: got \"adaptive_clustering\", but no layer has its cluster weights",
        R"({"model": {"layers": 2}})"},
       {R"({"model": {"layers": 2, "router": {"kind": "adaptive_clustering", "lambda": 0.5}}})",
        "model.router.lambda: given, but nothing reads it: only weights \"optimal\" have it",
        R"({"model": {"router": {"weights": "optimal"}}})"},
       {R"({"model": {"layers": 2, "router": {"kind": "adaptive_clustering", "weights": "random",
                                              "normalize": "clusters"}}})",
        "model.router.normalize: given, but nothing reads it: only weights \"inverse\" have it",
        R"({"model": {"router": {"weights": "inverse"}}})"},
       {R"({"model": {"layers": 2, "router": {"kind": "adaptive_clustering", "weights": "optimal", "guard": 0.1}}})",
        "model.router.guard: given, but nothing reads it: only weights \"inverse\" have it",
        R"({"model": {"router": {"weights": "inverse"}}})"},
       {R"({"model": {"layers": 2, "router": {"kind": "adaptive_clustering", "weights": "optimal", "clip": 2}}})",
        "model.router.clip: given, but nothing reads it: only weights \"inverse\" have it",
        R"({"model": {"router": {"weights": "inverse"}}})"}});
}

TEST_CASE("kinds that move from step to step under a fit without steps") {
  Json fit = one_cell();
  fit["train"] = Json::parse(R"({"optimizer": "lbfgs", "steps": 4, "precision": "double"})");
  const char* const steps = R"({"train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 10}})";
  check_cases(
      fit,
      {{R"({"model": {"gating": {"train": {"kind": "relu", "k": 2}}}})",
        "model.gating.train: got \"relu\", but train.optimizer \"lbfgs\" takes no training steps", steps},
       {R"({"model": {"gating": {"train": {"kind": "dense_to_sparse"}}}})",
        "model.gating.train: got \"dense_to_sparse\", but train.optimizer \"lbfgs\" takes no training steps",
        steps},
       {R"({"model": {"router": {"kind": "similarity_aware", "tau_end": 0.1}}})",
        "model.router: got \"similarity_aware\", but train.optimizer \"lbfgs\" takes no training steps",
        steps},
       {R"({"model": {"router": {"kind": "nearest_centroid"}}})",
        "model.router: got \"nearest_centroid\", but train.optimizer \"lbfgs\" takes no training steps",
        steps},
       {R"({"model": {"router": {"kind": "random", "draws": "redrawn"}}})",
        "model.router: got \"random\", but train.optimizer \"lbfgs\" takes no training steps", steps},
       {R"({"model": {"layers": 2, "router": {"kind": "adaptive_clustering", "statistics": "frozen"}}})",
        "model.router: got \"adaptive_clustering\", but train.optimizer \"lbfgs\" takes no training steps",
        steps},
       {R"({"model": {"router": {"kind": "stable"}}})",
        "model.router: got \"stable\", but train.optimizer \"lbfgs\" takes no training steps", steps}});
}

TEST_CASE("fields of training that nothing reads") {
  check_cases(
      one_cell(),
      {{R"({"train": {"optimizer": "minimum_norm", "weight_decay": 0.1}})",
        "train.weight_decay: given for experts, but nothing reads it", R"({"train": {"optimizer": "sgd"}})"},
       {R"({"train": {"optimizer": "minimum_norm", "weight_decay": 0.1}})",
        "train.weight_decay: given for experts, but nothing reads it", R"({"model": {"layers": 2}})"},
       {R"({"train": {"optimizer": "minimum_norm", "expert_norm": "whole"},
                    "model": {"expert": {"kind": "mlp", "depth": 2, "width": 4}}})",
        "train.expert_norm: given, but nothing reads it: train.optimizer \"minimum_norm\"",
        R"({"train": {"optimizer": "sgd"}})"},
       {R"({"train": {"expert_norm": "whole"}, "model": {"kind": "dense", "width": 4, "depth": 2,
                              "expert": {"kind": "mlp", "depth": 2, "width": 4}}})",
        "train.expert_norm: given, but nothing reads it: the model has no experts",
        R"({"model": {"kind": "moe", "width": null, "depth": null}})"},
       {R"({"train": {"schedule": {"kind": "cosine", "warmup_steps": 4}}})",
        "train.schedule.warmup_steps: got 4, but training has 4 steps, so all of it is warm-up",
        R"({"train": {"steps": 40}})"}});
}

TEST_CASE("fields of data, and groups of metrics without a value") {
  const char* const flat = R"({"data": {"hierarchy": null, "clusters": 3}})";
  check_cases(
      one_cell(),
      {{R"({"data": {"clusters": null, "hierarchy": {"branching": 2, "depth": 2, "std_per_level": 1}}})",
        "data.mean_std: given, but nothing reads it: data.hierarchy draws the means", flat},
       {R"({"data": {"spurious_law": "laplace"}})",
        "data.spurious_law: given, but nothing reads it: data.spurious_dims is 0",
        R"({"data": {"spurious_dims": 2}})"},
       {R"({"data": {"generator": "task_pool", "signal": "none", "signal_norm": 2, "train_samples": 20,
                     "test_samples": 30}})",
        "data.signal_norm: given, but nothing reads it: data.signal is \"none\"",
        R"({"data": {"signal": "parallel"}})"},
       {R"({"data": {"generator": "task_pool", "signal": "none", "signal_scale": 2, "train_samples": 20,
                     "test_samples": 30}})",
        "data.signal_scale: given, but nothing reads it: data.signal is \"none\"",
        R"({"evaluations": {"signals": {"data.signal": "parallel"}}})"},
       {R"({"metrics": ["task", "levels"]})", "metrics: \"levels\" is given, but it has no value in any cell",
        R"({"data": {"clusters": null, "hierarchy": {"branching": 2, "depth": 2, "std_per_level": 1}}})"}});
}

TEST_CASE("fields of transformers that nothing reads") {
  check_cases(language_scenario::document(),
              {{R"({"model": {"moe_layers": "all", "expert": {"kind": "mlp", "depth": 2, "width": 8}}})",
                "model.feed_forward: given, but nothing reads it: every layer has a mixture",
                R"({"model": {"moe_layers": "alternate"}})"},
               {R"({"loss": {"load": 0.1}})",
                "loss.load: given, but nothing learns from it: model.gating.train has no learned noise",
                R"({"model": {"gating": {"train": {"kind": "noisy_topk", "k": 2}}}})"},
               {R"({"loss": {"aux": 0.1}, "model": {"moe_layers": []}})",
                "loss.aux: given, but nothing learns from it: the model has no router",
                R"({"model": {"moe_layers": "all"}})"},
               {R"({"loss": {"aux_group": 2}})", "loss.aux_group: given, but nothing reads it",
                R"({"loss": {"aux_sequence": 0.1}})"},
               {R"({"train": {"steps": 8}})", "train.schedule.warmup_steps: got 10, but training has 8 steps",
                R"({"train": {"steps": 80}})"}});
}

TEST_CASE("a field that one arm, one sweep point or one phase reads has no note") {
  Json scenario = changed(
      one_cell(),
      R"({"model": {"gating": {"jitter": 0.1}}, "arms": {"drawn": {"model.router": {"kind": "random"}}}})");
  CHECK(has(hints_of(scenario), "model.gating.jitter: given"));
  scenario["arms"]["linear"] = Json::object();
  CHECK(hints_of(scenario).empty());

  Json swept = changed(
      one_cell(),
      R"({"model": {"gating": {"train": {"kind": "topk", "k": 3}, "balance_rate": 0.1}}, "sweep": {"model.experts": [3]}})");
  CHECK(has(hints_of(swept), "model.gating.balance_rate: given"));
  swept["sweep"]["model.experts"] = {3, 4};
  CHECK(hints_of(swept).empty());

  Json phased = changed(one_cell(), R"({"train": {"schedule": {"kind": "cosine", "warmup_steps": 4}}})");
  phased["phases"] = Json::parse(R"([{"name": "short"}, {"name": "again"}])");
  CHECK(has(hints_of(phased), "train.schedule.warmup_steps: got 4"));
  phased["phases"][1]["train"] = {{"steps", 40}};
  CHECK(hints_of(phased).empty());
}

}  // namespace moelab::unread_fields_test
