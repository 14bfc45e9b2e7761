#pragma once

/// A scenario whose eight cells train in milliseconds.

#include <fstream>
#include <string>

#include "app/scenario/json.h"
#include "tests/temporary_folder.h"

namespace moelab {

inline Json tiny() {
  return Json::parse(R"({
    "name": "tiny",
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 30},
    "model": {"experts": 3, "router": {"kind": "linear"}, "expert": {"kind": "constant"}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 10, "steps": 4},
    "metrics": ["task", "sparsity"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false}},
    "sweep": {"data.train_samples": [20, 40]},
    "seeds": {"root": 1, "count": 2}
  })");
}

/// tiny() with three seeds and these claims, a list as JSON.
inline Json tiny_with_claims(const char* claims) {
  Json scenario = tiny();
  scenario["seeds"]["count"] = 3;
  scenario["claims"] = Json::parse(claims);
  return scenario;
}

/// A folder with tiny.json in it.
struct Bench {
  TemporaryFolder folder;
  std::string file = (folder.path() / "tiny.json").string();
  std::string run = (folder.path() / "run").string();
  explicit Bench(const Json& scenario = tiny()) { std::ofstream(file) << scenario.dump(); }
};

}  // namespace moelab
