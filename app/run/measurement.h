#pragma once

/// Measures a model on one test set: the metrics and arrays that a scenario asks for.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/cell.h"
#include "app/run/routing_steps.h"
#include "app/scenario/experiment_reader.h"

namespace moelab {

/// The meters of a cell for one test set. Nothing here changes the model.
template <class Real>
class Measurement {
 public:
  /// `train` holds the first kMeasuredTrainSamples of the training set at most; null for the data of an
  /// evaluation, of which training metrics are left out. `data` are the options of the test set. Everything
  /// must outlive the object.
  Measurement(const CellOptions& cell, const DataOptions& data, const Problem& problem, const Dataset* train,
              const Dataset& test);
  Measurement(const Measurement&) = delete;  // the meters refer to its data

  /// Every metric of the chosen groups that applies to the model. None at all where parameters, inputs,
  /// predictions or losses are not finite (app/metrics/finite.h), whichever groups are chosen; a metric that
  /// is not finite for reasons of its own is left out alone.
  MeasuredValues measure(const Moment<Real>& moment);
  /// What only the whole training tells of a step, after the last one; nothing of steps that were not finite,
  /// and nothing at all where the last was not.
  MeasuredValues complete(std::int64_t step);

  /// What was not finite when measure() was last called, "outputs on the test data"; empty where all was.
  const std::string& not_finite() const { return not_finite_; }

  /// The arrays that "save" asks for. Throws NotFinite.
  std::vector<SavedArray> arrays(const Moment<Real>& moment) const;

 private:
  /// measure(), or NotFinite.
  MeasuredValues measure_finite(const Moment<Real>& moment);
  /// Throws NotFinite where an output or a loss is not finite: of the training samples under the training
  /// gating, of the test set under gatings `soft`, `top1` and that of evaluation.
  void check_predictions(const TestMoment<Real>& moment) const;
  /// Names a layer's metrics by their keys.
  void add_layer(int layer, const MetricValues& of_layer, MeasuredValues& values) const;
  void keep_step(const Moment<Real>& moment, LayerRouting<Real>& layer);
  void save_routing(const Moment<Real>& moment, std::vector<SavedArray>& arrays) const;

  const CellOptions& cell_;
  const Dataset none_;
  MeasuredData<Real> data_;
  MetricSubject subject_;
  std::vector<std::unique_ptr<Meter<Real>>> meters_;
  std::string not_finite_;
  std::set<std::int64_t> measured_;  ///< steps
  int layers_ = 0;                   ///< of the model, with a router
  bool keeps_steps_ = false;
  std::vector<RoutingSteps> steps_;  ///< of the layers, of the steps that were measured
};

}  // namespace moelab
