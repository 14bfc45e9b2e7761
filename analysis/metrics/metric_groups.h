#pragma once

/// The table of metric groups, from which a scenario chooses. Validation, `moelab list`, the reference
/// documentation, claims, figures, measuring and `moelab analyze` all read this one table.
///
/// A metric is taken of the rows that a layer routed (layer_rows.h), or of a whole model. It declares its
/// needs. A cell's options decide which needs a run meets; the arguments of `analyze` decide which needs a
/// user's arrays meet.

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/stats/result_table.h"
#include "sim/base/arrays.h"
#include "sim/model/network.h"
#include "sim/train/experiment.h"

namespace moelab {

// What a metric needs.

/// A test set of a cell, before anything is trained.
class MetricSubject {
 public:
  /// `data` describes the test set: the experiment's own data or an evaluation's. `problem` is null until it
  /// has been drawn. Both outlive the object. `is_recorded_again`: the training records a second step.
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
  /// Draws the problem and builds the network at the first call. Throws InvalidOption.
  const Problem& problem() const;
  const Network<float>& network() const;
  bool class_targets() const;  ///< whether the targets are classes

 private:
  const ExperimentOptions& experiment_;
  const DataOptions& data_;
  Seeds seeds_;
  bool is_own_, is_recorded_again_;
  mutable const Problem* problem_;
  mutable std::unique_ptr<Problem> drawn_;
  mutable std::unique_ptr<Network<float>> network_;
};

/// Which arrays and options the user gave to `analyze`.
struct GivenArrays {
  int experts = 1, top_k = 1, neighbours = 10;
  bool probabilities = true;                    ///< r(x); otherwise the chosen experts alone
  bool first_choice = true;                     ///< which of the chosen experts comes first
  bool labels = false, several_labels = false;  ///< cluster labels; several of them to a row
  bool inputs = false, space = false;           ///< router inputs; inputs or embeddings
  bool router = false, expert_outputs = false;
  bool previous = false, previous_probabilities = false;  ///< an earlier routing; with its probabilities
};

/// Something that a metric is taken of. Where it is missing, the metric does not apply: the metric has no
/// column, and claims and figures that name it are refused.
struct Need {
  const char* what;  ///< completes "needs …"
  bool (*is_met)(const MetricSubject&, int layer);
  /// The arguments of `analyze` that give it; null where the user is not told of any.
  const char* argument = nullptr;
  /// Whether these arrays give it; null where no arrays can.
  bool (*is_given)(const GivenArrays&) = nullptr;
};

namespace needs {

// Of the model.
extern const Need router;  ///< routed rows
extern const Need model;   ///< more of the model than its routing and weights
extern const Need several_experts;
extern const Need router_weight;   ///< a router that is linear in x
extern const Need router_columns;  ///< columns that can be permuted
extern const Need mixed_tokens;    ///< a router that lets tokens mix their routing
extern const Need sets;            ///< gating.eval selects more than one expert and not always all
extern const Need sets_of_k;       ///< the K experts of largest probability
extern const Need unserved_rows;   ///< gating.eval may leave rows without an expert
extern const Need probabilities;   ///< r(x): chosen experts alone do not tell it
extern const Need first_choice;    ///< the serving expert: sets in any order do not tell it
extern const Need layer_before;
extern const Need model_output;    ///< a layer whose output is the model's
extern const Need shared_experts;  ///< in the model
extern const Need expert_outputs;

// Of the data.
extern const Need own_data;  ///< the cell's own data, not an evaluation's
extern const Need labels;
extern const Need parts;  ///< several labels to a sample
extern const Need inputs;
extern const Need space;  ///< inputs or embeddings of the rows
extern const Need signal_subspace;
extern const Need squared_error;
extern const Need classes;
extern const Need best_prediction;  ///< E[y | x]
extern const Need token_ids;        ///< ids as inputs and targets
extern const Need text;             ///< text that the ids stand for
extern const Need known_language;   ///< a law of the next token
extern const Need causal_routing;   ///< under gating.eval
extern const Need true_measure;     ///< a mixture that drew the data, of the model's own form

// Of the training.
extern const Need step_before;
extern const Need probabilities_before;
extern const Need last_step;
extern const Need population_gradient;
extern const Need least_squares;
extern const Need best_start;
extern const Need search_start;
extern const Need oracle_start;    ///< with oracle starts, and a truth of the model's form
extern const Need likelihood_fit;  ///< to data drawn from Gaussian experts
extern const Need until;           ///< a rule that may end the training before its steps

}  // namespace needs

// The table.

/// What a number of a run is of. Its text is the column of exports and the name in JSON:
/// `[<evaluation>.]<metric>[_layer<layer>][.<variant>]`.
struct MetricKey {
  std::string evaluation = {};  ///< empty for the cell's own test data
  std::string metric;           ///< as its group declares it
  std::string variant = {};     ///< name of an entry of a group that is measured by entries, or empty
  std::optional<int> layer = std::nullopt;  ///< in models of several layers

