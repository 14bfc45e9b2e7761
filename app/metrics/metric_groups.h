#pragma once

/// The axis of metrics: groups that a scenario chooses from. One table for validation, `moelab list`, the
/// claims' statistics, the reference documentation and measuring itself.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/metrics/meter.h"
#include "app/metrics/metric_key.h"
#include "sim/base/per_precision.h"

namespace moelab {

template <class Real>
using MakeMeter = std::unique_ptr<Meter<Real>>(const AnyOptions&, const MeterSetting<Real>&);

/// An entry of the table: name in "metrics", meaning and parameters. The help says what of the routing it
/// uses: `probabilities`, `selected`, `serving` (sim/model/gating/routing.h).
struct MetricGroup : KindEntry {
  struct Metric {
    std::string name;                     ///< the column of the export
    bool positive;                        ///< above zero by definition: claims compare its logarithms
    std::string help;                     ///< one line: equation, unit
    std::string axis_label = {};          ///< what figures call it at an axis, with its unit
    std::string legend_label = {};        ///< a shorter form for legends
    std::vector<const Need*> needs = {};  ///< beyond those of the group
  };
  std::vector<Metric> metrics;
  std::vector<const Need*> needs = {};  ///< what all of its metrics are taken of
  bool by_default = true;               ///< measured when a scenario names no metrics
  bool of_layers = false;   ///< of each layer, whose ending the names have where there are several
  bool of_entries = false;  ///< of each entry in "metrics", whose name ends their names behind a dot
  /// What parameters have to satisfy beyond their fields one by one. Throws InvalidOption below `path`; null
  /// for nothing.
  void (*check)(const AnyOptions&, const ExperimentOptions&, const std::string& path) = nullptr;
  /// Bytes that are kept of each row of a layer at each record; null for none.
  double (*kept_bytes)(const AnyOptions&) = nullptr;
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

/// The entry of a group whose meter class `Made<Real>` is made from (Options, MeterSetting<Real>).
template <class Options, template <class> class Made>
MetricGroup metric_group(std::string name, std::string help, std::vector<MetricGroup::Metric> metrics) {
  MetricGroup group{{std::move(name), std::move(help), Options{}, Options{}}, std::move(metrics)};
  group.make = {make_from<Meter<float>, Options, Made<float>, const MeterSetting<float>&>,
                make_from<Meter<double>, Options, Made<double>, const MeterSetting<double>&>};
  return group;
}

/// Throws InvalidOption at `path`.k unless the model has k experts; dense models of a given width have none
/// to hold it against.
void check_set_size(int k, const ExperimentOptions& experiment, const std::string& path);

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

/// The group that declares the metric, by its own name (MetricKey::metric); null when there is none.
const MetricGroup* group_of(std::string_view metric);

/// The metric of a key's text ("contaminated.test_loss_top1", "silhouette_layer1"). Null when there is none.
const MetricGroup::Metric* find_metric(std::string_view text);
/// Of names in an expression (analysis/stats/expression.h): whether there is a metric among them.
bool has_metric(const std::vector<std::string>& names);
/// Whether it is a metric that is above zero by definition.
bool is_declared_positive(const std::string& name);
/// Whether there is a metric that is 1 where this one is right-censored (observation.h).
bool may_be_censored(const std::string& metric);

/// The name of the group that holds it; empty when there is none.
std::string group_of_metric(std::string_view text);

/// What the metric is taken of, the group's needs first; nothing where there is no such metric.
std::vector<const Need*> needs_of(std::string_view metric);

/// The first need of the metric that is not met; null where it is measured.
const Need* unmet_need(std::string_view metric, const MetricSubject& subject, int layer = 0);

}  // namespace moelab
