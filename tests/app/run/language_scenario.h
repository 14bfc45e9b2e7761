#pragma once

/// A small language model, as a scenario and run.

#include <doctest/doctest.h>

#include <string>

#include "app/run/cell.h"
#include "app/scenario/scenario.h"

namespace moelab::language_scenario {

constexpr int kTest = 60, kTokens = 12, kExperts = 4;

inline Json document() {
  return Json::parse(R"({
    "name": "language",
    "data": {"generator": "synthetic_language", "domains": 2, "vocabulary": 8, "tokens": 12, "test_samples": 60},
    "model": {"kind": "transformer", "width": 16, "layers": 2, "heads": 2, "feed_forward": 16,
              "moe_layers": [1], "experts": 4, "router": "linear",
              "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}},
    "loss": {"task": "cross_entropy"},
    "train": {"gradient": "population", "points": 16, "optimizer": "adamw", "lr": 0.01, "clip_norm": 1, "steps": 150,
              "schedule": {"kind": "cosine", "warmup_steps": 10}},
    "metrics": ["task", "sparsity"], "save": ["routing", "weights"], "seeds": {"count": 1}})");
}

inline CellResult run(const Json& scenario) {
  CellResult result = run_cell(expand_scenario(scenario, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result;
}

inline const SavedArray& array_of(const CellResult& result, std::string_view name) {
  for (const SavedArray& array : result.arrays) {
    if (array.name == name) return array;
  }
  FAIL("no array " << name);
  return result.arrays.front();
}

}  // namespace moelab::language_scenario
