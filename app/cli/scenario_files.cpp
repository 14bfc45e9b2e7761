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

/// The scenario of `new`. Its `notes` explain the parts, since JSON has no comments. write_scenario replaces
/// @NAME@ and @SCHEMA@.
constexpr const char* kStart = R"json({
  "$schema": "@SCHEMA@",
  "name": "@NAME@",
  "title": "Does a learned router beat a frozen one?",
  "notes": [
    "These notes explain this file. Replace them with the reasons for your choices. $schema lets an editor complete and explain every field; `moelab list` explains the kinds (`moelab list routers`).",
    "data: 16 Gaussian clusters in 12 dimensions, each with its own target. train_samples is the size of the training set. All measurements use fresh test samples.",
    "model: one expert for each cluster and a linear router. Every expert is one constant vector. Training uses the soft mixture of all experts; evaluation with top1 uses the argmax expert alone.",
    "train: Adam on mini-batches for 3000 steps. The router's learning rate is ten times that of the experts.",
    "arms: variants of the experiment, each with its own values of dotted paths. frozen does not train the router. All arms have the same data and initial weights, so the comparison is paired.",
    "sweep: every arm runs at each of these values with seeds.count seeds: 2 arms x 3 values x 5 seeds = 30 cells.",
    "claims: what you expect; the program tests it over the paired seeds. figures: what the program draws. profiles: named sets of other values; --profile quick chooses one.",
    "tune: the ranges of the learning rates. `moelab tune` chooses from them in the same way for each arm, on a separate root seed.",
    "Next: change a value, `moelab validate` this file, `moelab run` it, `moelab report` the run's folder. Choose hyper-parameters on another root seed (--set seeds.root=1000) than the one that tests the claims."
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

struct NewOptions {
  std::string name;
  std::filesystem::path out;  ///< empty for <name>.json
  bool json = false;

  void bind(VerbOptions& options) {
    options.add("NAME", &name, "the scenario's name", {.required = true});
    options.add("--out", &out, "file to write (default: NAME.json)");
    bind_json(options, json);
  }
};

/// Writes a scenario to start from, and beside it the JSON Schema that it names. Refuses a file that exists.
int write_scenario(const NewOptions& options) {
  check_name(options.name, "NAME");
  const std::string place = options.out.empty() ? "NAME" : "--out";
  const std::filesystem::path file =
      options.out.empty() ? std::filesystem::path(options.name + ".json") : options.out;
  if (std::filesystem::exists(file))
    throw UserError(place, fmt::format("'{}' exists; choose another name, or remove it", file.string()));
  check_output_file(file, place);
  const std::filesystem::path schema = file.parent_path() / kSchemaFile;
  std::string text = kStart;
  fill_in(text, "@NAME@", options.name);
  fill_in(text, "@SCHEMA@", std::string("./") + kSchemaFile);
  replace_file(file, text);
  if (!std::filesystem::exists(schema)) replace_file(schema, scenario_schema());
  if (options.json) {
    print_json({{"file", file.string()}, {"schema", schema.string()}});
  } else {
    std::cout << fmt::format("{}\nrun it with: moelab run {}\n", file.string(), shell_word(file.string()));
  }
  return 0;
}

struct ValidateOptions {
  ScenarioChoice scenario;
  bool json = false;

  void bind(VerbOptions& options) {
    scenario.bind(options);
    bind_json(options, json);
  }
};

/// Checks the cells of every profile, unless a profile or settings are given: settings may suit the plain
/// scenario alone.
void check_cells_of_profiles(const ScenarioChoice& choice, const Scenario& scenario) {
  if (!choice.profile.empty() || !choice.settings.empty()) return;
  for (const std::string& name : scenario.profiles) {
    try {
      load_scenario(choice.file, name, {});
    } catch (const InvalidOption& error) {
      throw UserError(error.path(), fmt::format("{} (with --profile {})", error.message(), name));
    }
  }
}

int validate(const ValidateOptions& options) {
  const Scenario scenario = options.scenario.load();
  check_cells_of_profiles(options.scenario, scenario);
  if (options.json) {
    print_json({{"valid", true}, {"name", scenario.name}, {"cells", scenario.cells.size()}});
  } else {
    std::cout << fmt::format("valid: {}\n", counted(scenario.cells.size(), "cell"));
  }
  return 0;
}

struct SchemaOptions {
  bool json = false;  ///< changes nothing: the schema is JSON
  void bind(VerbOptions& options) { bind_json(options, json); }
};

int print_schema(const SchemaOptions&) {
  std::cout << scenario_schema();
  return 0;
}

}  // namespace

Verb new_verb() {
  return make_verb("new", "Write a small scenario to start from; its notes explain the parts", "new my_idea",
                   write_scenario);
}

Verb validate_verb() {
  return make_verb("validate", "Check every cell of a scenario and of its profiles",
                   "validate my_scenario.json", validate);
}

Verb schema_verb() {
  return make_verb("schema", "Print the JSON Schema of scenario files", "schema > moelab.schema.json",
                   print_schema);
}

}  // namespace moelab
