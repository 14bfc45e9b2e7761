#include "analysis/metrics/metric_groups.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "analysis/stats/claims.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "tests/app/scenario/example.h"

namespace moelab::metric_groups_test {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN(),
                 kInfinity = std::numeric_limits<double>::infinity();

/// Of records every ten steps, for the default target of 0.1.
MetricValues steps_of(const std::vector<double>& losses) {
  std::vector<TraceEntry> trace;
  for (const double loss : losses)
    trace.push_back({10 * static_cast<std::int64_t>(trace.size()), {{"test_nmse_soft", loss}}});
  MetricValues values;
  set_steps_to_target({MetricOptions::named("convergence")}, trace, values);
  return values;
}

/// "It took fewer than 25 steps", of a cell for each list of losses.
ClaimResult judged(const std::vector<std::vector<double>>& seeds) {
  ResultTable table;
  table.arms = {"a"};
  for (const std::vector<double>& losses : seeds)
    table.rows.push_back({"", "a", static_cast<int>(table.rows.size()), {}, "done", steps_of(losses), {}});
  const Json claim = {{"id", "soon"},
                      {"left", {{"arm", "a"}, {"metric", "steps_to_target"}}},
                      {"op", "<"},
                      {"right", {{"value", 25}}},
                      {"at", "each"}};
  return evaluate_claims(read_claims(Json::array({claim})), table, [](const std::string&) { return false; })
      .at(0);
}

}  // namespace

TEST_CASE("metric names are distinct and found with their group") {
  const std::vector<std::string> names = metric_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      CHECK(find_metric(metric.name) == &metric);
      CHECK(group_of_metric(metric.name) == group.name);
      CHECK_FALSE(metric.help.empty());
    }
  }
}

TEST_CASE("a metric is positive or not, whatever evaluation it belongs to") {
  CHECK(find_metric("test_nmse_top1")->positive);
  CHECK(find_metric("contaminated.effective_experts")->positive);
  CHECK_FALSE(find_metric("cluster_entropy")->positive);  // zero for a router that has decided
  CHECK(find_metric("accuracy") == nullptr);
  CHECK(group_of_metric("accuracy").empty());
}

TEST_CASE("groups that cost more are measured only when they are named") {
  Json document = example_scenario();
  document.erase("metrics");
  const Json metrics = config_json(*expand_scenario(document, "", {}).cells.front().options).at("metrics");
  std::set<std::string> names;
  for (const Json& group : metrics) names.insert(group.at("kind"));
  for (const MetricGroup& group : metric_groups()) CHECK(names.contains(group.name) == group.by_default);
  CHECK_FALSE(names.contains("overlap"));
  CHECK_FALSE(names.contains("routing"));
}

TEST_CASE("labels of paths and metrics") {
  CHECK(axis_label("data.train_samples") == "training samples");
  CHECK(axis_label("contaminated.test_nmse_top1") == "test loss ÷ label variance (top-1), contaminated");
  CHECK(axis_label("noisy.silhouette_layer1") == "silhouette of experts, layer 1, noisy");
  CHECK(axis_label("steps_to_target.fast") == "steps to the target, fast");
  CHECK(axis_label("model.unheard_of") == "model.unheard_of");
  CHECK(legend_label("effective_experts_shuffled") == "shuffled");
}

TEST_CASE("steps to a target: what is not finite has reached nothing") {
  CHECK(steps_of({1, 0.05, 0.01}).at("steps_to_target") == 10);
  CHECK(steps_of({kNone, -kInfinity, kInfinity, 0.1}).at("steps_to_target") == 30);
  CHECK(steps_of({kNone, kNone}).empty());
  CHECK(steps_of({1, kNone, -kInfinity}) == MetricValues{{"steps_to_target_censored", 1}});
}

TEST_CASE("steps to a target: several entries, of any metric, from below or above, and right-censored") {
  const auto entry = [](const char* json) {
    return resolve_options<MetricOptions>(Json::parse(json), "metrics[0]");
  };
  std::vector<TraceEntry> trace;
  for (const double purity : {0.2, 0.5, 0.9})
    trace.push_back({10 * static_cast<std::int64_t>(trace.size()),
                     {{"top1_cluster_purity", purity}, {"train_loss", 1 - purity}}});
  MetricValues values;
  set_steps_to_target(
      {entry(R"({"kind": "convergence", "metric": "train_loss", "target": 0.5})"),
       entry(R"({"kind": "convergence", "name": "pure", "metric": "top1_cluster_purity", "target": 0.9,
                 "direction": "above"})"),
       entry(R"({"kind": "convergence", "name": "purer", "metric": "top1_cluster_purity", "target": 0.95,
                 "direction": "above"})"),
       entry(R"({"kind": "convergence", "name": "absent", "metric": "routing_entropy", "target": 0.95})")},
      trace, values);
  CHECK(values == MetricValues{{"steps_to_target", 10},
                               {"steps_to_target_censored", 0},
                               {"steps_to_target.pure", 20},
                               {"steps_to_target_censored.pure", 0},
                               {"steps_to_target_censored.purer", 1}});
  CHECK(find_metric("steps_to_target.pure")->positive);
  CHECK(group_of_metric("steps_to_target_censored.test_loss") == "convergence");
  CHECK(MetricKey::parse("steps_to_target.pure") ==
        MetricKey{.metric = "steps_to_target", .variant = "pure"});
}

TEST_CASE("steps to a target: a claim over losses that are not finite is not reproduced") {
  const std::vector<double> soon = {1, 0.05}, later = {1, 1, 0.05};
  CHECK(judged({soon, soon, later, soon}).verdict == Verdict::reproduced);
  const ClaimResult result = judged({soon, soon, {kNone, kNone}, soon});
  CHECK(result.verdict == Verdict::inconclusive);
  CHECK(result.points.at(0).note.find("a seed 2 has no steps_to_target") != std::string::npos);
  CHECK(judged({{kNone}, {kNone}, {kNone}, {kNone}}).verdict == Verdict::inconclusive);
}

}  // namespace moelab::metric_groups_test
