/// Measuring changes nothing. The defect that this guards against: a gradient of the training loss taken for
/// a metric (the group "gradient"), or a forward pass of an evaluation, an attack or an array that is saved,
/// moves the biases of loss-free balancing or the statistics of a router as a training step does, so that a
/// run that is measured ends at another model than one that is not.

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <map>

#include "app/run/cell.h"
#include "app/scenario/cells.h"
#include "app/scenario/schema.h"

namespace moelab::measuring_test {
namespace {

constexpr int kExperts = 4;

DataOptions data_from(const char* text) {
  return resolve_options<DataOptions>(Json::parse(text), "data");
}

ModelOptions model_from(const char* text) {
  return resolve_options<ModelOptions>(Json::parse(text), "model");
}

const DataOptions& sequences() {
  static const DataOptions data = data_from(R"({"generator": "token_topics", "topics": 4, "dim": 5,
      "tokens": 4, "target": {"kind": "linear", "dim": 2}, "train_samples": 40, "test_samples": 30})");
  return data;
}

/// A short run by sample gradients or, with `population`, by gradients of rules for the population.
CellOptions short_cell(const ModelOptions& model, const DataOptions& data, bool population) {
  CellOptions cell{{data, model, {}, {}}, {}, {"weights"}, {}, {3, 1}};
  TrainOptions& train = cell.experiment.train;
  train.lr = 0.01;
  train.steps = 6;
  train.record_every = 2;
  if (population) {
    train.gradient = TrainOptions::Gradient::population;
    train.points = 16;
    train.precision = TrainOptions::Precision::in_double;
    cell.experiment.data.train_samples.reset();
  } else {
    train.batch_size = 8;
  }
  return cell;
}

CellOptions with_metrics(CellOptions cell, const std::vector<std::string>& groups) {
  for (const std::string& group : groups) cell.metrics.push_back(MetricOptions::named(group));
  return cell;
}

std::vector<std::string> all_groups() {
  return names_of(metric_groups());
}

/// Every group of metrics, noise, an attack, and every array.
CellOptions measured(const CellOptions& cell) {
  CellOptions full = with_metrics(cell, all_groups());
  full.saved = {"weights", "routing"};
  for (const char* contamination :
       {R"({"kind": "noise", "std": 0.5})", R"({"kind": "pgd", "budget": 0.3, "steps": 2})",
        R"({"kind": "spsa", "budget": 0.3, "steps": 2, "directions": 2})"}) {
    DataOptions changed = cell.experiment.data;
    changed.contamination = resolve_options<ContaminationOptions>(Json::parse(contamination), "");
    full.evaluations.emplace_back(changed.contamination.chosen(), changed);
  }
  return full;
}

CellResult run(const CellOptions& cell) {
  CellResult result = run_experiment(cell, [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result;
}

bool same_bits(const std::vector<double>& left, const std::vector<double>& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(double)) == 0;
}

/// Parameters and state at the end, by name.
std::map<std::string, std::vector<double>> weights_of(const CellResult& result) {
  std::map<std::string, std::vector<double>> weights;
  for (const SavedArray& array : result.arrays) {
    if (!array.name.starts_with("test_")) weights[array.name] = array.values;
  }
  return weights;
}

void check_same_model(const CellResult& measured, const CellResult& plain) {
  const auto left = weights_of(measured), right = weights_of(plain);
  REQUIRE(left.size() == right.size());
  for (const auto& [key, values] : right) {
    const auto& name = key;
    CHECK_MESSAGE(same_bits(left.at(name), values), name);
  }
}

/// The cell's own metrics of those groups, of every record.
std::vector<MetricValues> metrics_of(const CellResult& result,
                                     const std::function<bool(const std::string&)>& is_wanted) {
  std::vector<MetricValues> all;
  for (const TraceEntry& entry : result.trace) {
    MetricValues& own = all.emplace_back();
    for (const auto& [name, value] : entry.metrics) {
      if (name.find('.') == std::string::npos && is_wanted(group_of_metric(name))) own[name] = value;
    }
  }
  return all;
}

void check_same_metrics(const std::vector<MetricValues>& left, const std::vector<MetricValues>& right) {
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    REQUIRE(left[i].size() == right[i].size());
    for (const auto& [key, value] : left[i]) {
      const auto& name = key;
      REQUIRE_MESSAGE(right[i].contains(name), name);
      CHECK_MESSAGE(same_bits({value}, {right[i].at(name)}), name);
    }
  }
}

struct Example {
  std::string name;
  ModelOptions model;
  DataOptions data;
  const char* state;  ///< the beginning of the name of an array that training moves beside the parameters
};

/// Models whose training moves more than the parameters, or whose layers look at each other.
std::vector<Example> examples() {
  const char* const balanced = R"({"experts": 4, "router": "linear", "expert": {"kind": "mlp", "depth": 2,
      "width": 3}, "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2},
      "balance_rate": 0.05}})";
  const char* const adaptive = R"({"layers": 3, "experts": 4,
      "router": {"kind": "adaptive_clustering", "statistics": "frozen"}, "expert": "linear",
      "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}})";
  const char* const stable = R"({"experts": 4, "router": {"kind": "stable", "distil_share": 0.5},
      "expert": "linear", "gating": {"train": {"kind": "topk", "k": 2}}})";
  const char* const threshold = R"({"experts": 4, "router": "linear", "expert": "constant",
      "gating": {"train": {"kind": "topp", "p": 0.1, "learnable": true}, "eval": "soft"}})";
  const char* const attention = R"({"layers": 2, "experts": 4, "attention": {"heads": 2},
      "router": {"kind": "similarity_aware", "tau": 1.0, "tau_end": 0.2}, "expert": "linear",
      "gating": {"train": {"kind": "topk", "k": 2}, "eval": "top1", "balance_rate": 0.05}})";
  const char* const ridge =
      R"({"experts": 4, "router": {"kind": "linear", "bias": true}, "expert": "linear"})";
  const DataOptions regression = data_from(R"({"generator": "moe_regression", "dim": 2, "router": "linear",
      "expert": "linear", "measure": {"kind": "drawn", "components": 2}, "train_samples": 40,
      "test_samples": 30})");
  return {{"selection biases", model_from(balanced), sequences(), "selection_bias"},
          {"frozen statistics in a stack", model_from(adaptive), sequences(), ""},
          {"a router that is distilled", model_from(stable), sequences(), ""},
          {"a threshold that is learned", model_from(threshold), sequences(), ""},
          {"attention and mixing tokens", model_from(attention), sequences(), "selection_bias"},
          {"a mixture with a true measure", model_from(ridge), regression, ""}};
}

}  // namespace

