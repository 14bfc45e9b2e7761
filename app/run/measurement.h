#pragma once

/// Measures a model on one test set: the metrics and arrays that a scenario asks for.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/cell.h"
#include "app/run/results.h"
#include "app/scenario/cells.h"
#include "sim/base/arrays.h"
#include "sim/model/network.h"

namespace moelab {

// How the test rows were routed at each recorded step: what "save": ["routing_steps"] keeps.

/// Of one layer: recorded_steps (T), cluster_routing_steps (T, C, E), the mean routing of each cluster, the
/// clusters in the order in which the test rows show them, and expert_load_steps (T, E), the shares of rows
/// that are dispatched to each expert; router_weight_steps (T, E, d) and router_bias_steps (T, E) of routers
/// that have arrays "router_weight", "router_bias".
class RoutingSteps {
 public:
  void add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
           Eigen::Index rows);
  /// The router's arrays at the step that was added last.
  template <class Real>
  void add_router(const Network<Real>& network, const AlignedVector<Real>& parameters, int layer);
  /// `ending` of the layer ends the names.
  std::vector<SavedArray> arrays(const std::string& ending) const;

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t clusters_ = 0, experts_ = 0;
  std::vector<double> routing_, loads_;
  std::map<std::string, SavedArray> router_;  ///< by the array's name, without an ending
};

/// How many numbers of the routers' arrays are kept at a step, in all layers.
template <class Real>
std::size_t router_numbers_per_step(const Network<Real>& network);

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
  /// predictions or losses are not finite (analysis/metrics/measured_data.h), whichever groups are chosen; a
  /// metric that is not finite for reasons of its own is left out alone.
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

// How alike the routings are that cells saved of the same test rows ("save": ["routing"]).

/// One of two routings: where it comes from.
struct RoutingPlace {
  std::string run;  ///< its directory, as given
  std::string arm;
  SweepPoint point;
  bool operator==(const RoutingPlace&) const = default;
};

/// Two places that differ in the run, in the arm or in the sweep point alone, or one place with itself:
/// between its seeds.
struct RoutingAgreement {
  RoutingPlace left, right;
  std::string layer;      ///< "_layer1" in a stack, or empty
  bool of_seeds = false;  ///< pairs are of two seeds, not of one seed in two places
  /// Of each pair, routing_ari and routing_nmi of the likeliest experts and routing_divergence
  /// (analysis/metrics/agreement.h), nats.
  std::vector<double> ari, nmi, divergence;
};

/// A run with its directory as it was given.
struct NamedRun {
  std::string name;
  std::filesystem::path directory;
  RunResults results;
};

/// Every pair of routings with equal test inputs, to the last byte, in the order of runs and tables: at the
/// same seed, and between the seeds of a place where these share their test data. Throws UserError for an
/// array that is missing or damaged.
std::vector<RoutingAgreement> routing_agreements(const std::vector<NamedRun>& runs);

// Test data of its own for a trained model.

/// The cell's own test data, or those of one of "evaluations".
template <class Real>
class Evaluation {
 public:
  /// `name` is empty for the cell's own. `train` as for Measurement. Everything must outlive the object.
  Evaluation(std::string name, const DataOptions& data, const CellOptions& cell, const Problem& problem,
             const Dataset* train);

  /// Adds the metrics of this moment by the texts of their keys; see Measurement.
  void measure(const Moment<Real>& moment, MetricValues& values);
  /// Adds what only the whole training tells of each record, after the last.
  void complete(std::vector<TraceEntry>& trace);
  /// What was not finite then; empty where all was.
  const std::string& not_finite() const { return measurement_->not_finite(); }

  /// The arrays that "save" asks for, of the moment that was measured last. Throws NotFinite.
  std::vector<SavedArray> arrays(const Moment<Real>& moment) const { return measurement_->arrays(moment); }

 private:
  void make_measurement() { measurement_.emplace(cell_, data_, problem_, train_, looked_at_); }
  bool is_attack() const { return data_.contamination.entry().is_attack(); }
  void add(const MeasuredValues& measured, MetricValues& values) const;
  /// An attack is one on the model as it is.
  void attack(const Moment<Real>& moment);

  std::string name_;
  const DataOptions& data_;
  const CellOptions& cell_;
  const Problem& problem_;
  const Dataset* train_;
  Dataset test_;
  Dataset looked_at_;  ///< `test_` contaminated
  std::optional<Measurement<Real>> measurement_;
};

}  // namespace moelab
