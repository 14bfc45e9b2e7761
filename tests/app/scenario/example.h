#pragma once

/// The scenario that the tests of this folder start from: every part of the language, small.

#include "app/scenario/json.h"

namespace moelab {

inline Json example_scenario() {
  return Json::parse(R"({
    "name": "fig3a", "title": "Learned and frozen routers", "source": "Dikkala et al. 2023, Fig. 3a",
    "data": {"generator": "gaussian_mixture", "clusters": 64, "dim": 24, "spurious_dims": 0, "mean_std": 1.5,
             "noise_std": 1.0, "target": {"kind": "constant", "dim": 10}, "train_samples": 2560, "test_samples": 10000},
    "model": {"kind": "moe", "experts": 64, "router": {"kind": "linear", "trainable": true, "init_scale": 4.0},
              "expert": {"kind": "mlp", "depth": 3, "width": 96}, "gating": {"train": "soft", "eval": "top1"}},
    "loss": {"task": "mse"},
    "train": {"gradient": "sample", "optimizer": {"kind": "sgd", "momentum": 0.9},
              "lr": {"expert": 0.01, "router": 0.1}, "batch_size": 128, "steps": 20000, "record_every": 1000},
    "metrics": ["task", "sparsity", "router_norms"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false},
             "dense_small": {"model.kind": "dense", "model.match": "expert"},
             "dense_large": {"model.kind": "dense", "model.match": "moe"}},
    "sweep": {"data.train_samples": [640, 1280, 2560, 5120]},
    "seeds": {"root": 1, "count": 5},
    "save": ["weights", "routing"],
    "claims": [{"id": "learned_beats_frozen", "left": {"arm": "learned", "metric": "test_nmse_top1"}, "op": "<",
                "right": {"arm": "frozen", "metric": "test_nmse_top1"}, "at": "each", "source": "Fig. 3a"}],
    "figures": [{"id": "loss", "x": "data.train_samples", "y": "test_nmse_top1", "series": "arm",
                 "x_scale": "log", "y_scale": "log"}],
    "profiles": {"quick": {"train.steps": 2000, "seeds.count": 3}}
  })");
}

/// The example with the value at a JSON pointer ("/data/clusters") replaced.
inline Json example_with(const char* pointer, const char* value) {
  Json document = example_scenario();
  document[Json::json_pointer(pointer)] = Json::parse(value);
  return document;
}

}  // namespace moelab
