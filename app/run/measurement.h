#pragma once

/// Measures a model on one test set: the metrics and arrays that a scenario requests.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/metrics/meters.h"
#include "analysis/stats/result_table.h"
#include "app/run/cell.h"
#include "app/run/results.h"
#include "app/scenario/cells.h"
#include "sim/base/arrays.h"
#include "sim/model/network.h"

namespace moelab {

// Routing at each recorded step ("save": ["routing_steps"])

/// Collects the routing of the test rows in one layer at each recorded step. Arrays, with T steps, C
/// clusters, E experts and d router inputs:
///
/// - recorded_steps (T): the steps.
/// - cluster_routing_steps (T, C, E): the mean routing of each cluster. Clusters are in the order of their
///   first test row.
/// - expert_load_steps (T, E): the share of rows that are dispatched to each expert.
/// - router_weight_steps (T, E, d) and router_bias_steps (T, E): only for routers with the arrays
///   "router_weight" and "router_bias".
class RoutingSteps {
 public:
  void add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
           Eigen::Index rows);
  /// Adds the router's arrays at the step of the last add().
  template <class Real>
  void add_router(const Network<Real>& network, const AlignedVector<Real>& parameters, int layer);
  /// Moves the arrays out. `ending` is the layer's suffix for their names.
  std::vector<SavedArray> take_arrays(const std::string& ending);

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t clusters_ = 0, experts_ = 0;
  std::vector<double> routing_, loads_;
  std::map<std::string, SavedArray> router_;  ///< by the array's name, without a suffix
};

/// The metrics of a cell on one test set. Measuring does not change the model.
template <class Real>
class Measurement {
 public:
  /// `train` holds at most the first kMeasuredTrainSamples rows of the training set. It is null for the data
  /// of an evaluation, which then has no training metrics. `data` are the options of the test set. All
  /// arguments must outlive the object.
  Measurement(const CellOptions& cell, const DataOptions& data, const Problem& problem, const Dataset* train,
              const Dataset& test);
  Measurement(const Measurement&) = delete;  // the meters refer to this object's data

  /// Returns every metric of the selected groups that applies to the model. If parameters, inputs,
  /// predictions or losses are not finite, it returns no metrics, for any selection
  /// (analysis/metrics/measured_data.h). A metric that is not finite for another reason is left out alone.
  /// Groups with "records": "last" have no metrics here. If "task" is one of them, predictions and losses are
  /// checked by measure_last() alone.
  MeasuredValues measure(const Moment<Real>& moment);
  /// Returns the metrics of groups with "records": "last", at the step of the last measure(). Empty if that
  /// step was not finite, or if these groups find that it is not.
  MeasuredValues measure_last(const Moment<Real>& moment);
  /// Tells the meters that a round of tasks in sequence has ended.
  void after_round(const Moment<Real>& moment, const FinishedRound& round);
  /// Returns the metrics of a step that need the whole training. Call it after the last step. It is empty for
  /// a step that was not finite, and for all steps if the last step was not finite.
  MeasuredValues complete(std::int64_t step);

  /// What was not finite in the last measure(), such as "outputs on the test data". Empty if everything was
  /// finite.
  const std::string& not_finite() const { return not_finite_; }

  /// Returns the arrays that "save" requests. The routings of recorded steps are moved out. Throws NotFinite.
  std::vector<SavedArray> take_arrays(const Moment<Real>& moment);

 private:
  /// The meters of the groups that are measured at the same records.
  struct Meters {
    std::vector<std::unique_ptr<RowMeter>> of_rows;
    std::vector<std::unique_ptr<ModelMeter<Real>>> of_model;
  };
  /// Throws NotFinite.
  MeasuredValues measure_by(const Meters& meters, const TestMoment<Real>& on_test, bool keeps_steps);
  /// Throws NotFinite if an output or a loss is not finite. It checks the training samples under the training
  /// gating. It checks the test set under the gatings `soft` and `top1` and the evaluation gating.
  void check_predictions(const TestMoment<Real>& moment) const;
  /// Adds a layer's metrics under the keys of this layer.
  void add_layer(int layer, const MetricValues& of_layer, MeasuredValues& values) const;
  void keep_step(const Moment<Real>& moment, ModelRows<Real>& rows);
  void save_routing(const Moment<Real>& moment, std::vector<SavedArray>& arrays) const;

