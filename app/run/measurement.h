#pragma once

/// Measures a model at one moment of training: the metrics that a scenario asks for.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/cell.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {

/// Holds the data that metrics look at. The training loss is taken over the first min(n, 10 000) training
/// rows.
template <class Real>
class Measurement {
 public:
  /// `config` is a cell's; its "metrics" name the groups. `test` must outlive the object.
  Measurement(const Json& config, const Seeds& seeds, const Problem& problem, const Dataset& train,
              const Dataset& test);

  /// Every metric of the chosen groups that applies to the model.
  MetricValues measure(Model<Real>& model);

  /// The arrays that "save" asks for.
  std::vector<SavedArray> arrays(Model<Real>& model);

 private:
  void measure_task(Model<Real>& model, MetricValues& values);
  void measure_routing(Model<Real>& model, MetricValues& values);
  Matrix test_outputs(Model<Real>& model, const Gating& gating);
  Matrix test_probabilities(Model<Real>& model, const std::vector<Real>& inputs);

  const Dataset& test_;
  std::set<std::string> groups_;
  std::set<std::string> saved_;
  std::vector<std::vector<int>> shuffles_;  ///< permutations of the input coordinates
  std::optional<double> bayes_nmse_;
  Matrix signal_basis_;
  Matrix train_targets_;
  std::vector<Real> train_inputs_;
  std::vector<Real> test_inputs_;
};

}  // namespace moelab
