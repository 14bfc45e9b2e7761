#pragma once

/// What measures a group of metrics.

#include <memory>
#include <optional>
#include <string>

#include "analysis/stats/result_table.h"
#include "app/metrics/layer_routing.h"
#include "app/metrics/metric_needs.h"
#include "sim/train/experiment.h"

namespace moelab {

/// What a meter is made for: one test set of one cell. All of it outlives the meter.
template <class Real>
struct MeterSetting {
  const ExperimentOptions& experiment;
  const Problem& problem;
  const MeasuredData<Real>& data;
  Seeds seeds;
  const MetricSubject& subject;
};

/// Measures one model on one test set, at every recorded step. Models are not changed; what a meter
/// remembers from one step to the next is its own.
template <class Real>
class Meter {
 public:
  virtual ~Meter() = default;
  /// Adds the metrics of a layer with a router, by their names without the ending of the layer. Called for
  /// every layer in turn, then measure().
  virtual void measure_layer(const LayerMoment<Real>& /*moment*/, MetricValues& /*values*/) {}
  /// Adds the metrics of the whole model.
  virtual void measure(const TestMoment<Real>& /*moment*/, MetricValues& /*values*/) {}
  /// After the last step, for every step that was measured: adds the metrics of a layer that only the whole
  /// training tells.
  virtual void complete_layer(std::int64_t /*step*/, int /*layer*/, MetricValues& /*values*/) {}
  /// A step could not be measured (app/metrics/finite.h): what is remembered is no longer of the one before.
  virtual void forget() {}
};

/// A metric that does not apply is left out.
inline void set(MetricValues& values, const std::string& name, const std::optional<double>& value) {
  if (value) values[name] = *value;
}

}  // namespace moelab
