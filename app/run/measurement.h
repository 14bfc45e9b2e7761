#pragma once

/// Measures a model at one moment of training: the metrics that a scenario asks for.

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/cell.h"
#include "app/run/mixture_metrics.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {

/// The training loss is taken over the first training samples: as many as a test set has by default.
constexpr int kMeasuredTrainSamples = 10000;

/// Labels of rows that make clusters, one or several to a row: a row counts in the cluster of each.
struct ClusterLabels {
  std::string suffix;                    ///< of the metrics' names
  std::vector<std::vector<int>> labels;  ///< each (rows)
};

/// How routing metrics cut a test set into clusters. A row with one label (of a token: its component) is in
/// that label's cluster. A sample made of several parts is in the cluster of its set of parts; with
/// `_per_atom` in the clusters of each of its parts, whatever the others are; with `_overall` in the one
/// cluster of all.
std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels);

/// Holds the data that metrics look at.
template <class Real>
class Measurement {
 public:
  /// `config` is a cell's; its "metrics" name the groups. `train` holds the first kMeasuredTrainSamples of
  /// the training set at most, or nothing, and then training metrics are left out; both sets must outlive
  /// the object.
  Measurement(const Json& config, const Seeds& seeds, const Problem& problem, const Dataset& train,
              const Dataset& test);

  /// Whether a scenario asks for a group.
  bool wants(const std::string& group) const { return groups_.contains(group); }

  /// Every metric of the chosen groups that applies to the model.
  MetricValues measure(Model<Real>& model);

  /// The arrays that "save" asks for.
  std::vector<SavedArray> arrays(Model<Real>& model);

 private:
  void measure_task(Model<Real>& model, MetricValues& values);
  /// Loss, nmse and accuracy of outputs on a set, "test" of "test_loss_soft" and, after the middle, "_soft".
  void add_fit(const std::string& set, const std::string& ending, const Matrix& outputs,
               const Matrix& targets, MetricValues& values) const;
  /// Targets or outputs of a set as rows (n, o), a token a row where each has a target.
  MatrixView target_rows(const Matrix& values) const;
  Matrix test_outputs(Model<Real>& model, const Gating& gating);
  /// Metrics of the routing of one layer.
  MetricValues measure_layer(Model<Real>& model, int layer);
  void measure_sparsity(Model<Real>& model, int layer, MetricValues& values);
  void measure_router_norms(const Model<Real>& model, int layer, MetricValues& values);
  void measure_overlap(const Matrix& probabilities, MetricValues& values);
  /// Rows of the test set that each expert of a layer computes.
  std::vector<std::int64_t> test_loads(Model<Real>& model, int layer);
  void measure_layer_loads(Model<Real>& model, MetricValues& values);
  void measure_auxiliary_losses(Model<Real>& model, int layer, MetricValues& values);
  void measure_expert_outputs(Model<Real>& model, int layer, MetricValues& values);
  Matrix test_probabilities(Model<Real>& model, int layer, std::span<const int> permutation = {});

  const Layout layout_;
  const Dataset& train_;
  const Dataset& test_;
  const std::vector<ClusterLabels> clusters_;
  std::set<std::string> groups_;
  std::set<std::string> saved_;
  std::vector<std::vector<int>> shuffles_;  ///< permutations of the input coordinates
  int neighbours_ = 0;                      ///< of expert overlap
  std::int64_t query_rows_ = 0;             ///< rows that overlap and silhouette are taken over
  const bool cross_entropy_;                ///< the task loss
  const bool class_targets_;
  MetricValues bayes_;  ///< how the data's own conditional mean does
  const AuxiliaryLosses losses_;
  Matrix signal_basis_;
  std::optional<MixtureMetrics> mixture_;
  std::vector<Real> train_inputs_;
  std::vector<Real> test_inputs_;
};

}  // namespace moelab
