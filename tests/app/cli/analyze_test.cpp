/// `moelab analyze`: which numbers it computes from which arrays.

#include "app/cli/analyze.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "app/run/cell.h"
#include "app/scenario/scenario.h"
#include "sim/data/npy.h"
#include "tests/app/cli/analyzed_arrays.h"

namespace moelab::analyze_test {
namespace {

using namespace analyzed_arrays;

/// Sums over some hundred numbers of order 1 in double, cut differently.
constexpr double kRounding = 1e-12;

}  // namespace

TEST_CASE("analyze: probabilities alone, and what is left out for lack of which input") {
  const Arrays arrays;
  const Json answer = arrays.answer({"--probs", arrays.name("P")});
  const Json& metrics = answer.at("metrics");
  CHECK(std::abs(metrics.at("routing_entropy").get<double>() - routing_entropy(arrays.probs)) < kRounding);
  for (const char* name :
       {"expert_load_max_violation", "expert_load_max_deviation", "expert_load_std_percent",
        "routing_variance_eq42", "score_variance", "score_row_variance"}) {
    CHECK(metrics.contains(name));
  }
  const GivenArrays given{.experts = kExperts};
  std::vector<std::string> names = metric_names();
  std::erase_if(names, [&](const std::string& name) { return !applies_to(name, given); });
  CHECK(metrics.size() == names.size());
  CHECK(std::abs(metrics.at("router_margin").get<double>() - router_margin(arrays.probs).value()) <
        kRounding);
  CHECK(metrics.at("dead_experts") == dead_experts(top1_assignment(arrays.probs), kExperts).value());
  const Json& skipped = answer.at("skipped");
  CHECK(skipped.at("cluster_entropy") == "needs --labels");
  CHECK(skipped.at("effective_experts_shuffled") == "needs --labels, --inputs, --router");
  CHECK(skipped.at("silhouette") == "needs --embeddings or --inputs");
  CHECK(skipped.at("expert_output_similarity") == "needs --expert-outputs");
  CHECK(skipped.at("routing_fluctuation") ==
        "needs --previous-probs, --previous-logits or --previous-assignments");
  CHECK(skipped.at("router_norm_ratio") == "needs --router");
  CHECK(skipped.at("co_activation") == "needs --top-k above 1");
  CHECK(skipped.at("routing_divergence") == "needs --previous-probs or --previous-logits");
  CHECK(skipped.at("dispatch_entropy") == "needs --labels");
}

TEST_CASE("analyze: every metric where all arrays are given") {
  const Arrays arrays;
  const std::vector<std::string> words = {"--probs",          arrays.name("P"),
                                          "--labels",         arrays.name("C"),
                                          "--inputs",         arrays.name("X"),
                                          "--router",         arrays.name("W"),
                                          "--expert-outputs", arrays.name("O"),
                                          "--previous-probs", arrays.name("P0"),
                                          "--top-k",          "2"};
  const Json answer = arrays.answer(words);
  CHECK(answer.at("skipped").empty());
  CHECK(answer.at("intervals").empty());
  const Json& metrics = answer.at("metrics");
  const std::vector<int> labels(arrays.labels.begin(), arrays.labels.end());
  const ClusterRouting routing(arrays.probs, labels);
  CHECK(std::abs(metrics.at("cluster_entropy").get<double>() - routing.cluster_entropy()) < kRounding);
  CHECK(metrics.at("effective_experts_shuffled") > 1);
  CHECK(metrics.at("effective_experts_shuffled") < kExperts);
  const std::vector<int> top1 = top1_assignment(arrays.probs);
  CHECK(std::abs(metrics.at("expert_overlap").get<double>() - expert_overlap(arrays.inputs, top1).value()) <
        kRounding);
  CHECK(answer.at("settings").at("space") == "--inputs");
  CHECK(answer.at("settings").at("shuffles") == 20);
  CHECK(answer.at("settings").at("clusters") == 2);
  CHECK(answer.at("settings").at("router_difference").get<double>() < kRounding);
  // The scores of P0 are shifted by the same number in every column: nothing changes.
  for (const char* name : {"routing_fluctuation", "routing_fluctuation_topk", "assignment_change_share"})
    CHECK(metrics.at(name) == 0);
  for (const char* name : {"routing_saturation", "routing_ari"}) CHECK(metrics.at(name) == 1);
  CHECK(std::abs(metrics.at("routing_nmi").get<double>() - 1) < kRounding);
  CHECK(metrics.at("routing_divergence").get<double>() < kRounding);
  CHECK(std::abs(metrics.at("dispatch_entropy").get<double>() -
                 dispatch_entropy(routing.top1_table()).value()) < kRounding);
  // A metric of arrays is one whose needs all have an argument, and all of them are here.
  for (const std::string& name : metric_names()) {
    const std::vector<const Need*> all = needs_of(name);
    const bool of_arrays =
        std::all_of(all.begin(), all.end(), [](const Need* need) { return need->argument; });
    CHECK_MESSAGE(metrics.contains(name) == of_arrays, name);
  }
  const Answer text = analyze(words);
  CHECK(text.status == 0);
  CHECK(text.out.starts_with("200 rows, 5 experts, 2 to a row, 2 clusters\n"));
  CHECK_FALSE(contains(text.out, "left out"));
  for (const auto& [name, value] : metrics.items()) CHECK(contains(text.out, "\n" + name + " "));
}

/// The saved arrays of a run of the cell, and its result.
struct SavedRun {
  TemporaryFolder folder;
  CellResult result;

