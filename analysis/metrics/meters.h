#pragma once

/// What measures a group of metrics, and how a group's entry of the table is made. Each group's source
/// includes this header.

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/metrics/layer_rows.h"
#include "analysis/metrics/measured_data.h"
#include "analysis/metrics/metric_groups.h"

namespace moelab {

/// What a meter of rows is made for: a test set of a cell, or a user's arrays.
struct RowSetting {
  std::function<bool(std::string_view metric)> applies;  ///< whether its needs are met
  const MetricSubject* cell = nullptr;                   ///< null for arrays; outlives the meter
};

/// Measures routed rows. It reads only the view, so the rows of a model and a user's arrays are measured
/// alike. What a meter remembers from one step to the next is its own.
class RowMeter {
 public:
  virtual ~RowMeter() = default;
  /// Adds the metrics of a layer. Called for every layer in turn, then measure_stack().
  virtual void measure(LayerRows& rows, LayerMetrics& metrics) = 0;
  /// Adds the metrics of all layers together.
  virtual void measure_stack(int /*layers*/, MetricValues& /*values*/) {}
  /// Remembers an earlier record of the rows, as measure() does.
  virtual void remember(LayerRows& /*rows*/) {}
  /// After the last step, for every step that was measured: adds the metrics that need the whole training.
  virtual void complete(std::int64_t /*step*/, int /*layer*/, MetricValues& /*values*/) {}
  /// A step could not be measured (NotFinite). The remembered step is then not the one before.
  virtual void forget() {}
};

/// What a meter of models is made for: one test set of one cell. All of it outlives the meter.
template <class Real>
struct MeterSetting {
  const ExperimentOptions& experiment;
  const Problem& problem;
  const MeasuredData<Real>& data;
  Seeds seeds;
  const MetricSubject& subject;
};

/// Measures what routed rows do not show: losses, gradients, parameters. Only a trained model can be
/// measured. The model is not changed.
template <class Real>
class ModelMeter {
 public:
  virtual ~ModelMeter() = default;
  /// Adds the metrics of a layer with a router.
  virtual void measure_layer(const TestMoment<Real>& /*moment*/, int /*layer*/, MetricValues& /*values*/) {}
  /// Adds the metrics of the whole model.
  virtual void measure(const TestMoment<Real>& /*moment*/, MetricValues& /*values*/) {}
  /// After each round of tasks in sequence (train.rounds), which need not be recorded.
  virtual void after_round(const TestMoment<Real>& /*moment*/, const FinishedRound& /*round*/) {}
};

/// Sets a metric that applies.
inline void set(MetricValues& values, const std::string& name, const std::optional<double>& value) {
  if (value) values[name] = *value;
}

/// The parameters of a group that has none.
struct NoMetricOptions {
  void bind(Fields& /*fields*/) {}
};

/// A metric of a group, see MetricGroup::Metric.
inline MetricGroup::Metric metric(std::string name, bool positive, std::string help, std::string axis_label,
                                  std::string legend_label, std::vector<const Need*> needs = {},
                                  std::string otherwise = {}) {
  return {std::move(name),         positive,         std::move(help),     std::move(axis_label),
          std::move(legend_label), std::move(needs), std::move(otherwise)};
}

/// Declares that larger values of these metrics of the group are better.
inline void set_larger_is_better(MetricGroup& group, std::initializer_list<std::string_view> names) {
  for (MetricGroup::Metric& metric : group.metrics)
    metric.larger_is_better |= std::find(names.begin(), names.end(), metric.name) != names.end();
}

/// The entry of a group whose values the cell itself knows.
template <class Options = NoMetricOptions>
MetricGroup metric_group(std::string name, std::string help, std::vector<MetricGroup::Metric> metrics) {
  return {{std::move(name), std::move(help), Options{}, Options{}}, std::move(metrics)};
}

/// The entry of a group whose meter `Made`, a RowMeter, is made from (Options, RowSetting).
template <class Options, class Made>
MetricGroup row_metrics(std::string name, std::string help, std::vector<MetricGroup::Metric> metrics) {
  MetricGroup group = metric_group<Options>(std::move(name), std::move(help), std::move(metrics));
  group.make_row_meter = make_from<RowMeter, Options, Made, const RowSetting&>;
  return group;
}

/// The entry of a group whose meter `Made<Real>`, a ModelMeter, is made from (Options, MeterSetting<Real>).
template <class Options, template <class> class Made>
MetricGroup model_metrics(std::string name, std::string help, std::vector<MetricGroup::Metric> metrics) {
  MetricGroup group = metric_group<Options>(std::move(name), std::move(help), std::move(metrics));
  group.make_model_meter = {
      make_from<ModelMeter<float>, Options, Made<float>, const MeterSetting<float>&>,
      make_from<ModelMeter<double>, Options, Made<double>, const MeterSetting<double>&>};
  return group;
}

}  // namespace moelab