  const CellOptions& cell_;
  const Dataset none_;
  MeasuredData<Real> data_;
  MetricSubject subject_;
  Meters every_, last_;
  int router_columns_;  ///< number of columns of the router's input
  std::string not_finite_;
  std::set<std::int64_t> measured_;  ///< measured steps
  int layers_ = 0;                   ///< layers of the model that have a router
  bool keeps_steps_ = false;
  std::vector<RoutingSteps> steps_;  ///< by layer, for the measured steps
};

// Agreement of saved routings on the same test rows ("save": ["routing"])

/// The origin of a routing.
struct RoutingPlace {
  std::string run;  ///< the run directory, as the user gave it
  std::string arm;
  SweepPoint point;
  bool operator==(const RoutingPlace&) const = default;
};

/// The agreement of two places. They differ in only one of run, arm and sweep point, or they are the same
/// place. In the same place, seeds are compared with each other.
struct RoutingAgreement {
  RoutingPlace left, right;
  std::string layer;      ///< the layer's suffix in a stack, such as "_layer1", or empty
  bool of_seeds = false;  ///< each pair is two seeds of one place, not one seed in two places
  /// For each pair: routing_ari and routing_nmi of the argmax experts, and routing_divergence in nats
  /// (analysis/metrics/agreement.h).
  std::vector<double> ari, nmi, divergence;
};

/// A run with its directory as the user gave it.
struct NamedRun {
  std::string name;
  std::filesystem::path directory;
  RunResults results;
};

/// Compares every pair of routings whose test inputs are bit-identical, in the order of runs and tables.
/// Pairs have the same seed, or they are different seeds of one place that share their test data. Throws
/// UserError if an array is missing or damaged.
std::vector<RoutingAgreement> routing_agreements(const std::vector<NamedRun>& runs);

// Evaluations on further test data

/// The test data of a cell, or of one of its "evaluations".
template <class Real>
class Evaluation {
 public:
  /// `name` is empty for the cell's own test data. For `train` see Measurement. All arguments must outlive
  /// the object.
  Evaluation(std::string name, const DataOptions& data, const CellOptions& cell, const Problem& problem,
             const Dataset* train);

  /// Adds the metrics at this moment, by the texts of their keys (see Measurement).
  void measure(const Moment<Real>& moment, MetricValues& values);
  /// Adds the metrics of the last record alone, after measure(). If something is not finite that measure()
  /// did not look at, it takes away what measure() added.
  void measure_last(const Moment<Real>& moment, MetricValues& values);
  /// A round of tasks in sequence has ended. Attacks make a new test set for each record, so they skip it.
  void after_round(const Moment<Real>& moment, const FinishedRound& round) {
    if (!is_attack()) measurement_->after_round(moment, round);
  }
  /// Adds to each record the metrics that need the whole training. Call it after the last record.
  void complete(std::vector<TraceEntry>& trace);
  /// What was not finite in the last measure(). Empty if everything was finite.
  const std::string& not_finite() const { return measurement_->not_finite(); }

  /// Returns the arrays that "save" requests, at the moment that was measured last. Call it once. Throws
  /// NotFinite.
  std::vector<SavedArray> take_arrays(const Moment<Real>& moment) {
    return measurement_->take_arrays(moment);
  }

 private:
  void make_measurement() { measurement_.emplace(cell_, data_, problem_, train_, looked_at_); }
  bool is_attack() const { return data_.contamination.entry().is_attack(); }
  void add(const MeasuredValues& measured, MetricValues& values) const;
  /// The text of a metric's key on this test data.
  std::string text_of(MetricKey key) const;
  /// Replaces the contaminated test data by an attack on the current model.
  void attack(const Moment<Real>& moment);

  std::string name_;
  const DataOptions& data_;
  const CellOptions& cell_;
  const Problem& problem_;
  const Dataset* train_;
  Dataset test_;
  Dataset looked_at_;  ///< `test_` with contamination
  std::optional<Measurement<Real>> measurement_;
  MeasuredValues at_last_record_;  ///< of the last measure()
};

}  // namespace moelab