  explicit SavedRun(const Json& document)
      : result(run_cell(expand_scenario(document, "", {}).cells.front(), [](double) { return false; })) {
    REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
    for (const SavedArray& array : result.arrays) {
      write(array.name, array.labels.empty()
                            ? npy_bytes(array.shape, std::span<const double>(array.values))
                            : npy_bytes(array.shape, std::span<const std::int64_t>(array.labels)));
    }
  }
  std::filesystem::path file(const std::string& array) const { return folder.path() / (array + ".npy"); }
  void write(const std::string& array, const std::string& bytes) const {
    std::ofstream(file(array), std::ios::binary) << bytes;
  }
  const SavedArray& array(const std::string& name) const {
    return *std::find_if(result.arrays.begin(), result.arrays.end(),
                         [&](const SavedArray& saved) { return saved.name == name; });
  }
};

/// Two experts a row. Overlap compares all rows, as `analyze` does of few. Root seed 1, seed 0: the
/// shuffled baseline has the permutations of `analyze`.
Json saved_scenario(const char* changes) {
  Json document = Json::parse(R"({
    "name": "saved",
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 60, "test_samples": 300},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "constant"},
              "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}},
    "train": {"lr": 0.05, "batch_size": 10, "steps": 50, "record_every": 25, "precision": "double"},
    "seeds": {"root": 1, "count": 1}, "save": ["weights", "routing"]})");
  for (const MetricGroup& group : metric_groups()) {
    if (group.make_row_meter) document["metrics"].push_back(group.name);
  }
  for (Json& group : document["metrics"]) {
    if (group == "overlap") group = {{"kind", "overlap"}, {"rows", 300}};
  }
  document.merge_patch(Json::parse(changes));
  return document;
}

TEST_CASE("analyze: every group that arrays can give measures a run's arrays as the run did") {
  std::set<std::string> compared;
  const auto compare = [&](const Json& metrics, const MetricValues& run, const std::string& ending) {
    for (const auto& [key, value] : metrics.items()) {
      const std::string& metric = key;
      const auto measured = run.find(metric + ending);
      if (measured == run.end()) continue;
      CHECK_MESSAGE(std::abs(value.get<double>() - measured->second) < kRounding, metric);
      compared.insert(metric);
    }
  };

  const SavedRun whole(saved_scenario("{}")), half(saved_scenario(R"({"train": {"steps": 25}})"));
  // Constant experts answer the same to every row.
  const SavedArray& constants = whole.array("expert_output");
  std::vector<double> outputs;
  for (int row = 0; row < 300; ++row)
    outputs.insert(outputs.end(), constants.values.begin(), constants.values.end());
  whole.write("expert_outputs", npy_bytes({300, 4, 2}, std::span<const double>(outputs)));
  AnalyzedArrays arrays;
  arrays.probs = whole.file("test_probs");
  arrays.labels = whole.file("test_labels");
  arrays.inputs = whole.file("test_inputs");
  arrays.router = whole.file("router_weight");
  arrays.expert_outputs = whole.file("expert_outputs");
  arrays.previous_probs = half.file("test_probs");
  arrays.top_k = 2;
  const ArrayAnalysis one_layer = analyze_arrays(arrays);
  CHECK(one_layer.skipped.empty());
  Json metrics = one_layer.metrics;
  // How settled the routing is at step 25 is a number of that step.
  CHECK(whole.result.trace.at(1).step == 25);
  compare({{"routing_saturation", metrics.at("routing_saturation")}}, whole.result.trace.at(1).metrics, "");
  metrics.erase("routing_saturation");
  // Of a run, dead experts go by the serving expert.
  metrics.erase("dead_experts");
  compare(metrics, whole.result.metrics, "");
  AnalyzedArrays first = arrays;
  first.top_k = 1;
  compare({{"dead_experts", analyze_arrays(first).metrics.at("dead_experts")}}, whole.result.metrics, "");

  const SavedRun stack(saved_scenario(R"({"model": {"layers": 2}})"));
  AnalyzedArrays layers;
  layers.probs = stack.file("test_probs_layer1");
  layers.previous_probs = stack.file("test_probs_layer0");
  const Json of_layers = analyze_arrays(layers).metrics;
  Json changes = Json::object();
  for (const MetricGroup::Metric& metric : metrics_of_group("layers"))
    changes[metric.name] = of_layers.at(metric.name);
  compare(changes, stack.result.metrics, "_layer1");

  for (const std::string& name : metric_names()) {
    const std::vector<const Need*> all = needs_of(name);
    const bool of_arrays =
        std::all_of(all.begin(), all.end(), [](const Need* need) { return need->argument; });
    CHECK_MESSAGE(compared.contains(name) == of_arrays, name);
  }
}

}  // namespace moelab::analyze_test
