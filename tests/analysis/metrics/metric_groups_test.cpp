#include "analysis/metrics/metric_groups.h"

#include <doctest/doctest.h>

#include <set>

#include "app/scenario/scenario.h"
#include "tests/app/scenario/example.h"

namespace moelab::metric_groups_test {

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
  const Json metrics = expand_scenario(document, "", {}).cells.front().config.at("metrics");
  std::set<std::string> names;
  for (const Json& group : metrics) names.insert(group.at("kind"));
  for (const MetricGroup& group : metric_groups()) CHECK(names.contains(group.name) == group.by_default);
  CHECK_FALSE(names.contains("overlap"));
  CHECK_FALSE(names.contains("routing"));
}

}  // namespace moelab::metric_groups_test
