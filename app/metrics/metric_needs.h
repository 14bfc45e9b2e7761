#pragma once

/// What metrics are taken of beyond a model and a test set, and whether a run has it.

#include <memory>
#include <string>

#include "sim/model/network.h"
#include "sim/train/experiment.h"

namespace moelab {

/// A test set of a cell, as much as is known of it before anything is trained.
class MetricSubject {
 public:
  /// `data` are those of the test set: the experiment's own, or an evaluation's. `problem`: theirs, where it
  /// has been drawn. All outlive the object. `is_recorded_again`: there is a record after the first.
  MetricSubject(const ExperimentOptions& experiment, const DataOptions& data, const Seeds& seeds, bool is_own,
                const Problem* problem = nullptr, bool is_recorded_again = true)
      : experiment_(experiment),
        data_(data),
        seeds_(seeds),
        is_own_(is_own),
        is_recorded_again_(is_recorded_again),
        problem_(problem) {}

  const ExperimentOptions& experiment() const { return experiment_; }
  const DataOptions& data() const { return data_; }
  bool is_own() const { return is_own_; }
  bool is_recorded_again() const { return is_recorded_again_; }
  /// The problem and the network are made when they are first asked for. Throw InvalidOption.
  const Problem& problem() const;
  const Network<float>& network() const;
  /// Whether the targets are classes.
  bool class_targets() const;

 private:
  const ExperimentOptions& experiment_;
  const DataOptions& data_;
  Seeds seeds_;
  bool is_own_, is_recorded_again_;
  mutable const Problem* problem_;
  mutable std::unique_ptr<Problem> drawn_;
  mutable std::unique_ptr<Network<float>> network_;
};

/// Something that a metric is taken of. Where a run has none, the metric does not apply: it has no column,
/// and claims and figures that name it are refused.
struct Need {
  const char* what;  ///< completes "needs …"
  bool (*is_met)(const MetricSubject&, int layer);
  /// What of the arguments of `analyze` gives it; null where nothing does. A metric is one of arrays, too,
  /// when each of its needs can be given.
  const char* argument = nullptr;
};

namespace needs {

// Of the model.
extern const Need router;  ///< routed rows
extern const Need model;   ///< more of the model than its routing and weights
extern const Need several_experts;
extern const Need router_weight;   ///< a router that is linear in x
extern const Need router_columns;  ///< that can be permuted
extern const Need mixed_tokens;    ///< a router that lets tokens mix their routing
extern const Need sets;            ///< gating.eval selects more than one expert and not always all
extern const Need sets_of_k;       ///< the K likeliest experts
extern const Need unserved_rows;   ///< gating.eval may leave rows without an expert
extern const Need layer_before;
extern const Need model_output;  ///< a layer whose output is the model's

// Of the data.
extern const Need own_data;  ///< the cell's own, not an evaluation's
extern const Need labels;
extern const Need parts;  ///< several labels to a sample
extern const Need inputs;
extern const Need space;  ///< inputs or embeddings of the rows
extern const Need signal_subspace;
extern const Need squared_error;
extern const Need classes;
extern const Need best_prediction;  ///< E[y | x]
extern const Need token_ids;        ///< as inputs and targets
extern const Need text;             ///< that ids stand for
extern const Need known_language;   ///< a law of the next token
extern const Need causal_routing;   ///< under gating.eval
extern const Need true_measure;     ///< a mixture that drew the data, of the model's own form
extern const Need shared_experts;   ///< in the model

// Of the training.
extern const Need step_before;
extern const Need probabilities_before;
extern const Need last_step;
extern const Need population_gradient;
extern const Need least_squares;
extern const Need best_start;
extern const Need likelihood_fit;  ///< to data drawn from Gaussian experts
extern const Need until;           ///< a rule that may end it before its steps

// Of experts.
extern const Need expert_outputs;

}  // namespace needs

}  // namespace moelab
