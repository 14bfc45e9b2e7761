#pragma once

/// The axis of metrics: groups that a scenario chooses from. One table for validation, `moelab list`, the
/// claims' statistics, the reference documentation and measuring itself.

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/metrics/measured_data.h"
#include "analysis/stats/result_table.h"
#include "sim/base/arrays.h"
#include "sim/model/network.h"
#include "sim/train/experiment.h"

namespace moelab {

// What metrics are taken of beyond a model and a test set, and whether a run has it.

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

// What measures a group of metrics.

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
  /// A step could not be measured (analysis/metrics/measured_data.h): what is remembered is no longer of the
  /// one before.
  virtual void forget() {}
};

/// A metric that does not apply is left out.
inline void set(MetricValues& values, const std::string& name, const std::optional<double>& value) {
  if (value) values[name] = *value;
}

/// What a number of a run is of. Its text is the column of exports and the name in JSON:
/// [<evaluation>.]<metric>[_layer<layer>][.<variant>].
struct MetricKey {
  std::string evaluation = {};  ///< empty for the cell's own test data
  std::string metric;           ///< as its group declares it
  std::string variant = {};     ///< name of an entry of a group that is measured by entries, or empty
  std::optional<int> layer = std::nullopt;  ///< in models of several layers

  std::string text() const;
  /// The inverse of text(). A text that no metric has is a key whose metric there is not.
  static MetricKey parse(std::string_view text);
  auto operator<=>(const MetricKey&) const = default;
};

/// The metrics of one test set at one step.
using MeasuredValues = std::map<MetricKey, double>;

template <class Real>
using MakeMeter = std::unique_ptr<Meter<Real>>(const AnyOptions&, const MeterSetting<Real>&);

/// An entry of the table: name in "metrics", meaning and parameters. The help says what of the routing it
/// uses: `probabilities`, `selected`, `serving` (sim/model/gating/routing.h).
struct MetricGroup : KindEntry {
  struct Metric {
    std::string name;                     ///< the column of the export
    bool positive;                        ///< above zero by definition: claims compare its logarithms
    std::string help;                     ///< one line: equation, unit
    std::string axis_label = {};          ///< what figures call it at an axis, with its unit
    std::string legend_label = {};        ///< a shorter form for legends
    std::vector<const Need*> needs = {};  ///< beyond those of the group
  };
  std::vector<Metric> metrics;
  std::vector<const Need*> needs = {};  ///< what all of its metrics are taken of
  bool by_default = true;               ///< measured when a scenario names no metrics
  bool of_layers = false;   ///< of each layer, whose ending the names have where there are several
  bool of_entries = false;  ///< of each entry in "metrics", whose name ends their names behind a dot
  /// What parameters have to satisfy beyond their fields one by one. Throws InvalidOption below `path`; null
  /// for nothing.
  void (*check)(const AnyOptions&, const ExperimentOptions&, const std::string& path) = nullptr;
  /// Bytes that are kept of each row of a layer at each record; null for none.
  double (*kept_bytes)(const AnyOptions&) = nullptr;
  /// Null where a cell itself knows the values; the meter is null where nothing applies.
  PerPrecision<MakeMeter> make = {};
};

/// The table: adding a group is a new file and a line in metric_groups.cpp.
struct MetricAxis {
  using Entry = MetricGroup;
  static const std::vector<MetricGroup>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "metrics";
};
/// An element of "metrics".
using MetricOptions = OneOf<MetricAxis>;

const std::vector<MetricGroup>& metric_groups();

/// The entry of a group whose meter class `Made<Real>` is made from (Options, MeterSetting<Real>).
template <class Options, template <class> class Made>
MetricGroup metric_group(std::string name, std::string help, std::vector<MetricGroup::Metric> metrics) {
  MetricGroup group{{std::move(name), std::move(help), Options{}, Options{}}, std::move(metrics)};
  group.make = {make_from<Meter<float>, Options, Made<float>, const MeterSetting<float>&>,
                make_from<Meter<double>, Options, Made<double>, const MeterSetting<double>&>};
  return group;
}

/// Throws InvalidOption at `path`.k unless the model has k experts; dense models of a given width have none
/// to hold it against.
void check_set_size(int k, const ExperimentOptions& experiment, const std::string& path);

/// Throws InvalidOption below `path` ("metrics[1]").
void check(const MetricOptions& group, const ExperimentOptions& experiment, const std::string& path);

/// Null where the group has no meter, or nothing of it applies.
template <class Real>
std::unique_ptr<Meter<Real>> make_meter(const MetricOptions& group, const MeterSetting<Real>& setting) {
  const auto make = group.entry().make.of<Real>();
  return make ? make(group.options(), setting) : nullptr;
}

/// The names of all metrics, in the order of the table.
std::vector<std::string> metric_names();

/// The metrics of the group `name`; none where there is no such group.
std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name);

/// The group that declares the metric, by its own name (MetricKey::metric); null when there is none.
const MetricGroup* group_of(std::string_view metric);

/// The metric of a key's text ("contaminated.test_loss_top1", "silhouette_layer1"). Null when there is none.
const MetricGroup::Metric* find_metric(std::string_view text);
/// Of names in an expression (analysis/stats/expression.h): whether there is a metric among them.
bool has_metric(const std::vector<std::string>& names);
/// Whether it is a metric that is above zero by definition.
bool is_declared_positive(const std::string& name);
/// Whether there is a metric that is 1 where this one is right-censored (observation.h).
bool may_be_censored(const std::string& metric);

/// The name of the group that holds it; empty when there is none.
std::string group_of_metric(std::string_view text);

/// What the metric is taken of, the group's needs first; nothing where there is no such metric.
std::vector<const Need*> needs_of(std::string_view metric);

/// The first need of the metric that is not met; null where it is measured.
const Need* unmet_need(std::string_view metric, const MetricSubject& subject, int layer = 0);

}  // namespace moelab
