/// The table of metrics against what runs make: every metric that is declared has a column in some run, every
/// column is declared, and a scenario may name a metric if and only if its run has the column.

#include <doctest/doctest.h>

#include <set>

#include "analysis/metrics/measured_data.h"
#include "analysis/metrics/metric_groups.h"
#include "app/run/cell.h"
#include "app/scenario/checks.h"
#include "sim/base/error.h"
#include "tests/analysis/metrics/metric_examples.h"

namespace moelab::metric_table_test {
namespace {

/// All that could be asked of the scenario, and more: every metric of every test set and layer.
std::set<std::string> asked(const Json& document) {
  std::set<std::string> all;
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (group.of_entries) {
        for (const char* variant : {"", "soon", "late"}) {
          all.insert(MetricKey{.metric = metric.name, .variant = variant}.text());
        }
        continue;
      }
      std::vector<std::string> evaluations = {"", "unheard_of"};
      for (const auto& evaluation : document.at("evaluations").items())
        evaluations.push_back(evaluation.key());
      for (const std::string& evaluation : evaluations) {
        MetricKey key{.evaluation = evaluation, .metric = metric.name};
        all.insert(key.text());
        for (const int layer : {0, 1, 2}) {
          key.layer = layer;
          all.insert(key.text());
        }
      }
    }
  }
  return all;
}

/// Whether a scenario with this part is valid; what it says at the metric if not.
bool accepts(Json document, const char* list, const Json& part) {
  document[list] = Json::array({part});
  try {
    expand_scenario(document, "", {});
    return true;
  } catch (const UserError& error) {
    CHECK_MESSAGE(error.path().starts_with(list), error.path() << ": " << error.message());
    return false;
  }
}

/// What claims, figures and convergence ask of a cell.
bool is_measured(const MeasuredMetrics& measured, const std::string& metric) {
  try {
    measured.check(metric, "here");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

Json claim(const std::string& metric, std::size_t id = 0) {
  return {{"id", "c" + std::to_string(id)},
          {"left", {{"arm", "base"}, {"metric", metric}}},
          {"op", "<"},
          {"right", {{"value", 1}}}};
}

Json figure(const std::string& metric, std::size_t id = 0) {
  return {{"id", "f" + std::to_string(id)}, {"x", "step"}, {"y", metric}};
}

}  // namespace

TEST_CASE("metrics of the table: declared, produced and accepted are the same") {
  std::set<std::string> produced;
  for (const Example& example : kExamples) {
    CAPTURE(example.what);
    const Json document = scenario(example.changes);
    const Scenario expanded = expand_scenario(document, "", {});
    const Cell& cell = expanded.cells.front();
    const CellResult result = run_cell(cell, [](double) { return false; });
    REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
    const std::set<std::string> names = asked(document);
    const MeasuredMetrics measured(*cell.options);
    std::set<std::string> told;
    for (const std::string& name : measured.names()) told.insert(name);
    Json claims = Json::array(), figures = Json::array();
    for (const auto& [key, value] : result.metrics) {
      const auto& name = key;
      CHECK_MESSAGE(names.contains(name), name);
      CHECK(MetricKey::parse(name).text() == name);
      CHECK_MESSAGE(told.erase(name) == 1, name);
      produced.insert(MetricKey::parse(name).metric);
    }
    CHECK(told.empty());
    for (const std::string& name : names) {
      const bool is_produced = result.metrics.contains(name);
      CHECK_MESSAGE(is_measured(measured, name) == is_produced, name);
      if (!is_produced) continue;
      claims.push_back(claim(name, claims.size()));
      // Over steps: what is known at the end alone would be an empty figure.
      if (is_of_end_alone(name))
        CHECK_FALSE(accepts(document, "figures", figure(name)));
      else
        figures.push_back(figure(name, figures.size()));
    }
    Json asking = document;
    asking["claims"] = claims;
    asking["figures"] = figures;
    CHECK_NOTHROW(expand_scenario(asking, "", {}));
  }
  for (const std::string& name : metric_names()) CHECK_MESSAGE(produced.contains(name), name);
}

TEST_CASE("metrics of the table: a claim or a figure that names what no run has is refused at its place") {
  for (const char* metric :
       {"attacked.routing_fluctuation", "attacked.routing_saturation", "noisy.train_loss", "unserved_share",
        "test_accuracy_soft", "effective_experts_overall", "router_instability", "unheard_of.test_loss_soft",
        "silhouette_layer0", "fit_starts", "population_gradient_norm", "steps_to_target.late",
        "voronoi_loss"}) {
    CAPTURE(metric);
    CHECK_FALSE(accepts(scenario("{}"), "claims", claim(metric)));
    CHECK_FALSE(accepts(scenario("{}"), "figures", figure(metric)));
  }
  const Json arms =
      scenario(R"({"arms": {"mixture": {}, "dense": {"model.kind": "dense", "model.match": "moe"}}})");
  Json of_mixture = figure("routing_entropy");
  CHECK_FALSE(accepts(arms, "figures", of_mixture));
  of_mixture["arms"] = {"mixture"};
  CHECK(accepts(arms, "figures", of_mixture));
}

TEST_CASE("metrics of the table: what looks at later tokens is not held against the law of the next one") {
  const auto has_floor = [](const char* router, const char* gating) {
    Json changes = Json::parse(
        R"({"data": {"generator": "synthetic_language", "clusters": null, "dim": null, "mean_std": null,
                     "noise_std": null, "target": null, "domains": 2, "vocabulary": 5, "tokens": 3},
            "model": {"kind": "transformer", "width": 4, "heads": 2, "layers": 1, "expert": null},
            "loss": {"task": "cross_entropy"}, "evaluations": {"noisy": null, "attacked": null}})");
    changes["model"]["router"] = Json::parse(router);
    changes["model"]["gating"]["eval"] = Json::parse(gating);
    const Scenario expanded = expand_scenario(scenario(changes.dump().c_str()), "", {});
    const std::vector<std::string> names = MeasuredMetrics(*expanded.cells.front().options).names();
    return std::find(names.begin(), names.end(), "bayes_loss") != names.end();
  };
  const char* const kTop2 = R"({"kind": "topk", "k": 2})";
  CHECK(has_floor("\"linear\"", kTop2));
  CHECK_FALSE(has_floor("\"linear\"", "\"expert_choice\""));
  CHECK_FALSE(
      has_floor("\"linear\"", R"({"kind": "topk", "k": 1, "capacity_factor": 1, "drop": "probability"})"));
  CHECK_FALSE(has_floor(R"({"kind": "adaptive_clustering", "statistics": "batch"})", kTop2));
  CHECK(has_floor(R"({"kind": "adaptive_clustering", "statistics": "frozen"})", kTop2));
}

