#pragma once

/// Small scenarios that measure every metric group, and between them every metric.

#include "analysis/metrics/metric_groups.h"
#include "app/scenario/json.h"

namespace moelab::metric_table_test {

/// A small scenario that measures every group. `changes` is a merge patch.
inline Json scenario(const char* changes) {
  Json document = Json::parse(R"({
    "name": "table",
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 3, "mean_std": 2, "noise_std": 0.5,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 40, "test_samples": 50},
    "model": {"experts": 3, "router": "linear", "expert": "linear"},
    "train": {"optimizer": "adam", "lr": 0.01, "batch_size": 20, "steps": 4, "record_every": 2},
    "evaluations": {"noisy": {"data.contamination": {"kind": "noise", "std": 0.5}},
                    "attacked": {"data.contamination": {"kind": "spsa", "budget": 0.1, "steps": 1}}},
    "seeds": {"count": 1}})");
  for (const MetricGroup& group : metric_groups()) document["metrics"].push_back(group.name);
  // Reached at the first step.
  document["metrics"].push_back({{"kind", "convergence"},
                                 {"name", "soon"},
                                 {"metric", "test_loss_soft"},
                                 {"target", -1},
                                 {"direction", "above"}});
  for (Json& group : document["metrics"]) {
    if (group == "convergence")
      group = {{"kind", "convergence"}, {"metric", "test_loss_top1"}, {"target", 1e6}};
  }
  document.merge_patch(Json::parse(changes));
  return document;
}

struct Example {
  const char* what;
  const char* changes;
};

