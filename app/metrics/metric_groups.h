#pragma once

/// The axis of metrics: groups that a scenario chooses from. One table for validation, `moelab list`, the
/// claims' statistics, the reference documentation and measuring itself.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/metrics/meter.h"
#include "sim/base/per_precision.h"

namespace moelab {

template <class Real>
using MakeMeter = std::unique_ptr<Meter<Real>>(const AnyOptions&, const MeterSetting<Real>&);

/// An entry of the table: name in "metrics", meaning and parameters. The help says what of the routing it
/// uses: `probabilities`, `selected`, `serving` (sim/model/gating/routing.h).
struct MetricGroup : KindEntry {
  struct Metric {
    std::string name;  ///< the column of the export
    bool positive;     ///< above zero by definition: claims compare its logarithms
    std::string help;  ///< one line: equation, unit
  };
  std::vector<Metric> metrics;
  bool by_default = true;   ///< measured when a scenario names no metrics
  bool of_layers = false;   ///< of each layer, whose ending the names have where there are several
  bool of_entries = false;  ///< of each entry in "metrics", whose name ends their names behind a dot
  /// What parameters have to satisfy beyond their fields one by one. Throws InvalidOption below `path`; null
  /// for nothing.
  void (*check)(const AnyOptions&, const ExperimentOptions&, const std::string& path) = nullptr;
  /// Null where a cell itself knows the values; the meter is null where nothing applies.
  PerPrecision<MakeMeter> make = {};
};

/// The table: adding a group is a new file and a line in metric_groups.cpp.
struct MetricAxis {
  using Entry = MetricGroup;
  static const std::vector<MetricGroup>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "metrics";
};
/// An element of "metrics".
using MetricOptions = OneOf<MetricAxis>;

const std::vector<MetricGroup>& metric_groups();
void add_metric_group(MetricGroup group);

/// The entry of a group whose meter class `Made<Real>` is made from (Options, MeterSetting<Real>).
template <class Options, template <class> class Made>
MetricGroup metric_group(std::string name, std::string help, std::vector<MetricGroup::Metric> metrics) {
  MetricGroup group{{std::move(name), std::move(help), Options{}, Options{}}, std::move(metrics)};
  group.make = {make_from<Meter<float>, Options, Made<float>, const MeterSetting<float>&>,
                make_from<Meter<double>, Options, Made<double>, const MeterSetting<double>&>};
  return group;
}

/// Throws InvalidOption below `path` ("metrics[1]").
void check(const MetricOptions& group, const ExperimentOptions& experiment, const std::string& path);

/// Null where the group has no meter, or nothing of it applies.
template <class Real>
std::unique_ptr<Meter<Real>> make_meter(const MetricOptions& group, const MeterSetting<Real>& setting) {
  const auto make = group.entry().make.of<Real>();
  return make ? make(group.options(), setting) : nullptr;
}

/// The names of all metrics, in the order of the table.
std::vector<std::string> metric_names();

/// The metrics of the group `name`; none where there is no such group.
std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name);

/// The number at the end of the name of a layer's metric, "1" of "silhouette_layer1"; empty for others.
std::string_view layer_number(std::string_view name);

/// The name of the entry at the end of the name of a metric that entries have, "fast" of
/// "steps_to_target.fast"; empty for others.
std::string_view entry_name(std::string_view name);

/// The metric of that name; the ending of an entry, the prefix of an evaluation
/// ("contaminated.test_loss_top1") and the ending of a layer ("silhouette_layer1") are left out of account.
/// Null when there is none.
const MetricGroup::Metric* find_metric(std::string_view name);

/// Whether the metric is one of each layer (prefix and ending as above).
bool is_of_layers(std::string_view name);

/// The name of the group that holds the metric (prefix and ending as above); empty when there is none.
std::string group_of_metric(std::string_view name);

}  // namespace moelab
