#include <fmt/format.h>

#include <iostream>

#include "app/cli/documents.h"
#include "app/cli/verbs.h"
#include "app/run/session.h"
#include "app/scenario/checks.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char* kSchemaFile = "scenario.schema.json";

/// JSON has no comments: `notes` explains the parts. @NAME@ and @SCHEMA@ stand for what is filled in.
constexpr const char* kStart = R"json({
  "$schema": "@SCHEMA@",
  "name": "@NAME@",
  "title": "Does a learned router beat a frozen one?",
  "notes": [
    "These notes are the comments of this file: replace them by how you chose what you chose. $schema lets an editor complete and explain every field; `moelab list` explains the kinds (`moelab list routers`).",
    "data: 16 Gaussian clusters in 12 dimensions, each with a target of its own. train_samples is the training set's size; measurements are on fresh test samples.",
    "model: as many experts as clusters, chosen by a linear router; every expert is one constant vector. Training weighs all experts softly, top1 asks the likeliest one alone.",
    "train: Adam on mini-batches, the router ten times faster than the experts, 3000 steps.",
    "arms: the same experiment with other values of dotted paths. frozen keeps the router as it starts. All arms see the same data and initial weights, so they are compared in pairs.",
    "sweep: every arm is run at each of these values, for seeds.count seeds: 2 arms x 3 values x 5 seeds = 30 cells.",
    "claims: what you expect, judged over the paired seeds. figures: what is drawn. profiles: other values under a name, chosen with --profile quick.",
    "tune: the ranges of the learning rates, from which `moelab tune` chooses the same way for each arm, on a root seed of its own.",
    "Next: change a value, `moelab validate` this file, `moelab run` it, `moelab report` the run's folder. Choose hyper-parameters on another root seed (--set seeds.root=1000) than the one that judges."
  ],
  "data": {
    "generator": "gaussian_mixture",
    "clusters": 16,
    "dim": 12,
    "mean_std": 2.0,
    "target": {"kind": "constant", "dim": 4},
    "train_samples": 1280,
    "test_samples": 2000
  },
  "model": {
    "experts": 16,
    "router": {"kind": "linear"},
    "expert": {"kind": "constant"},
    "gating": {"train": "soft", "eval": "top1"}
  },
  "train": {
    "optimizer": "adam",
    "lr": {"expert": 0.003, "router": 0.03},
    "batch_size": 64,
    "steps": 3000,
    "record_every": 500
  },
  "metrics": ["task", "sparsity"],
  "arms": {
    "learned": {},
    "frozen": {"model.router.trainable": false}
  },
  "sweep": {"data.train_samples": [320, 1280, 5120]},
  "seeds": {"root": 1, "count": 5},
  "tune": {
    "train.lr.expert": {"low": 0.0003, "high": 0.03},
    "train.lr.router": {"low": 0.003, "high": 0.3}
  },
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
  "profiles": {
    "quick": {"train.steps": 1000, "seeds.count": 3}
  }
}
)json";

void fill_in(std::string& text, const std::string& place, const std::string& value) {
  text.replace(text.find(place), place.size(), value);
}

/// Writes a scenario to start from, and beside it the JSON Schema that it names; refuses a file that exists.
int write_scenario(const Arguments& arguments) {
  check_name(arguments.name, "NAME");
  const std::filesystem::path file =
      arguments.out.empty() ? std::filesystem::path(arguments.name + ".json") : arguments.out;
  if (std::filesystem::exists(file))
    throw UserError(arguments.out.empty() ? "NAME" : "--out",
                    fmt::format("'{}' exists; choose another name, or remove it", file.string()));
  check_output_file(file, arguments.out.empty() ? "NAME" : "--out");
  const std::filesystem::path schema = file.parent_path() / kSchemaFile;
  std::string text = kStart;
  fill_in(text, "@NAME@", arguments.name);
  fill_in(text, "@SCHEMA@", std::string("./") + kSchemaFile);
  replace_file(file, text);
  if (!std::filesystem::exists(schema)) replace_file(schema, scenario_schema());
  if (arguments.json) {
    std::cout << json_text({{"file", file.string()}, {"schema", schema.string()}}) << '\n';
  } else {
    std::cout << fmt::format("{}\nrun it with: moelab run {}\n", file.string(), shell_word(file.string()));
  }
  return 0;
}

}  // namespace

Verb new_verb() {
  return {"new", "Write a small scenario to start from, its parts explained in its notes", "new my_idea",
          [](Arguments& arguments) -> VerbCall {
            return {{{"NAME", &arguments.name, "the scenario's name", true},
                     {"--out", &arguments.out, "file to write (default: NAME.json)"},
                     json_option(arguments)},
                    [&] { return write_scenario(arguments); }};
          }};
}

}  // namespace moelab