  std::string text() const;
  /// The inverse of text(). An unknown text gives a key whose metric does not exist.
  static MetricKey parse(std::string_view text);
  auto operator<=>(const MetricKey&) const = default;
};

/// The metrics of one test set at one step.
using MeasuredValues = std::map<MetricKey, double>;

// See meters.h.
class RowMeter;
struct RowSetting;
template <class Real>
class ModelMeter;
template <class Real>
struct MeterSetting;

using MakeRowMeter = std::unique_ptr<RowMeter>(const AnyOptions&, const RowSetting&);
template <class Real>
using MakeModelMeter = std::unique_ptr<ModelMeter<Real>>(const AnyOptions&, const MeterSetting<Real>&);

/// An entry of the table: name in "metrics", meaning and parameters. The help names the routing that the
/// group uses: `probabilities`, `selected`, `serving` (sim/model/gating/routing.h).
struct MetricGroup : KindEntry {
  struct Metric {
    std::string name;                     ///< the column of the export
    bool positive;                        ///< above zero by definition: claims compare its logarithms
    std::string help;                     ///< one line: equation, unit
    std::string axis_label = {};          ///< label of a figure's axis, with the unit
    std::string legend_label = {};        ///< a shorter form for legends
    std::vector<const Need*> needs = {};  ///< in addition to the group's needs
    /// Why arrays that meet the needs may still give no value: a line of `analyze`.
    std::string otherwise = {};
    bool larger_is_better = false;  ///< as for an accuracy; otherwise smaller is better
  };
  std::vector<Metric> metrics;
  std::vector<const Need*> needs = {};  ///< needs of all its metrics
  bool by_default = true;               ///< measured when a scenario names no metrics
  bool of_layers = false;   ///< measured of each layer; a layer's ending follows the name in a stack
  bool of_entries = false;  ///< measured of each entry in "metrics"; the entry's name follows after a dot
  /// What parameters have to satisfy in addition to their fields' ranges. Throws InvalidOption below `path`;
  /// null for nothing.
  void (*check)(const AnyOptions&, const ExperimentOptions&, const std::string& path) = nullptr;
  /// The parameters that `analyze` measures with; null for the defaults.
  AnyOptions (*options_for)(const GivenArrays&) = nullptr;
  /// Makes what measures the group: a meter of rows, or a meter of models. Both are null where the cell
  /// itself knows the values.
  MakeRowMeter* make_row_meter = nullptr;
  PerPrecision<MakeModelMeter> make_model_meter = {};
};

/// The table. To add a group, write a file and add a line to metric_groups.cpp.
struct MetricAxis {
  using Entry = MetricGroup;
  static const std::vector<MetricGroup>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "metrics";
};
/// An element of "metrics": a group with its options, and the records that it is measured at.
class MetricOptions final : public OneOf<MetricAxis> {
 public:
  using OneOf<MetricAxis>::OneOf;
  static MetricOptions named(const std::string& kind) {
    MetricOptions one;
    one.choose(kind);
    return one;
  }
  enum class Records { every, last };
  Records records = Records::every;
  void bind(Fields& fields) override;
};

inline const std::vector<MetricGroup>& metric_groups() {
  return MetricAxis::table();
}

/// Throws InvalidOption at `path`.k unless the model has k experts. Dense models of a given width have no
/// experts to compare with.
void check_set_size(int k, const ExperimentOptions& experiment, const std::string& path);

/// Throws InvalidOption below `path` ("metrics[1]").
void check(const MetricOptions& group, const ExperimentOptions& experiment, const std::string& path);

/// The names of all metrics, in the order of the table.
std::vector<std::string> metric_names();

/// The metrics of the group `name`; none where there is no such group.
std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name);