TEST_CASE("a run that measures everything ends at the same parameters, state and metrics, to the last bit") {
  for (const Example& example : examples()) {
    for (const bool population : {false, true}) {
      CAPTURE(example.name);
      CAPTURE(population);
      const CellOptions cell = short_cell(example.model, example.data, population);
      const CellResult plain = run(cell), full = run(measured(cell));
      check_same_model(full, plain);
      CHECK(full.metrics.size() > 100);
      const std::string state = example.state;
      for (const auto& [key, values] : weights_of(plain)) {
        const auto& name = key;
        if (state.empty() || !name.starts_with(state)) continue;
        CHECK_MESSAGE(std::any_of(values.begin(), values.end(), [](double value) { return value != 0; }),
                      name);  // there is something to be moved
      }
    }
  }
}

TEST_CASE("each group of metrics alone gives what it gives among all, at every record") {
  for (const Example& example : examples()) {
    CAPTURE(example.name);
    const CellOptions cell = short_cell(example.model, example.data, true);
    const CellResult full = run(measured(cell));
    for (const MetricGroup& group : metric_groups()) {
      CAPTURE(group.name);
      if (!group.make_row_meter && !group.make_model_meter)
        continue;  // of other groups' metrics, or of the run as a whole
      const CellResult alone = run(with_metrics(cell, {group.name}));
      check_same_model(alone, full);
      for (const auto& [key, value] : alone.metrics) {
        const auto& name = key;
        CHECK_MESSAGE(group_of_metric(name) == group.name, name);
        CHECK_MESSAGE(
            MetricKey::parse(name).layer.has_value() == (group.of_layers && example.model.layers > 1), name);
      }
      const auto is_wanted = [&](const std::string& name) { return name == group.name; };
      check_same_metrics(metrics_of(alone, is_wanted), metrics_of(full, is_wanted));
    }
  }
}

TEST_CASE("a run of any router is not changed by measuring it") {
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    ModelOptions model;
    model.experts = kExperts;
    model.router = RouterOptions::example(kind.name);
    model.expert = ExpertOptions::named("linear");
    model.gating.train = TopKGatingOptions{.k = 2};
    model.gating.eval = TopKGatingOptions{.k = 2};
    model.gating.balance_rate = 0.05;
    DataOptions data = sequences();
    if (kind.needs_image) {
      data = data_from(R"({"generator": "image_clusters", "classes": 3, "size": 8, "vector_dim": 4,
          "train_samples": 40, "test_samples": 30})");
    } else {
      model.layers = 2;
    }
    if (kind.needs_attention) model.attention = AttentionOptions{.heads = 2};
    const CellOptions cell = short_cell(model, data, true);
    check_same_model(run(measured(cell)), run(cell));
  }
}

}  // namespace moelab::measuring_test
