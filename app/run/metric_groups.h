#pragma once

/// The groups of metrics that a scenario chooses from: one table for validation, `moelab list`, the claims'
/// statistics and the reference documentation.

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/schema.h"

namespace moelab {

struct MetricGroup {
  struct Metric {
    std::string name;  ///< the column of the export
    bool positive;     ///< above zero by definition: claims compare its logarithms
    std::string help;  ///< one line: equation, unit
  };
  Kind kind;  ///< name in "metrics", meaning and parameters
  std::vector<Metric> metrics;
  bool by_default = true;  ///< measured when a scenario names no metrics
};

const std::vector<MetricGroup>& metric_groups();

/// The groups' kinds: the alternatives of an element of "metrics".
const std::vector<Kind>& metric_kinds();

/// The names of all metrics, in the order of the table.
std::vector<std::string> metric_names();

/// The metrics of the group `name`; none where there is no such group.
std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name);

/// The number at the end of the name of a layer's metric, "1" of "silhouette_layer1"; empty for others.
std::string_view layer_number(std::string_view name);

/// The metric of that name; the prefix of an evaluation ("contaminated.test_loss_top1") and the ending of a
/// layer ("silhouette_layer1") are left out of account. Null when there is none.
const MetricGroup::Metric* find_metric(std::string_view name);

/// The name of the group that holds the metric (prefix and ending as above); empty when there is none.
std::string group_of_metric(std::string_view name);

}  // namespace moelab