TEST_CASE("metrics of the table: convergence looks at nothing that is not recorded") {
  Json document = scenario("{}");
  const auto accepts_target = [&](const std::string& metric) {
    for (Json& group : document["metrics"]) {
      if (group.is_object() && group.contains("name")) group["metric"] = metric;
    }
    try {
      expand_scenario(document, "", {});
      return true;
    } catch (const UserError& error) {
      CHECK_MESSAGE(error.path().ends_with(".metric"), error.path());
      return false;
    }
  };
  CHECK(accepts_target("routing_saturation"));
  CHECK(accepts_target("noisy.routing_fluctuation"));
  CHECK_FALSE(accepts_target("attacked.routing_fluctuation"));
  CHECK_FALSE(accepts_target("cluster_entropy_overall"));
  CHECK_FALSE(accepts_target("steps_to_target"));
  // The group "task" is not chosen then.
  CHECK_FALSE(accepts(scenario("{}"), "metrics", {{"kind", "convergence"}, {"metric", "test_loss_soft"}}));
}

TEST_CASE("metrics of the table: rows that zeros replace are not kept") {
  const Json document = scenario(R"({"evaluations": {
      "noisy": null, "attacked": null,
      "drawn": {"data.contamination": {"kind": "replaced", "share": 0.5}},
      "zero": {"data.contamination": {"kind": "replaced", "share": 0.5, "scale": 0}}}})");
  const MetricValues values =
      run_cell(expand_scenario(document, "", {}).cells.front(), [](double) { return false; }).metrics;
  // The same rows are kept, so their loss is the same.
  CHECK(values.at("zero.test_loss_kept") == doctest::Approx(values.at("drawn.test_loss_kept")));
  CHECK(values.at("zero.test_loss_kept") != doctest::Approx(values.at("zero.test_loss_eval")));
}

TEST_CASE("metrics of the table: a claim names no step at which the metric has no value") {
  const auto accepts_at = [](const char* metric, const Json& step) {
    Json asked_claim = claim(metric);
    asked_claim["left"]["step"] = step;
    return accepts(scenario("{}"), "claims", asked_claim);
  };
  CHECK(accepts_at("routing_fluctuation", "end"));
  CHECK(accepts_at("routing_fluctuation", 2));
  CHECK_FALSE(accepts_at("routing_fluctuation", "start"));
  CHECK_FALSE(accepts_at("noisy.routing_divergence", 0));
  CHECK(accepts_at("routing_saturation", "start"));
  CHECK(accepts_at("steps_to_target.soon", "end"));
  CHECK_FALSE(accepts_at("steps_to_target.soon", 2));
}

TEST_CASE("metrics of the table: each has labels, a need that is told, and a key that is read back") {
  for (const MetricGroup& group : metric_groups()) {
    CHECK_FALSE(group.needs.empty());
    for (const MetricGroup::Metric& metric : group.metrics) {
      CAPTURE(metric.name);
      CHECK_FALSE(metric.axis_label.empty());
      CHECK_FALSE(metric.legend_label.empty());
      CHECK(axis_label(metric.name) == metric.axis_label);
      for (const Need* const need : needs_of(metric.name)) CHECK(need->what[0] != '\0');
      std::vector<MetricKey> keys = {{.metric = metric.name}};
      if (group.of_entries) {
        keys.push_back({.metric = metric.name, .variant = "a.b"});
      } else {
        keys.push_back({.evaluation = "a.b", .metric = metric.name});
        keys.push_back({.evaluation = "a", .metric = metric.name, .layer = 12});
      }
      for (const MetricKey& key : keys) CHECK(MetricKey::parse(key.text()) == key);
    }
  }
  CHECK(MetricKey::parse("silhouette_layerx") == MetricKey{.metric = "silhouette_layerx"});
  CHECK(MetricKey::parse("silhouette_layer-1").layer == std::nullopt);
  CHECK(MetricKey::parse("silhouette_layer").layer == std::nullopt);
}

}  // namespace moelab::metric_table_test
