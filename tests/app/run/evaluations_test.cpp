/// What a scenario says of its layers, evaluations and targets, from the document to the metrics of a cell.

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "app/run/cell.h"
#include "app/store/export.h"

namespace moelab::evaluations_test {
namespace {

constexpr int kLayers = 2;
const char* const kTarget = "test_loss_eval";

/// Two layers behind adaptive clustering routers whose statistics evaluations must not disturb.
Json document(const Json& evaluations) {
  Json scenario = Json::parse(R"({
    "name": "evaluated",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 4, "mean_std": 2,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 400, "test_samples": 300},
    "model": {"layers": 2, "experts": 4, "router": {"kind": "adaptive_clustering", "statistics": "frozen"},
              "expert": {"kind": "mlp", "depth": 2, "width": 6},
              "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}},
    "train": {"optimizer": "adam", "lr": 0.01, "batch_size": 32, "steps": 200, "record_every": 50,
              "precision": "double"},
    "metrics": ["task", "load", "layers", "layer_loads"],
    "seeds": {"count": 1}})");
  scenario["evaluations"] = evaluations;
  return scenario;
}

Json contaminated(const Json& contamination) {
  return {{"data.contamination", contamination}};
}

CellResult run(const Json& scenario) {
  CellResult result = run_cell(expand_scenario(scenario, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result;
}

CellResult run_with(const Json& evaluations) {
  return run(document(evaluations));
}

/// The metrics of an evaluation by their bare names; "" for the main ones.
MetricValues metrics_of(const MetricValues& all, const std::string& evaluation) {
  MetricValues own;
  for (const auto& [name, value] : all) {
    const std::size_t dot = name.find('.');
    const std::string prefix = dot == std::string::npos ? "" : name.substr(0, dot);
    if (prefix == evaluation) own[dot == std::string::npos ? name : name.substr(dot + 1)] = value;
  }
  return own;
}

}  // namespace

TEST_CASE("an evaluation that changes nothing measures the same, and none changes the training") {
  const CellResult alone = run_with(Json::object());
  const CellResult evaluated =
      run_with({{"same", Json::object()},
                {"harmless", contaminated({{"kind", "fgsm"}, {"budget", 0}})},
                {"other", {{"data.test_samples", 100}}},
                {"pgd", contaminated({{"kind", "pgd"}, {"budget", 0.5}, {"steps", 3}})},
                {"spsa", contaminated({{"kind", "spsa"}, {"budget", 0.5}, {"steps", 2}})}});
  CHECK(metrics_of(evaluated.metrics, "") == alone.metrics);
  MetricValues of_test_data = alone.metrics;
  for (const char* name : {"train_loss", "train_nmse", "train_nmse_top1", "parameter_count"}) {
    CHECK_MESSAGE(of_test_data.erase(name) == 1, name);
  }
  CHECK(of_test_data.contains("router_instability_layer1"));
  REQUIRE(evaluated.trace.size() == 5);
  for (std::size_t i = 0; i < evaluated.trace.size(); ++i) {
    CHECK(metrics_of(evaluated.trace[i].metrics, "") == alone.trace[i].metrics);
  }
  for (const char* name : {"same", "harmless"}) {
    CHECK_MESSAGE(metrics_of(evaluated.metrics, name) == of_test_data, name);
  }
  for (const char* name : {"other", "pgd", "spsa"}) {
    const MetricValues changed = metrics_of(evaluated.metrics, name);
    CHECK_MESSAGE(changed.size() == of_test_data.size(), name);
    CHECK_MESSAGE(changed.at(kTarget) != of_test_data.at(kTarget), name);
  }
}

TEST_CASE("contamination worsens the loss, more of it more, and exact gradients do better than random ones") {
  const MetricValues metrics = run_with({{"noise", contaminated({{"kind", "noise"}, {"std", 1}})},
                                         {"more_noise", contaminated({{"kind", "noise"}, {"std", 3}})},
                                         {"replaced", contaminated({{"kind", "replaced"}, {"share", 0.2}})},
                                         {"fgsm", contaminated({{"kind", "fgsm"}, {"budget", 0.5}})},
                                         {"signs", contaminated({{"kind", "noise"}, {"std", 0.5}})}})
                                   .metrics;
  const auto loss = [&](const std::string& evaluation) { return metrics.at(evaluation + "." + kTarget); };
  // Far beyond what 300 test rows leave to chance: the rows are the same, only moved.
  CHECK(loss("noise") > 1.1 * metrics.at(kTarget));
  CHECK(loss("more_noise") > 1.1 * loss("noise"));
  CHECK(loss("replaced") > 1.1 * metrics.at(kTarget));
  CHECK(loss("fgsm") > loss("signs"));
}

TEST_CASE(
    "steps_to_target is the first recorded step at or below the target, right-censored if there is none") {
  const auto with_target = [](double target) {
    Json scenario = document(Json::object());
    scenario["metrics"].push_back({{"kind", "convergence"}, {"metric", kTarget}, {"target", target}});
    return run(scenario);
  };
  const CellResult never = with_target(0);
  CHECK_FALSE(never.metrics.contains("steps_to_target"));
  CHECK(never.metrics.at("steps_to_target_censored") == 1);
  std::set<std::int64_t> reached;
  for (const TraceEntry& aimed : never.trace) {
    const double target = aimed.metrics.at(kTarget);
    const CellResult result = with_target(target);
    std::int64_t first = -1;
    for (const TraceEntry& entry : never.trace) {
      if (first < 0 && entry.metrics.at(kTarget) <= target) first = entry.step;
    }
    CHECK(result.metrics.at("steps_to_target") == static_cast<double>(first));
    CHECK(result.metrics.at("steps_to_target_censored") == 0);
    CHECK_FALSE(result.trace.back().metrics.contains("steps_to_target_layer0"));
    reached.insert(first);
  }
  CHECK(reached.size() > 2);  // not one step for every target
}

TEST_CASE("the balance of a stack is the mean and the spread of its layers' balance") {
  const MetricValues metrics = run_with(Json::object()).metrics;
  const double first = metrics.at("expert_load_std_percent_layer0"),
               second = metrics.at("expert_load_std_percent_layer1");
  CHECK(first != second);
  CHECK(metrics.at("expert_load_std_percent_mean") == doctest::Approx((first + second) / 2));
  CHECK(metrics.at("expert_load_std_percent_spread") == doctest::Approx(std::abs(first - second) / 2));
}

TEST_CASE("an exported trace has a row for each step and layer") {
  const CellResult result = run_with({{"noise", contaminated({{"kind", "noise"}, {"std", 1}})}});
  RunResults results;
  results.table.arms = {"base"};
  results.table.rows = {{"id", "base", 0, {}, "done", result.metrics, result.trace}};
  const ExportTable exported = export_table(results, true, {});
  REQUIRE(exported.rows.size() == kLayers * result.trace.size());
  const auto column = [&](const std::string& name) {
    const auto place = std::find(exported.columns.begin(), exported.columns.end(), name);
    REQUIRE_MESSAGE(place != exported.columns.end(), name);
    return static_cast<std::size_t>(place - exported.columns.begin());
  };
  CHECK(std::none_of(exported.columns.begin(), exported.columns.end(),
                     [](const std::string& name) { return name.find("_layer") != std::string::npos; }));
  for (std::size_t i = 0; i < exported.rows.size(); ++i) {
    const std::vector<Json>& row = exported.rows[i];
    const TraceEntry& entry = result.trace[i / kLayers];
    const int layer = static_cast<int>(i % kLayers);
    const std::string ending = "_layer" + std::to_string(layer);
    CHECK(row[column("step")] == entry.step);
    CHECK(row[column("layer")] == layer);
    CHECK(row[column(kTarget)] == entry.metrics.at(kTarget));  // of the whole model: in every row
    for (const char* name : {"expert_load_std_percent", "noise.expert_load_std_percent"}) {
      CHECK(row[column(name)] == entry.metrics.at(name + ending));
    }
    CHECK(row[column("router_instability")].is_null() == (layer == 0));
  }
}

}  // namespace moelab::evaluations_test
