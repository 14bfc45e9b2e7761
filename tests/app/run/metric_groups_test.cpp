#include "app/run/metric_groups.h"

#include <doctest/doctest.h>

#include <set>

namespace moelab {

TEST_CASE("metric names are distinct and found with their group") {
  const std::vector<std::string> names = metric_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      CHECK(find_metric(metric.name) == &metric);
      CHECK(group_of_metric(metric.name) == group.kind.name);
      CHECK_FALSE(metric.help.empty());
    }
  }
  CHECK(metric_kinds().size() == metric_groups().size());
}

TEST_CASE("a metric is positive or not, whatever evaluation it belongs to") {
  CHECK(find_metric("test_nmse_top1")->positive);
  CHECK(find_metric("contaminated.effective_experts")->positive);
  CHECK_FALSE(find_metric("cluster_entropy")->positive);  // zero for a router that has decided
  CHECK(find_metric("accuracy") == nullptr);
  CHECK(group_of_metric("accuracy").empty());
}

}  // namespace moelab
