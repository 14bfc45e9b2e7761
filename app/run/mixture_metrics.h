#pragma once

/// A fitted mixture against the true measure of its data.

#include <optional>

#include "analysis/metrics/voronoi.h"
#include "analysis/stats/result_table.h"
#include "sim/data/problem.h"
#include "sim/model/measure_places.h"
#include "sim/model/model.h"

namespace moelab {

/// What voronoi_errors() compares of a measure.
MixtureComponents components_of(const MixingMeasure& measure);

/// The metrics of the group "voronoi"; none where the data have no true measure or the model is not of its
/// form.
class MixtureMetrics {
 public:
  /// `config` is a cell's.
  MixtureMetrics(const Json& config, const Problem& problem);

  template <class Real>
  void add(Model<Real>& model, MetricValues& values) const {
    if (places_) add({model.parameters().begin(), model.parameters().end()}, values);
  }

 private:
  void add(const std::vector<double>& parameters, MetricValues& values) const;

  std::optional<MeasurePlaces> places_;
  MixtureComponents truth_;
};

}  // namespace moelab