/// Every metric applies somewhere, and every need is missed somewhere.
inline constexpr Example kExamples[] = {
    {"a mixture on Gaussian clusters", "{}"},
    {"a dense model", R"({"model": {"kind": "dense", "match": "moe"}})"},
    {"a stack that mixes tokens, by population gradients",
     R"({"data": {"generator": "token_topics", "topics": 3, "clusters": null, "dim": 4, "noise_std": null,
                  "mean_std": null, "tokens": 3, "target": {"kind": "linear", "dim": 2}, "train_samples": null},
         "model": {"layers": 2, "router": {"kind": "similarity_aware"}, "attention": {"heads": 2},
                   "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}},
         "train": {"gradient": "population", "points": 16, "batch_size": null}})"},
    {"data of several labels, a gating that leaves rows out",
     R"({"data": {"generator": "dictionary", "clusters": null, "atoms": 6, "rank": 2, "dim": 4, "noise_std": null,
                  "mean_std": null, "target": null},
         "model": {"gating": {"train": "top1", "eval": {"kind": "expert_choice", "capacity_factor": 1}}}})"},
    {"classes",
     R"({"data": {"generator": "token_topics", "topics": 3, "clusters": null, "dim": 4, "noise_std": null,
                  "mean_std": null, "tokens": 3, "target": {"kind": "class", "dim": null, "classes": 3}},
         "loss": {"task": "cross_entropy"}})"},
    {"a mixture of the data's own form, fitted",
     R"({"data": {"generator": "moe_regression", "clusters": null, "dim": 2, "mean_std": null, "noise_std": null,
                  "target": null, "router": "linear", "expert": "linear",
                  "measure": {"kind": "drawn", "components": 2}},
         "model": {"router": {"kind": "linear", "bias": true}},
         "train": {"optimizer": "lbfgs", "lr": null, "batch_size": null, "steps": 40, "precision": "double", "record_every": null}})"},
    {"a mixture of sigmoids and a shared expert, fitted",
     R"({"data": {"generator": "moe_regression", "clusters": null, "dim": 2, "mean_std": null, "noise_std": null,
                  "target": null, "router": "linear", "expert": "linear", "gating": "sigmoid", "shared_experts": 1,
                  "measure": {"kind": "given", "gate": [[2, 0], [-2, 0]], "bias": [0, 0], "slope": [[3, 0], [-3, 0]],
                              "intercept": [2, -2], "shared_slope": [[1, 1]], "shared_intercept": [0]}},
         "model": {"router": {"kind": "linear", "bias": true}, "shared_experts": 1,
                   "gating": {"train": {"kind": "sigmoid"}, "eval": {"kind": "sigmoid"}}},
         "train": {"optimizer": "lbfgs", "lr": null, "batch_size": null, "steps": 40, "precision": "double", "record_every": null}})"},
    {"a mixture of the data's own form, fitted from many starts",
     R"({"data": {"generator": "moe_regression", "clusters": null, "dim": 2, "mean_std": null, "noise_std": null,
                  "target": null, "router": "linear", "expert": "linear",
                  "measure": {"kind": "drawn", "components": 2}},
         "model": {"router": {"kind": "linear", "bias": true}},
         "train": {"optimizer": "lbfgs", "start": {"kind": "best", "starts": 3}, "lr": null, "batch_size": null,
                   "steps": 40, "precision": "double", "record_every": null}})"},
    {"a mixture of the data's own form, fitted by a search",
     R"({"data": {"generator": "moe_regression", "clusters": null, "dim": 2, "mean_std": null, "noise_std": null,
                  "target": null, "router": "linear", "expert": "linear",
                  "measure": {"kind": "drawn", "components": 2}},
         "model": {"router": {"kind": "linear", "bias": true}},
         "train": {"optimizer": "lbfgs", "start": {"kind": "search", "starts": 3}, "lr": null, "batch_size": null,
                   "steps": 40, "precision": "double", "record_every": null}})"},
    {"Gaussian experts by maximum likelihood",
     R"({"data": {"generator": "moe_regression", "clusters": null, "dim": 2, "mean_std": null, "noise_std": null,
                  "target": null, "router": "linear", "expert": "linear",
                  "measure": {"kind": "given", "gate": [[2, 0], [-2, 0]], "bias": [0, 0], "slope": [[3, 0], [-3, 0]],
                              "intercept": [2, -2]}, "law": {"kind": "mixture", "variance": [0.1, 0.2]}},
         "model": {"router": {"kind": "linear", "bias": true}},
         "train": {"optimizer": {"kind": "lbfgs", "likelihood": {}},
                   "start": {"kind": "best", "starts": 3, "evaluations": 20}, "lr": null, "batch_size": null,
                   "steps": 40, "precision": "double", "record_every": null}})"},
    {"routers that weigh features, of two experts of three, on rows some of which are replaced",
     R"({"model": {"router": {"kind": "adaptive_clustering", "memberships": "own"},
                   "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}},
         "evaluations": {"replaced": {"data.contamination": {"kind": "replaced", "share": 0.3}}}})"},
    {"a stack whose second layer weighs features",
     R"({"model": {"layers": 2, "router": {"kind": "adaptive_clustering"}}})"},
    {"a training to a level", R"({"train": {"until": {"metric": "test_loss_soft", "below": -1}}})"},
    {"a transformer on ids of tokens",
     R"({"data": {"generator": "synthetic_language", "clusters": null, "dim": null, "mean_std": null, "noise_std": null,
                  "target": null, "domains": 2, "vocabulary": 5, "tokens": 3,
                  "facts": {"pairs": 1, "rate": 0.3}},
         "model": {"kind": "transformer", "width": 4, "heads": 2, "layers": 2, "moe_layers": [1], "expert": null},
         "loss": {"task": "cross_entropy"},
         "evaluations": {"noisy": null, "attacked": null,
                         "swapped": {"data.contamination": {"kind": "swapped", "share": 0.3}}}})"},
    {"a dense transformer on text",
     R"({"data": {"generator": "text", "clusters": null, "dim": null, "mean_std": null, "noise_std": null,
                  "target": null, "paths": [")" MOELAB_TEST_DATA R"(/CMakeLists.txt"], "tokens": 5},
         "model": {"kind": "transformer", "width": 4, "heads": 1, "moe_layers": [], "experts": null, "router": null,
                   "expert": null},
         "loss": {"task": "cross_entropy"}, "evaluations": {"noisy": null, "attacked": null}})"},
    {"patches with centres, filters as experts",
     R"({"data": {"generator": "patches", "clusters": null, "dim": 8, "mean_std": null, "noise_std": null,
                  "target": null, "patches": 4, "law": {"kind": "feature_noise", "clusters": 3}},
         "model": {"router": {"kind": "sequence_mean", "sum": true}, "expert": {"kind": "filters", "filters": 2}},
         "loss": {"task": "double_softmax"}})"},
    {"patches that their class owns, chosen by experts",
     R"({"data": {"generator": "patches", "clusters": null, "dim": 8, "mean_std": null, "noise_std": null,
                  "target": null, "patches": 4, "law": {"kind": "own_patch", "patterns": 3}},
         "model": {"expert": {"kind": "filters", "filters": 2},
                   "gating": {"train": {"kind": "patch_choice", "patches": 1},
                              "eval": {"kind": "patch_choice", "patches": 1}}},
         "loss": {"task": "cross_entropy"}})"},
    {"clusters on a tree of all levels",
     R"({"data": {"clusters": null, "mean_std": null,
                  "hierarchy": {"depth": 8, "branching": 2, "std_per_level": 1}}})"},
    {"linear tasks in sequence",
     R"({"data": {"generator": "task_pool", "clusters": null, "tasks": 3, "groups": 3, "dim": 4, "rows": 3,
                  "mean_std": null, "target": null, "train_samples": null},
         "model": {"experts": 8, "expert": {"kind": "linear", "bias": false},
                   "gating": {"train": {"kind": "sequence_top1", "noise": 1, "termination": {"gap": 0.1}},
                              "eval": "sequence_top1"}},
         "train": {"gradient": "population", "points": 1, "batch_size": null, "rounds": {"order": "cycle"}}})"},
    {"clusters of single-index models",
     R"({"data": {"generator": "single_index", "clusters": 2, "dim": 6, "mean_std": null, "target": null},
         "model": {"expert": {"kind": "neurons", "width": 2}}})"},
    {"a router that is no matrix, experts of limited capacity",
     R"({"model": {"router": {"kind": "mlp"},
                   "gating": {"train": "top1", "eval": {"kind": "top1", "capacity_factor": 0.5}}}})"},
};

}  // namespace moelab::metric_table_test
