#include "app/cli/starting_points.h"

namespace moelab {

const std::vector<StartingPoint>& starting_points() {
  static const std::vector<StartingPoint> points = {
      {"idea", R"json({
  "$schema": "@SCHEMA@",
  "//": "Keys that begin with // are comments. They never reach a report. Remove them as you like.",
  "//": "$schema lets an editor complete and explain every field. `moelab list routers` explains the routers.",
  "name": "@NAME@",
  "title": "Does a learned router beat a frozen one?",

  "//": "data: 16 Gaussian clusters in 12 dimensions, each with its own target. All tests use fresh samples.",
  "data": {
    "generator": "gaussian_mixture",
    "clusters": 16,
    "dim": 12,
    "mean_std": 2.0,
    "target": {"kind": "constant", "dim": 4},
    "train_samples": 1280,
    "test_samples": 2000
  },

  "//": "model: one expert for each cluster. Training mixes all experts; evaluation takes the argmax expert.",
  "model": {
    "experts": 16,
    "router": {"kind": "linear"},
    "expert": {"kind": "constant"},
    "gating": {"train": "soft", "eval": "top1"}
  },

  "//": "train: Adam. The router's learning rate is ten times the experts' rate.",
  "train": {
    "optimizer": "adam",
    "lr": {"expert": 0.003, "router": 0.03},
    "batch_size": 64,
    "steps": 3000,
    "record_every": 500
  },
  "metrics": ["task", "sparsity"],

  "//": "arms: variants of the experiment. They share data and initial weights, so comparisons are paired.",
  "arms": {
    "learned": {},
    "frozen": {"model.router.trainable": false}
  },
  "//": "sweep and seeds: 2 arms x 3 values x 5 seeds = 30 cells.",
  "sweep": {"data.train_samples": [320, 1280, 5120]},
  "seeds": {"root": 1, "count": 5},

  "//": "tune: `moelab tune` chooses these rates for each arm. It uses root seed 1000, which no claim uses.",
  "tune": {
    "train.lr.expert": {"low": 0.0003, "high": 0.03},
    "train.lr.router": {"low": 0.003, "high": 0.3}
  },

  "//": "claims: what you expect. The program tests each claim over the paired seeds.",
  "claims": [
    {
      "id": "learned_beats_frozen",
      "text": "The learned router's test loss is below the frozen one's.",
      "left": {"arm": "learned", "metric": "test_nmse_top1"},
      "op": "<",
      "right": {"arm": "frozen", "metric": "test_nmse_top1"},
      "at": "each"
    },
    {
      "id": "clusters_find_experts",
      "text": "In the end fewer experts serve a cluster than after shuffling the router's columns.",
      "left": {"arm": "learned", "metric": "effective_experts"},
      "op": "<",
      "right": {"arm": "learned", "metric": "effective_experts_shuffled"},
      "at": "last"
    }
  ],
  "figures": [
    {"id": "loss", "x": "data.train_samples", "y": "test_nmse_top1", "x_scale": "log", "y_scale": "log"},
    {"id": "experts_per_cluster", "x": "step", "y": "effective_experts", "where": {"data.train_samples": 1280}}
  ],
  "//": "profiles: named sets of other values. --profile quick chooses one.",
  "profiles": {
    "quick": {"train.steps": 1000, "seeds.count": 3}
  }
}
)json"},
      {"sweep", R"json({
  "$schema": "@SCHEMA@",
  "//": "A grid of two swept paths: experts and clusters. Keys that begin with // are comments.",
  "name": "@NAME@",
  "title": "How many experts does a mixture of clusters need?",
  "data": {
    "generator": "gaussian_mixture",
    "clusters": 8,
    "dim": 12,
    "mean_std": 2.0,
    "target": {"kind": "constant", "dim": 4},
    "train_samples": 1280,
    "test_samples": 2000
  },
  "model": {"experts": 8, "router": "linear", "expert": "constant"},
  "train": {"optimizer": "adam", "lr": {"expert": 0.003, "router": 0.03}, "batch_size": 64, "steps": 3000},
  "//": "The name of a metric chooses its group: dead_experts is in the group load.",
  "metrics": ["task", "sparsity", "dead_experts"],

  "//": "Several swept paths make a grid. Paths in one \"zip\" vary together.",
  "sweep": {
    "model.experts": [4, 8, 16, 32],
    "data.clusters": [4, 8, 16]
  },
  "seeds": {"count": 5},

  "//": "A trend along a swept path. Expressions name metrics and swept paths.",
  "claims": [
    {"id": "more_experts_help", "arm": "base", "metric": "test_nmse_top1", "op": "decreases", "along": "model.experts"},
    {
      "id": "experts_find_clusters",
      "text": "Experts and clusters agree better than by chance.",
      "left": {"arm": "base", "metric": "top1_cluster_ari"},
      "op": ">",
      "right": {"value": 0.1},
      "at": "each"
    }
  ],
  "figures": [
    {"kind": "heat_map", "id": "loss", "x": "model.experts", "y": "data.clusters", "value": "test_nmse_top1"},
    {"kind": "heat_map", "id": "dead", "x": "model.experts", "y": "data.clusters", "value": "dead_experts"}
  ],
  "profiles": {"quick": {"train.steps": 500, "seeds.count": 3}}
}
)json"},
      {"balance", R"json({
  "$schema": "@SCHEMA@",
  "//": "A balance loss at three coefficients against none. Keys that begin with // are comments.",
  "name": "@NAME@",
  "title": "What does a balance loss cost?",
  "data": {
    "generator": "gaussian_mixture",
    "clusters": 8,
    "dim": 12,
    "mean_std": 2.0,
    "target": {"kind": "constant", "dim": 4},
    "train_samples": 1280,
    "test_samples": 2000
  },
  "model": {"experts": 8, "router": "linear", "expert": "constant", "gating": {"train": {"kind": "topk", "k": 2}, "eval": "top1"}},
  "train": {"optimizer": "adam", "lr": {"expert": 0.003, "router": 0.03}, "batch_size": 64, "steps": 3000},
  "metrics": ["task", "load"],

  "//": "`moelab list auxiliary_losses` explains the balance losses. Each is a field of \"loss\".",
  "//": "A template makes an arm for each value: aux_0.01, aux_0.1 and aux_1.",
  "arms": {
    "none": {},
    "aux_{c}": {"for": {"c": [0.01, 0.1, 1]}, "set": {"loss.aux": "{c}"}}
  },
  "seeds": {"count": 8},

  "//": "Each loss may need its own rate: `moelab tune` chooses one for each arm.",
  "tune": {"train.lr.router": {"low": 0.003, "high": 0.3}},
  "claims": [
    {
      "id": "aux_balances",
      "text": "With a coefficient of 0.1 the largest load is smaller than without a balance loss.",
      "left": {"arm": "aux_0.1", "metric": "expert_load_max_violation"},
      "op": "<",
      "right": {"arm": "none", "metric": "expert_load_max_violation"}
    },
    {
      "id": "aux_costs",
      "text": "With a coefficient of 1 the test loss is larger than without a balance loss.",
      "left": {"arm": "aux_1", "metric": "test_nmse_top1"},
      "op": ">",
      "right": {"arm": "none", "metric": "test_nmse_top1"}
    }
  ],
  "figures": [
    {"id": "loss", "x": "step", "y": "test_nmse_top1", "y_scale": "log"},
    {"id": "load", "x": "step", "y": "expert_load_max_violation"}
  ],
  "profiles": {"quick": {"train.steps": 500, "seeds.count": 3}}
}
)json"},
      {"language", R"json({
  "$schema": "@SCHEMA@",
  "//": "A small causal transformer on a synthetic language. Keys that begin with // are comments.",
  "name": "@NAME@",
  "title": "Do experts of a transformer find the domains of a language?",

  "//": "data: 4 domains, each a Markov chain over 40 tokens. The domain of a token is its label.",
  "data": {
    "generator": "synthetic_language",
    "domains": 4,
    "vocabulary": 40,
    "tokens": 32,
    "transitions": {"concentration": 0.15, "base": "uniform"},
    "test_samples": 200
  },
  "model": {
    "kind": "transformer",
    "width": 32,
    "layers": 2,
    "heads": 4,
    "feed_forward": 64,
    "moe_layers": [1],
    "experts": 4,
    "router": {"kind": "linear"},
    "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}
  },
  "loss": {"task": "cross_entropy", "aux": 0.01},

  "//": "train: every step draws fresh sequences (\"gradient\": \"population\"), so nothing is learned by heart.",
  "train": {
    "gradient": "population",
    "points": 16,
    "optimizer": "adamw",
    "lr": 0.01,
    "schedule": {"kind": "cosine", "warmup_steps": 50},
    "clip_norm": 1.0,
    "steps": 800,
    "record_every": 200
  },
  "metrics": ["task", {"kind": "sparsity", "shuffles": 1}, "load"],

  "//": "dense has no mixture. Its networks are as large as what one token uses of the mixture.",
  "arms": {
    "learned": {},
    "hash": {"model.router": "hash"},
    "dense": {"model.moe_layers": [], "model.match": "active"}
  },
  "seeds": {"count": 5},
  "claims": [
    {
      "id": "learned_beats_hash",
      "text": "The learned router's loss is below the loss with a hash of the token.",
      "left": {"arm": "learned", "metric": "test_loss_eval"},
      "op": "<",
      "right": {"arm": "hash", "metric": "test_loss_eval"}
    },
    {
      "id": "experts_are_domains",
      "text": "Experts agree with domains better than by chance.",
      "left": {"arm": "learned", "metric": "top1_cluster_ari"},
      "op": ">",
      "right": {"value": 0.05}
    }
  ],
  "figures": [{"id": "loss", "x": "step", "y": "test_loss_eval"}],
  "profiles": {"quick": {"train.steps": 200, "train.record_every": 100, "seeds.count": 3}}
}
)json"},
      {"router", R"json({
  "$schema": "@SCHEMA@",
  "//": "Routers against each other on the same data. Keys that begin with // are comments.",
  "name": "@NAME@",
  "title": "Which router finds the clusters?",
  "data": {
    "generator": "gaussian_mixture",
    "clusters": 8,
    "dim": 12,
    "mean_std": 2.0,
    "target": {"kind": "constant", "dim": 4},
    "train_samples": 1280,
    "test_samples": 2000
  },
  "model": {"experts": 8, "router": "linear", "expert": "constant"},
  "train": {"optimizer": "adam", "lr": {"expert": 0.003, "router": 0.03}, "batch_size": 64, "steps": 3000},
  "metrics": ["task", "sparsity", "routing"],

  "//": "`moelab list routers` has all routers; `moelab list cosine` explains the fields of one.",
  "//": "A router of your own is a formula: `moelab list formula`.",
  "arms": {
    "linear": {},
    "mlp": {"model.router": {"kind": "mlp", "width": 32}},
    "cosine": {"model.router": {"kind": "cosine"}},
    "random": {"model.router": "random"},
    "oracle": {"model.router": "oracle"}
  },
  "sweep": {"data.train_samples": [320, 1280]},
  "seeds": {"count": 5},
  "tune": {"train.lr.router": {"low": 0.003, "high": 0.3}},
  "claims": [
    {
      "id": "linear_beats_random",
      "left": {"arm": "linear", "metric": "test_nmse_top1"},
      "op": "<",
      "right": {"arm": "random", "metric": "test_nmse_top1"},
      "at": "each"
    },
    {
      "id": "cosine_finds_clusters",
      "left": {"arm": "cosine", "metric": "top1_cluster_ari"},
      "op": ">",
      "right": {"arm": "linear", "metric": "top1_cluster_ari"},
      "at": "each"
    }
  ],
  "figures": [
    {"id": "loss", "x": "data.train_samples", "y": "test_nmse_top1", "x_scale": "log", "y_scale": "log"},
    {"id": "clusters", "x": "data.train_samples", "y": "top1_cluster_ari", "x_scale": "log"}
  ],
  "profiles": {"quick": {"train.steps": 500, "seeds.count": 3}}
}
)json"},
  };
  return points;
}

}  // namespace moelab