/// The group that declares the metric, by its own name (MetricKey::metric); null when there is none.
const MetricGroup* group_of(std::string_view metric);

/// The metric of a key's text ("contaminated.test_loss_top1", "silhouette_layer1"). Null when there is none.
const MetricGroup::Metric* find_metric(std::string_view text);
/// Whether one of the names in an expression (analysis/stats/expression.h) is a metric.
bool has_metric(const std::vector<std::string>& names);
/// Whether it is a metric that is above zero by definition.
bool is_declared_positive(const std::string& name);
/// Whether larger values of the metric are better.
bool is_larger_better(const std::string& name);
/// Whether another metric is 1 where this one is right-censored (result_table.h).
bool may_be_censored(const std::string& metric);

/// The name of the metric's group; empty when there is none.
std::string group_of_metric(std::string_view text);

/// The needs of the metric, its group's first; none where there is no such metric.
std::vector<const Need*> needs_of(std::string_view metric);

/// The first need of the metric that a cell does not meet; null where the metric is measured.
const Need* unmet_need(std::string_view metric, const MetricSubject& subject, int layer = 0);

/// Whether these arrays meet all needs of the metric.
bool applies_to(std::string_view metric, const GivenArrays& given);

/// The arguments of `analyze` that the metric lacks; none where it lacks no argument, or where an array
/// cannot give one of its needs.
std::vector<std::string> missing_arguments(std::string_view metric, const GivenArrays& given);

// Readable names of paths and metrics, for figures.

/// The label of a swept path or a metric at an axis: "data.train_samples" → "training samples",
/// "test_nmse_top1" → "test loss ÷ label variance (top-1)". A layer, an entry and an evaluation are appended
/// ("test loss ÷ label variance (top-1), contaminated"). Names without a label stand for themselves.
std::string axis_label(const std::string& name);

/// A shorter form for legends: "test, top-1".
std::string legend_label(const std::string& name);

// The group "convergence".

/// One entry of the group. A scenario may have several.
struct ConvergenceMetricOptions {
  std::string metric = "test_nmse_soft";  ///< any other metric that the scenario records
  double target = 0.1;
  enum class Direction { below, above };
  Direction direction = Direction::below;
  std::optional<std::string> name;  ///< tells several entries apart
  void bind(Fields& fields);
};

/// For each entry of `groups`, sets "steps_to_target": the first recorded step at which the entry's metric is
/// at most its target (`above`: at least). "steps_to_target_censored" is 0 then. If no step reaches the
/// target, the number is right-censored at the last step: only "steps_to_target_censored" is set, to 1. An
/// entry's name ends both names ("steps_to_target.fast"). Values that are not finite reach nothing. A metric
/// without a finite value, such as a routing metric of a dense model, sets neither.
void set_steps_to_target(const std::vector<MetricOptions>& groups, const std::vector<TraceEntry>& trace,
                         MetricValues& values);

}  // namespace moelab
