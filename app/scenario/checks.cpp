#include "app/scenario/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <unordered_set>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claim_points.h"
#include "analysis/stats/expression.h"
#include "app/scenario/arms.h"
#include "app/scenario/cells.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/data/file_data.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/best_fit.h"
#include "sim/train/least_squares.h"
#include "sim/train/train_options.h"

namespace moelab {
namespace {

/// Adds the names of an expression. Text that is not an expression is ignored here; other checks report it.
void add_names_of(const std::string& text, std::set<std::string>& names) {
  try {
    for (const std::string& name : Expression::parse(text, "").names()) names.insert(name);
  } catch (const InvalidOption&) {
  }
}

/// Adds the names in every text that contains an operator.
void add_names(const Json& part, std::set<std::string>& names) {
  if (part.is_structured()) {
    for (const Json& element : part) add_names(element, names);
  } else if (part.is_string() && part.get_ref<const std::string&>().find(' ') != std::string::npos) {
    add_names_of(part.get<std::string>(), names);
  }
}

void add_names(const ClaimSide& side, std::set<std::string>& names) {
  add_names_of(side.metric, names);
  add_names_of(side.value, names);
}

void add_names(const Claim& claim, std::set<std::string>& names) {
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    add_names(comparison->left, names);
    add_names(comparison->right, names);
  } else if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) {
    add_names(trend->side, names);
  }
}

std::optional<double> number_of(const ExperimentOptions& experiment, const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string part = path.substr(0, dot), rest = path.substr(dot + 1);
  if (part == "data") return value_at<double>(experiment.data, rest);
  if (part == "model") return value_at<double>(experiment.model, rest);
  if (part == "loss") return value_at<double>(experiment.loss, rest);
  if (part == "train") return value_at<double>(experiment.train, rest);
  return std::nullopt;
}

/// Measured if train.until is set, for any chosen groups.
constexpr const char* kUntilReached = "until_reached";

bool is_chosen(const CellOptions& cell, const std::string& group) {
  return std::any_of(cell.metrics.begin(), cell.metrics.end(),
                     [&](const MetricOptions& each) { return each.chosen() == group; });
}

/// The prefixes of metric names: evaluations, phases, and evaluations of phases.
std::vector<std::string> test_sets(const CellOptions& cell) {
  std::vector<std::string> names;
  for (const auto& evaluation : cell.evaluations) names.push_back(evaluation.first);
  for (const PhaseOptions& phase : cell.experiment.phases) {
    names.push_back(phase.name);
    for (const auto& evaluation : cell.evaluations) names.push_back(phase.name + "." + evaluation.first);
  }
  return names;
}

void check_evaluation(const CellOptions& cell, const MetricKey& key, const std::string& path) {
  if (key.evaluation.empty()) return;
  const std::vector<std::string> names = test_sets(cell);
  if (std::find(names.begin(), names.end(), key.evaluation) == names.end())
    throw UserError(path, unknown_name("evaluation", key.evaluation, names));
}

/// The number of layers that route rows; 1 for a dense model.
int layers_of(const ModelOptions& model) {
  return mixtures_of(model) > 0 ? mixtures_of(model) : 1;
}

/// Checks the layer of a routing metric. It is required if several layers route rows, and it must exist.
void check_layer(const CellOptions& cell, const MetricKey& key, bool of_layers, const std::string& path) {
  const ModelOptions& model = cell.experiment.model;
  const int layers = layers_of(model);
  const bool names_layer = of_layers && layers > 1;
  if (key.layer.has_value() == names_layer && key.layer.value_or(0) < layers) return;
  const bool is_transformer = model.kind.as<TransformerOptions>() != nullptr;
  throw UserError(path, fmt::format("got '{}', needs {} for {} = {}", key.text(),
                                    names_layer ? fmt::format("an ending _layer0 … _layer{}", layers - 1)
                                                : "no ending of a layer",
                                    is_transformer ? "mixtures of the model" : "model.layers", layers));
}

/// The user's name of an entry of "metrics"; empty if it has none.
std::string name_of(const MetricOptions& entry) {
  return value_at<std::string>(entry, "name").value_or("");
}

/// The metrics of the group's entries.
std::vector<std::string> entry_metrics(const CellOptions& cell, const MetricGroup& group) {
  std::vector<std::string> names;
  for (const MetricOptions& entry : cell.metrics) {
    if (entry.chosen() != group.name) continue;
    for (const MetricGroup::Metric& metric : group.metrics)
      names.push_back(MetricKey{.metric = metric.name, .variant = name_of(entry)}.text());
  }
  return names;
}

void check_entry(const CellOptions& cell, const MetricGroup& group, const MetricKey& key,
                 const std::string& path) {
  const std::vector<std::string> names = entry_metrics(cell, group);
  if (std::find(names.begin(), names.end(), key.text()) == names.end())
    throw UserError(path, unknown_name("metric", key.text(), names));
}

/// A test set, found by the prefix of its metrics: an evaluation, a phase or an evaluation of a phase.
/// A name without a phase means the end of the last phase.
struct TestSet {
  std::optional<std::size_t> phase;
  const DataOptions& data;
  bool is_own;
};

TestSet tested_on(const CellOptions& cell, std::string_view name) {
  const std::vector<PhaseOptions>& phases = cell.experiment.phases;
  std::optional<std::size_t> phase;
  if (!phases.empty()) phase = phases.size() - 1;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string& own = phases[i].name;
    if (name != own && !name.starts_with(own + ".")) continue;
    phase = i;
    name.remove_prefix(std::min(name.size(), own.size() + 1));
    break;
  }
  if (name.empty()) return {phase, phase ? phases[*phase].data : cell.experiment.data, true};
  const NamedData& evaluations = phase ? cell.phase_evaluations[*phase] : cell.evaluations;
  const auto found = std::find_if(evaluations.begin(), evaluations.end(),
                                  [&](const auto& evaluation) { return evaluation.first == name; });
  return {phase, found->second, false};
}

/// Whether the phase is recorded before its end. The first phase is also recorded at its start.
bool is_recorded_again(const ExperimentOptions& experiment, std::optional<std::size_t> phase) {
  if (phase.value_or(0) == 0) return true;
  const PhaseOptions& own = experiment.phases[*phase];
  const std::int64_t steps = total_steps(own.train, own.data.train_samples.value_or(0));
  return record_interval(own.train, steps) < steps;
}

/// Rejects arrays that exceed memory (more than 8 GB in double) before any allocation.
void check_size(const DataOptions& data) {
  constexpr std::int64_t kMostNumbers = 1'000'000'000;
  const Json json = options_json(data);
  const std::optional<std::int64_t> dim = value_at<std::int64_t>(json, "dim");
  if (!dim) return;
  const std::int64_t width = *dim * value_at<std::int64_t>(json, "tokens").value_or(1);
  for (const char* rows : {"clusters", "train_samples", "test_samples"}) {
    const std::optional<std::int64_t> count = value_at<std::int64_t>(json, rows);
    if (!count || *count <= kMostNumbers / width) continue;
    throw UserError(std::string("data.") + rows,
                    fmt::format("got {} rows of {} numbers, needs at most {} numbers in all", *count, width,
                                kMostNumbers));
  }
}

/// Checks that the entries of a list are distinct.
void check_distinct(const std::vector<Json>& names, const std::string& list) {
  std::set<Json> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second)
      throw UserError(join_path(list, i), "got " + names[i].dump() + " a second time");
  }
}

/// Rejects repeated files, because their samples would count twice.
void check_distinct_files(const DataOptions& data) {
  const std::string list = "paths";
  std::set<std::string> seen;
  std::size_t i = 0;
  for (const auto& [field, file] : files_of(data)) {
    if (field != list) continue;
    std::error_code unseen;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(file, unseen);
    if (!seen.insert(unseen ? file : whole.string()).second)
      throw UserError(join_path("data." + list, i),
                      "got '" + file + "' a second time, needs distinct files and folders");
    ++i;
  }
}

std::unique_ptr<Problem> small_problem(const DataOptions& data) {
  return draw_problem(small_data(data), Seeds{1, 0});
}

/// Contaminates no rows, which throws if the options do not fit the rows of the data.
void check_contamination(const DataOptions& data) {
  if (data.contamination.entry().contaminate == nullptr) return;
  Matrix rows;
  contaminate(data.contamination, small_problem(data)->layout(), Seeds{1, 0}, rows);
}

/// The options that affect the shape of a row. The options common to all generators are removed.
Json shaping(DataOptions data) {
  const DataOptions defaults;
  data.contamination = defaults.contamination;
  data.train_samples = defaults.train_samples;
  data.test_samples = defaults.test_samples;
  data.independent = defaults.independent;
  return options_json(data);
}

/// Describes a shape: "sequences of 4 rows of 3 inputs, 2 outputs a row".
std::string shape_text(const Layout& layout) {
  if (layout.vocabulary > 0)
    return fmt::format("sequences of {} tokens, {} in all", layout.tokens, layout.vocabulary);
  const std::string sequences = layout.sequences ? fmt::format("sequences of {} ", layout.tokens) : "";
  const std::string image =
      layout.image.size() > 0 ? fmt::format(" ({} of an image)", layout.image.size()) : "";
  return fmt::format("{}rows of {} inputs{}, {} outputs{}", sequences, layout.input_dim, image,
                     layout.output_dim, layout.target_per_token ? " a row" : "");
}

/// The sweep axes of a variant. An invalid sweep of a profile is reported when that profile is chosen.
std::vector<SweepAxis> axes_of(const Json& variant) {
  try {
    return read_sweep(variant.value("sweep", Json::object()));
  } catch (const InvalidOption&) {
    return {};
  }
}

/// Distinct texts in the order of their first occurrence.
class DistinctTexts {
 public:
  void add(const std::string& text) {
    if (known_.insert(text).second) texts_.push_back(text);
  }
  bool has(const std::string& text) const { return known_.contains(text); }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::unordered_set<std::string> known_;
  std::vector<std::string> texts_;
};

/// The names that occur in any variant.
struct LabelledNames {
  DistinctTexts names;                          ///< arms, swept paths and "step"
  std::map<std::string, DistinctTexts> values;  ///< by swept path; none for a searched path

  LabelledNames() { names.add("step"); }

  void add(const Json& variant) {
    if (!variant.contains("arms")) names.add("base");
    for (const WrittenArm& arm : written_arms(variant.value("arms", Json::object()))) names.add(arm.name);
    for (const SweepAxis& axis : axes_of(variant)) {
      for (const std::string& path : axis.paths) names.add(path);
      if (!axis.crossing.is_null()) continue;
      for (const std::vector<Override>& step : axis.steps)
        for (const Override& change : step)
          values[change.path].add(value_text(read_sweep_value(change.value)));
    }
  }
};

void check_label(const LabelledNames& known, const std::string& name) {
  const std::size_t equals = name.find('=');
  const std::string path = name.substr(0, equals);
  if (known.names.has(name) || find_metric(name)) return;
  if (!known.names.has(path)) {
    std::vector<std::string> names = known.names.all();
    for (const std::string& metric : metric_names()) names.push_back(metric);
    throw UserError(join_path("labels", name), unknown_name("arm, swept path or metric", name, names));
  }
  const auto found = known.values.find(path);
  if (found == known.values.end()) return;
  const std::string text = name.substr(equals + 1);
  if (!found->second.has(text))
    throw UserError(join_path("labels", name), unknown_name("value of " + path, text, found->second.all()));
}

/// Whether the group of the metric is measured at the last record alone.
bool is_of_last_record(const CellOptions& cell, const std::string& metric) {
  const MetricGroup* const group = group_of(MetricKey::parse(metric).metric);
  return group && std::any_of(cell.metrics.begin(), cell.metrics.end(), [&](const MetricOptions& entry) {
           return entry.chosen() == group->name && entry.records == MetricOptions::Records::last;
         });
}

/// Throws UserError if the metric exists only at the end of the training or of a phase.
void check_recorded(const CellOptions& cell, const std::string& metric, const std::string& path) {
  const std::string evaluation = MetricKey::parse(metric).evaluation;
  const std::vector<PhaseOptions>& phases = cell.experiment.phases;
  const bool is_of_phase = std::any_of(phases.begin(), phases.end(), [&](const PhaseOptions& phase) {
    return evaluation == phase.name || evaluation.starts_with(phase.name + ".");
  });
  if (is_of_phase || is_of_end_alone(metric) || is_of_last_record(cell, metric))
    throw UserError(path, "got '" + metric + "', needs a metric of every recorded step");
}

/// Rejects a metric that is compared with the last step. Rules that act during training cannot wait for that
/// step.
void check_known_at_once(const std::string& metric, const std::string& path) {
  const std::vector<const Need*> all = needs_of(MetricKey::parse(metric).metric);
  if (std::find(all.begin(), all.end(), &needs::last_step) != all.end())
    throw UserError(path, "got '" + metric + "', needs a metric that is known before the last step");
}

/// Checks the arm of a side or a trend, its reference arms, and the metrics. All arms must measure the
/// metrics.
void check_measured(const References& references, const ClaimSide& side, const std::string& path,
                    const char* metric_key = "metric") {
  const std::string metric_path = join_path(path, metric_key);
  const Expression expression = Expression::parse(side.metric, metric_path);
  if (!side.distance_from.empty() && !expression.is_name())
    throw UserError(metric_path, "got '" + side.metric + "', needs one metric with 'distance_from'");
  ErrorList errors;
  const auto check_arm = [&](const std::string& arm, const char* key) {
    const bool is_known = errors.check([&] { references.check_arm(arm, join_path(path, key)); });
    // An unknown name of a metric does not depend on the arm.
    const std::string& measured = is_known ? arm : references.table().arms.front();
    errors.check([&] {
      for (const std::string& name : expression.names())
        if (is_known || !find_metric(name)) references.check_part(measured, name, metric_path);
    });
  };
  check_arm(side.arm, "arm");
  if (!side.relative_to.empty()) check_arm(side.relative_to, "relative_to");
  if (!side.distance_from.empty()) check_arm(side.distance_from, "distance_from");
  errors.throw_any();
}

/// A constant side is evaluated at the point of the other side.
void check_side(const References& references, const ClaimSide& side, const ClaimSide& other,
                const std::string& path) {
  if (side.is_constant()) {
    const std::string here = join_path(path, "value");
    for (const std::string& name : Expression::parse(side.value, here).names()) {
      if (other.is_constant())
        references.check_number(name, here);
      else
        references.check_part(other.arm, name, here);
    }
    return;
  }
  check_measured(references, side, path, side.is_from_value ? "value" : "metric");
  if (!side.step) return;
  references.check_step(side.arm, *side.step, join_path(path, "step"));
  for (const std::string& name : Expression::parse(side.metric, join_path(path, "metric")).names())
    references.check_metric_at(name, *side.step, join_path(path, "step"));
  if (!side.relative_to.empty()) {
    references.check_step(side.relative_to, *side.step, join_path(path, "step"));
  }
}

void check_statement(const References& references, const RowIndex& rows, const Regime& regime,
                     const Comparison& claim, const std::string& path) {
  ErrorList errors;
  errors.check([&] { check_side(references, claim.left, claim.right, join_path(path, "left")); });
  errors.check([&] { check_side(references, claim.right, claim.left, join_path(path, "right")); });
  errors.throw_any();
  if (const std::string metric = matched_metric(claim.matched); !metric.empty()) {
    for (const ClaimSide* side : {&claim.left, &claim.right})
      references.check_metric(side->arm, metric, join_path(path, "matched"));
  }
  find_points(claim, regime, rows, path);
}

/// Checks that the arm sweeps the path along which a claim follows it.
void check_sweeps(const References& references, const std::string& arm, const std::string& along,
                  const std::string& path) {
  if (references.table().sweeps(arm, along)) return;
  throw UserError(path, fmt::format("got '{}', which the arm '{}' does not sweep; needs an arm that does, or "
                                    "another path",
                                    along, arm));
}

void check_statement(const References& references, const RowIndex& rows, const Regime& regime,
                     const Trend& claim, const std::string& path) {
  check_measured(references, claim.side, path);
  references.check_swept(claim.along, "step", join_path(path, "along"));
  check_sweeps(references, claim.side.arm, claim.along, join_path(path, "along"));
  if (claim.along != "step") {
    std::set<std::string> values;
    for (const ResultRow& row : references.table().rows) {
      if (const SweepValue* const value = row.coordinate(claim.along)) values.insert(value->canonical());
    }
    if (values.size() < 2)
      throw UserError(join_path(path, "along"), "a trend needs at least two swept values");
  } else {
    const ClaimStep recorded = {ClaimStep::At::recorded, 1};
    for (const std::string& name : Expression::parse(claim.side.metric, join_path(path, "metric")).names())
      references.check_metric_at(name, recorded, join_path(path, "along"));
  }
  find_points(claim, regime, rows, path);
}

void check_statement(const References& references, const RowIndex&, const Regime&, const RateClaim& claim,
                     const std::string& path) {
  const RateQuery& query = claim.query;
  references.check_arm(query.arm, join_path(path, "arm"));
  references.check_metric(query.arm, query.metric, join_path(path, "metric"));
  if (const std::string* const than = std::get_if<std::string>(&claim.against)) {
    references.check_arm(*than, join_path(path, "than"));
    references.check_metric(*than, query.metric, join_path(path, "metric"));
  }
  references.check_sizes(query.where, claim.window, query.along, {query.along}, path,
                         join_path(path, "along"));
  check_sweeps(references, query.arm, query.along, join_path(path, "along"));
}

/// The arms whose metrics a claim compares.
std::set<std::string> arms_of(const Claim& claim) {
  std::set<std::string> arms;
  const auto add = [&](const ClaimSide& side) {
    for (const std::string& arm : {side.arm, side.relative_to, side.distance_from})
      if (!arm.empty()) arms.insert(arm);
  };
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    add(comparison->left);
    add(comparison->right);
  } else if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) {
    add(trend->side);
  } else {
    const RateClaim& rate = std::get<RateClaim>(claim.statement);
    arms.insert(rate.query.arm);
    if (const std::string* const than = std::get_if<std::string>(&rate.against)) arms.insert(*than);
  }
  return arms;
}

/// Checks that a tuned arm sets every path of "tune". `moelab tune` writes its values there.
void check_tuned(const Scenario& scenario, const Claim& claim, const std::string& path) {
  const std::string here = join_path(path, "tuned");
  if (scenario.tune.empty())
    throw UserError(here, "got true, needs \"tune\", which says what is chosen for each arm");
  for (const std::string& name : arms_of(claim)) {
    const auto arm = std::find_if(scenario.arm_overrides.begin(), scenario.arm_overrides.end(),
                                  [&](const Arm& each) { return each.name == name; });
    for (const TuneRange& tuned : scenario.tune) {
      const bool is_set = arm != scenario.arm_overrides.end() &&
                          std::any_of(arm->overrides.begin(), arm->overrides.end(),
                                      [&](const Override& change) { return change.path == tuned.path; });
      if (!is_set)
        throw UserError(
            here, "got true, but arms." + name + " does not set " + tuned.path + ", which \"tune\" names");
    }
  }
}

/// Checks that a value of a searched path lies within the ends. The values themselves are not known yet.
void check_within_ends(const CrossingSearch& search, const SweepPoint& point, const std::string& path) {
  for (const auto& [name, value] : point) {
    const auto number = value.number();
    if (name != search.path || (number && *number >= search.low && *number <= search.high)) continue;
    throw UserError(join_path(path, name),
                    fmt::format("got {}, needs a value between the ends of the crossing: {} to {}",
                                value.text(), search.low, search.high));
  }
}

/// Checks that "at" of a claim only names points that every run of the search has.
void check_within_ends(const CrossingSearch& search, const Claim& claim, const std::string& path) {
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    check_within_ends(search, comparison->left.where, join_path(join_path(path, "left"), "where"));
    check_within_ends(search, comparison->right.where, join_path(join_path(path, "right"), "where"));
  } else if (const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement)) {
    check_within_ends(search, rate->query.where, join_path(path, "where"));
  }
}

}  // namespace

std::map<std::string, double> fixed_numbers(const Scenario& scenario) {
  std::set<std::string> names;
  for (const Claim& claim : scenario.claims) add_names(claim, names);
  add_names(scenario.written_figures, names);
  if (scenario.crossing) add_names_of(scenario.crossing->metric, names);
  std::map<std::string, double> fixed;
  for (const std::string& name : names) {
    const std::vector<std::string>& swept = scenario.sweep_paths;
    if (scenario.cells.empty() || std::find(swept.begin(), swept.end(), name) != swept.end()) continue;
    const std::optional<double> number = number_of(scenario.cells.front().options->experiment, name);
    const bool is_shared =
        number && std::all_of(scenario.cells.begin(), scenario.cells.end(), [&](const Cell& cell) {
          // All seeds share their options, so seed 0 is enough.
          return cell.seed != 0 || number_of(cell.options->experiment, name) == number;
        });
    if (is_shared) fixed[name] = *number;
  }
  return fixed;
}

struct MeasuredMetrics::Subject {
  ExperimentOptions experiment;
  MetricSubject metrics;

  Subject(const CellOptions& cell, const TestSet& test)
      : experiment(cell.experiment),
        metrics(experiment, experiment.data, Seeds{1, 0}, test.is_own, nullptr,
                is_recorded_again(experiment, test.phase)) {
    if (test.phase) {
      experiment.loss = experiment.phases[*test.phase].loss;
      experiment.train = experiment.phases[*test.phase].train;
    }
    experiment.data = small_data(test.data);
  }
};

const MetricSubject& MeasuredMetrics::subject(const std::string& evaluation) const {
  std::shared_ptr<const Subject>& known = subjects_[evaluation];
  if (!known) known = std::make_shared<const Subject>(cell_, tested_on(cell_, evaluation));
  return known->metrics;
}

void MeasuredMetrics::check(const std::string& metric, const std::string& path,
                            const std::string& arm) const {
  const MetricKey key = MetricKey::parse(metric);
  const MetricGroup* const group = group_of(key.metric);
  if (!group) throw UserError(path, unknown_name("metric", metric, metric_names()));
  if (!group->of_entries) {
    check_evaluation(cell_, key, path);
    check_layer(cell_, key, group->of_layers, path);
  }
  if (!is_chosen(cell_, group->name) && key.metric != kUntilReached) {
    throw UserError(path, fmt::format("'{}' belongs to the group '{}', which \"metrics\" leaves out", metric,
                                      group->name));
  }
  if (group->of_entries) return check_entry(cell_, *group, key, path);
  if (const Need* const need = unmet_need(key.metric, subject(key.evaluation), key.layer.value_or(0))) {
    const std::string who = arm.empty() ? "got" : fmt::format("arm '{}' has no", arm);
    throw UserError(path, fmt::format("{} '{}', which needs {}", who, metric, need->what));
  }
}

std::vector<std::string> MeasuredMetrics::names() const {
  std::vector<std::string> sets = test_sets(cell_), names;
  sets.emplace_back();
  const int layers = layers_of(cell_.experiment.model);
  for (const MetricGroup& group : metric_groups()) {
    const bool all = is_chosen(cell_, group.name);
    if (group.of_entries) {
      const std::vector<std::string> own = entry_metrics(cell_, group);
      names.insert(names.end(), own.begin(), own.end());
      continue;
    }
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (!all && metric.name != kUntilReached) continue;
      for (const std::string& set : sets) {
        for (int layer = 0; layer < (group.of_layers ? layers : 1); ++layer) {
          if (unmet_need(metric.name, subject(set), layer)) continue;
          MetricKey key{.evaluation = set, .metric = metric.name};
          if (group.of_layers && layers > 1) key.layer = layer;
          names.push_back(key.text());
        }
      }
    }
  }
  return names;
}

std::string MeasuredMetrics::missing_for(const MetricGroup& group) const {
  if (group.of_entries) return "";
  std::vector<std::string> sets = test_sets(cell_);
  sets.emplace_back();
  const int layers = group.of_layers ? layers_of(cell_.experiment.model) : 1;
  std::string missing;
  for (const MetricGroup::Metric& metric : group.metrics) {
    for (const std::string& set : sets) {
      for (int layer = 0; layer < layers; ++layer) {
        const Need* const need = unmet_need(metric.name, subject(set), layer);
        if (!need) return "";
        if (missing.empty()) missing = need->what;
      }
    }
  }
  return missing;
}

bool is_of_end_alone(const std::string& metric) {
  const std::string name = MetricKey::parse(metric).metric;
  const MetricGroup* const group = group_of(name);
  // Training costs are counted at every recorded step.
  return group && !group->make_row_meter && !group->make_model_meter &&
         (group->name != "training" || name == kUntilReached);
}

References::References(const Scenario& scenario) : scenario_(scenario) {
  table_.arms = scenario.arms;
  table_.sweep_paths = scenario.sweep_paths;
  table_.fixed = fixed_numbers(scenario);
  if (scenario.crossing) table_.searched_path = scenario.crossing->path;
  std::map<std::string, std::set<const MeasuredMetrics*>> seen;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    cells_[cell.arm].push_back(cell.options.get());
    const MeasuredMetrics* const measured =
        &metrics_.try_emplace(cell.options.get(), *cell.options).first->second;
    if (seen[cell.arm].insert(measured).second) measured_[cell.arm].push_back(measured);
    table_.rows.push_back({"", cell.arm, 0, cell.point, "missing", {}, {}});
  }
  repeat_unswept(table_);
  std::erase_if(table_.rows, [&](const ResultRow& row) { return row.arm != scenario.arms.front(); });
}

void References::check_arm(const std::string& arm, const std::string& path) const {
  if (!cells_.contains(arm)) throw UserError(path, unknown_name("arm", arm, table_.arms));
}

void References::check_swept(const std::string& name, const std::string& other,
                             const std::string& path) const {
  std::vector<std::string> allowed = table_.sweep_paths;
  if (!other.empty()) allowed.push_back(other);
  if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return;
  throw UserError(path, unknown_name("swept path", name, allowed));
}

void References::check_metric(const std::string& arm, const std::string& metric,
                              const std::string& path) const {
  if (!find_metric(metric)) throw UserError(path, unknown_name("metric", metric, metric_names()));
  check_arm(arm, path);
  for (const MeasuredMetrics* const measured : measured_.at(arm)) measured->check(metric, path, arm);
}

void References::check_numbers(const std::string& swept, const std::string& path) const {
  for (const ResultRow& row : table_.rows) {
    const SweepValue* const value = row.coordinate(swept);
    if (value && !value->number())
      throw UserError(path, fmt::format("{} has the value {}, needs numbers", swept, value->text()));
  }
}

void References::check_number(const std::string& name, const std::string& path) const {
  if (table_.fixed.contains(name)) return;
  check_swept(name, "", path);
  check_numbers(name, path);
}

void References::check_part(const std::string& arm, const std::string& name, const std::string& path) const {
  const std::vector<std::string>& swept = table_.sweep_paths;
  if (table_.fixed.contains(name)) return;
  if (std::find(swept.begin(), swept.end(), name) != swept.end()) return check_numbers(name, path);
  if (find_metric(name)) return check_metric(arm, name, path);
  std::vector<std::string> allowed = metric_names();
  allowed.insert(allowed.end(), swept.begin(), swept.end());
  throw UserError(path, unknown_name(swept.empty() ? "metric" : "metric or swept path", name, allowed));
}

void References::check_step(const std::string& arm, const ClaimStep& step, const std::string& path) const {
  if (step.at != ClaimStep::At::recorded) return;
  for (const CellOptions* const cell : cells_.at(arm)) {
    std::int64_t before = 0;  // steps of earlier phases
    bool is_recorded = false;
    std::string every;  // intervals of the recorded steps, for the message
    const auto look_at = [&](const TrainOptions& train, const DataOptions& data) {
      if (is_least_squares(train)) {
        throw UserError(
            path, fmt::format("got {}, but a least-squares fit records its start and end alone", step.step));
      }
      const std::int64_t steps = total_steps(train, data.train_samples.value_or(0));
      const std::int64_t interval = record_interval(train, steps), own = step.step - before;
      is_recorded |= own >= 0 && own <= steps && (own == steps || own % interval == 0);
      before += steps;
      every += fmt::format("{}{}", every.empty() ? "" : " or, in a later phase, ", interval);
    };
    const ExperimentOptions& experiment = cell->experiment;
    if (experiment.phases.empty()) look_at(experiment.train, experiment.data);
    for (const PhaseOptions& phase : experiment.phases) look_at(phase.train, phase.data);
    if (step.step > before)
      throw UserError(path, fmt::format("got {}, needs a step of the run, at most {}", step.step, before));
    if (!is_recorded) {
      throw UserError(path, fmt::format("got {}, needs a recorded step: a multiple of {}, or the last",
                                        step.step, every));
    }
  }
}

void References::check_metric_at(const std::string& metric, const ClaimStep& step,
                                 const std::string& path) const {
  if (step.at == ClaimStep::At::end) return;
  const bool is_last = std::any_of(scenario_.cells.begin(), scenario_.cells.end(), [&](const Cell& cell) {
    return cell.seed == 0 && is_of_last_record(*cell.options, metric);
  });
  if (is_of_end_alone(metric) || is_last)
    throw UserError(path, fmt::format("given for '{}', which is known at the end alone", metric));
  const std::vector<const Need*> all = needs_of(MetricKey::parse(metric).metric);
  const bool is_of_change = std::any_of(all.begin(), all.end(), [](const Need* need) {
    return need == &needs::step_before || need == &needs::probabilities_before;
  });
  const bool is_start = step.at == ClaimStep::At::start || step.step == 0;
  if (is_start && is_of_change)
    throw UserError(path, fmt::format("is the start, where '{}' has no step before it", metric));
}

void References::check_saved(const std::string& arm, const std::string& arrays,
                             const std::string& path) const {
  for (const CellOptions* const cell : cells_.at(arm)) {
    if (mixtures_of(cell->experiment.model) == 0)
      throw UserError(path, "shows arm '" + arm + "', which is dense and has no routing");
    if (!cell->saved.contains(arrays))
      throw UserError(path, "shows arm '" + arm + "', needs \"save\": [\"" + arrays + "\"]");
  }
}

void References::check_saved_cells(
    const std::vector<std::string>& arms, const SweepPoint& where,
    const std::function<void(const std::string& arm, const MetricSubject&)>& check) const {
  std::set<std::string> seen;  // pairs of model and data
  for (const Cell& cell : scenario_.cells) {
    // A cell stands at every value of a path that its arm does not sweep.
    const bool is_there = std::all_of(where.begin(), where.end(), [&](const auto& coordinate) {
      const SweepValue* const own = coordinate_of(cell.point, coordinate.first);
      return !own || *own == coordinate.second;
    });
    if (cell.seed != 0 || std::find(arms.begin(), arms.end(), cell.arm) == arms.end() || !is_there) continue;
    ExperimentOptions experiment = cell.options->experiment;
    const DataOptions& data = last_data(*cell.options);
    if (!seen.insert(options_json(experiment.model).dump() + options_json(data).dump()).second) continue;
    experiment.data = small_data(data);
    check(cell.arm, MetricSubject(experiment, experiment.data, Seeds{1, 0}, true));
  }
}

std::set<int> References::saved_input_widths(const std::string& arm, const SweepPoint& where) const {
  const std::vector<const CellOptions*>& cells = cells_.at(arm);
  // A search can give an arm its own points. All of them are then checked.
  const bool has_points_of_table = cells.size() == table_.rows.size();
  std::set<std::string> seen;
  std::set<int> widths;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (has_points_of_table && !table_.rows[i].is_at(where)) continue;
    // Arrays are saved at the end of the last phase.
    const DataOptions& data = last_data(*cells[i]);
    if (!seen.insert(options_json(data).dump()).second) continue;
    const Layout layout = draw_problem(small_data(data), Seeds{1, 0})->layout();
    // A row of token ids has two columns: the id and its position.
    widths.insert(layout.vocabulary > 0 ? 2 : static_cast<int>(layout.input_shape(1).back()));
  }
  return widths;
}

std::vector<const SweepPoint*> References::check_where(const SweepPoint& where,
                                                       const std::string& path) const {
  const std::string where_path = join_path(path, "where");
  for (const auto& coordinate : where)
    check_swept(coordinate.first, "", join_path(where_path, coordinate.first));
  std::vector<const SweepPoint*> points;
  for (const ResultRow& row : table_.rows) {
    if (row.is_at(where)) points.push_back(&row.point);
  }
  if (points.empty()) {
    throw UserError(where_path, "got " + abbreviated(point_json(where)) + ", which is no point of the sweep");
  }
  return points;
}

void References::check_axes(const SweepPoint& where, const std::vector<std::string>& axes,
                            const std::string& path) const {
  std::set<std::string> drawn;
  for (const SweepPoint* point : check_where(where, path)) {
    SweepPoint coordinates;
    for (const auto& coordinate : *point) {
      if (std::find(axes.begin(), axes.end(), coordinate.first) != axes.end())
        coordinates.push_back(coordinate);
    }
    if (drawn.insert(canonical_text(point_json(coordinates))).second) continue;
    throw UserError(join_path(path, "where"),
                    fmt::format("leaves several sweep points for one point of the figure; needs a value "
                                "for every swept path that is not one of {}",
                                fmt::join(axes, ", ")));
  }
}

void References::check_sizes(const SweepPoint& where, const std::vector<double>& window,
                             const std::string& along, const std::vector<std::string>& axes,
                             const std::string& path, const std::string& along_path) const {
  check_swept(along, "", along_path);
  check_axes(where, axes, path);
  const std::string window_path = join_path(path, "window");
  if (!window.empty() && (window.size() != 2 || window[0] >= window[1]))
    throw UserError(window_path, fmt::format("got [{}], needs [least n, most n]", fmt::join(window, ",")));
  std::set<double> sizes;
  for (const ResultRow& row : table_.rows) {
    const SweepValue* const value = row.coordinate(along);
    if (!value) continue;
    if (!value->number() || *value->number() <= 1) {
      throw UserError(along_path,
                      "has the value " + abbreviated(to_json(*value)) + ", needs numbers above 1");
    }
    const double n = *value->number();
    if (window.empty() || (n >= window[0] && n <= window[1])) sizes.insert(n);
  }
  if (sizes.size() < 3) {
    throw UserError(window.empty() ? along_path : window_path,
                    fmt::format("leaves {} values, a slope needs at least three", sizes.size()));
  }
}

void check_ids(const std::vector<std::string>& ids, const std::string& path) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string here = join_path(join_path(path, i), "id");
    check_name(ids[i], here);
    if (!seen.insert(ids[i]).second)
      throw UserError(here, "got '" + ids[i] + "' a second time, needs distinct ids");
  }
}

void check_figures(const Scenario& scenario) {
  std::vector<std::string> ids;
  for (const FigureOptions& figure : scenario.figures) ids.push_back(common_of(figure).id);
  check_ids(ids, "figures");
  const References references(scenario);
  ErrorList errors;
  for (std::size_t i = 0; i < scenario.figures.size(); ++i) {
    const FigureOptions& figure = scenario.figures[i];
    errors.check([&] { figure.entry().check(references, figure.options(), join_path("figures", i)); });
    errors.check([&] {
      const std::vector<std::string>& arms = common_of(figure).arms;
      check_distinct({arms.begin(), arms.end()}, join_path(join_path("figures", i), "arms"));
    });
    errors.check([&] {
      if (const auto& style = common_of(figure).style) style->check(join_path("figures", i) + ".style");
    });
  }
  errors.throw_any();
}

void check_name(const std::string& name, const std::string& path) {
  constexpr std::size_t kLongest = 100;  // a file name has at most 255 bytes, and suffixes are added
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool is_allowed = !name.empty() && name.size() <= kLongest && name.front() != '.' &&
                          name.front() != '-' && name.find_first_not_of(kAllowed) == std::string::npos;
  if (is_allowed) return;
  throw UserError(path,
                  fmt::format("got {}, needs a name of at most {} letters, digits, . _ - that begins with a "
                              "letter, a digit or _",
                              abbreviated(name), kLongest));
}

void check_config(const CellOptions& cell) {
  check_size(cell.experiment.data);
  check_distinct_files(cell.experiment.data);
  check(cell.experiment);
  check_contamination(cell.experiment.data);
  std::vector<Json> groups;
  for (std::size_t i = 0; i < cell.metrics.size(); ++i) {
    check(cell.metrics[i], cell.experiment, join_path("metrics", i));
    const std::string kind = cell.metrics[i].chosen(), name = name_of(cell.metrics[i]);
    groups.push_back(name.empty() ? Json(kind) : Json::array({kind, name}));
  }
  check_distinct(groups, "metrics");
  if (!cell.saved.contains("routing_steps")) return;
  for (const DataOptions* const data : data_of(cell)) {
    if (data->contamination.entry().is_attack())
      throw UserError("save",
                      "got \"routing_steps\", but an attack changes the test rows at each record; needs "
                      "\"routing\", or no attack");
  }
}

/// The name of a phase is unique, also among evaluations. No evaluation name may start with the metric prefix
/// of a phase.
void check_phase_names(const CellOptions& cell) {
  std::set<std::string> seen;
  for (const auto& evaluation : cell.evaluations) seen.insert(evaluation.first);
  for (std::size_t i = 0; i < cell.experiment.phases.size(); ++i) {
    const std::string& name = cell.experiment.phases[i].name;
    const std::string path = join_path(join_path("phases", i), "name");
    check_name(name, path);
    if (name.find('.') != std::string::npos)
      throw UserError(path, "got '" + name + "', needs a name without dots");
    if (!seen.insert(name).second)
      throw UserError(path, "got '" + name + "', which another phase or an evaluation has");
    for (const auto& evaluation : cell.evaluations) {
      if (!evaluation.first.starts_with(name + ".")) continue;
      throw UserError(
          join_path("evaluations", evaluation.first),
          fmt::format("begins with the name of the phase '{}' and a dot, as metrics of that phase "
                      "do; needs another name",
                      name));
    }
  }
}

void check_separation(const Scenario& scenario) {
  std::set<std::string> drawn;
  const CellOptions* known = nullptr;  // cells that differ in their seed share their options
  struct Separated {
    std::string place;  ///< empty, or the evaluation
    std::string text;
    DataOptions data;
  };
  std::vector<Separated> separated;
  const auto look_at = [&](DataOptions data, const std::string& place) {
    if (!value_at<double>(data, "separation")) return;
    // Sample counts do not affect the means. One draw therefore serves the whole sweep over them.
    if (data.train_samples) data.train_samples = 1;
    data.test_samples = 1;
    data.contents = nullptr;
    separated.push_back({place, options_json(data).dump(), data});
  };
  const auto look_at_each = [&](const NamedData& evaluations) {
    for (const auto& [name, data] : evaluations) look_at(data, join_path("evaluations", name));
  };
  for (const Cell& cell : scenario.cells) {
    if (cell.options.get() != known) {
      known = cell.options.get();
      separated.clear();
      look_at(known->experiment.data, "");
      for (const PhaseOptions& phase : known->experiment.phases) look_at(phase.data, "");
      look_at_each(known->evaluations);
      for (const NamedData& evaluations : known->phase_evaluations) look_at_each(evaluations);
    }
    for (const auto& [place, text, data] : separated) {
      if (!drawn.insert(text + std::to_string(cell.seed)).second) continue;
      try {
        draw_problem(data, cell.seeds());
      } catch (const InvalidOption& error) {
        throw InvalidOption(join_path(place, error.path()), error.message());
      }
    }
  }
}

void check_files(const Scenario& scenario) {
  std::set<std::string> read;
  const auto look_at = [&](DataOptions data, const LossOptions& loss) {
    if (data.chosen() != "file") return;
    data.contents = nullptr;
    if (!read.insert(options_json(data).dump() + loss.task).second) return;
    check_file_values(data, task_loss_kind(loss.task).needs_classes);
  };
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    const CellOptions& options = *cell.options;
    look_at(options.experiment.data, options.experiment.loss);
    for (const auto& [name, data] : options.evaluations) look_at(data, options.experiment.loss);
    for (std::size_t i = 0; i < options.experiment.phases.size(); ++i) {
      const PhaseOptions& phase = options.experiment.phases[i];
      look_at(phase.data, phase.loss);
      for (const auto& [name, data] : options.phase_evaluations[i]) look_at(data, phase.loss);
    }
  }
}

void check_same_rows(const DataOptions& data, const DataOptions& other, const std::string& place) {
  if (shaping(data) == shaping(other)) return;
  const Layout needed = small_problem(data)->layout(), own = small_problem(other)->layout();
  if (own.has_same_rows(needed)) return;
  throw UserError(place, fmt::format("has {}, needs {}, which the model was made for", shape_text(own),
                                     shape_text(needed)));
}

namespace {

/// Requires that a round finds samples of its task: each sample has one true cluster, and no cluster of the
/// population is rare.
void check_samples_of_tasks(const ExperimentOptions& experiment) {
  constexpr int kSamples = 64;
  constexpr double kLeastShare = 0.001, kOfRarest = 30;
  const std::unique_ptr<Problem> small = small_problem(experiment.data);
  const int labels = small->layout().labels;
  if (labels > 1) {
    const Dataset drawn =
        draw_set(*small, Seeds{1, 0}, Purpose::evaluation, std::min(kSamples, experiment.data.test_samples));
    for (std::size_t i = 0; i < drawn.cluster.size(); ++i) {
      if (drawn.cluster[i] != drawn.cluster[i - i % size(labels)])
        throw UserError("train.rounds", "given, needs data whose samples have one true cluster each");
    }
  }
  if (experiment.train.gradient != TrainOptions::Gradient::population) return;
  Json data = options_json(experiment.data);
  for (const char* const field : {"separation", "scale_to_separation"}) data.erase(field);
  const std::unique_ptr<Problem> problem = draw_problem(read_options<DataOptions>(data), Seeds{1, 0});
  double all = problem->clusters(), least = 1;
  if (const Json weights = data.value("weights", Json()); weights.is_array()) {
    all = 0;
    least = std::numeric_limits<double>::infinity();
    for (const Json& weight : weights) {
      all += weight.get<double>();
      least = std::min(least, weight.get<double>());
    }
  }
  // Some generators have clusters that they never draw. Of the rarest other one so many samples are expected.
  if (least >= kLeastShare * all) {
    const Dataset drawn = draw_set(*problem, Seeds{1, 0}, Purpose::evaluation,
                                   static_cast<int>(std::ceil(kOfRarest * all / least)));
    const std::set<int> found(drawn.cluster.begin(), drawn.cluster.end());
    if (found.size() == static_cast<std::size_t>(problem->clusters())) return;
  }
  throw UserError("train.rounds", fmt::format("given, needs data whose clusters have a share of at least {} "
                                              "each under train.gradient \"population\"",
                                              kLeastShare));
}

}  // namespace

void check_training_on(const ExperimentOptions& experiment) {
  const TrainOptions& train = experiment.train;
  const bool is_population = train.gradient == TrainOptions::Gradient::population;
  if (train.rounds) check_samples_of_tasks(experiment);
  if (is_population && population_rule(train).rule == TrainOptions::Rule::quasi_monte_carlo)
    check_uniform_map(*small_problem(experiment.data));
  if (!many_starts(train.start)) return;
  const Layout layout = small_problem(experiment.data)->layout();
  check_best_targets(layout, train.start->chosen());
  const LeastSquaresOptions* const optimizer = train.optimizer.as<LeastSquaresOptions>();
  if (optimizer == nullptr || optimizer->likelihood) return;
  const auto task = make_task_loss<double>(experiment.loss, layout.vocabulary > 0);
  check_best_fit(Network<double>(experiment.model, layout), {*task, AuxiliaryLosses(experiment.loss)},
                 train.start->chosen());
}

void check_labels(std::span<const Json> variants) {
  LabelledNames known;
  for (const Json& variant : variants) known.add(variant);
  for (const Json& variant : variants) {
    const Json labels = variant.value("labels", Json::object());
    for (const auto& [name, label] : labels.items()) check_label(known, name);
  }
}

void check_convergence(const CellOptions& cell) {
  const MeasuredMetrics measured(cell);
  for (std::size_t i = 0; i < cell.metrics.size(); ++i) {
    const ConvergenceMetricOptions* const entry = cell.metrics[i].as<ConvergenceMetricOptions>();
    if (entry == nullptr) continue;
    const std::string here = join_path("metrics", i), path = join_path(here, "metric");
    if (const std::string name = name_of(cell.metrics[i]); !name.empty())
      check_name(name, join_path(here, "name"));
    check_recorded(cell, entry->metric, path);
    measured.check(entry->metric, path);
  }
}

void check_until(const CellOptions& cell) {
  const MeasuredMetrics measured(cell);
  const auto check_rule = [&](const TrainOptions& train, const std::string& phase, const std::string& place) {
    const std::string metric = train.until ? train.until->looked_at() : "";
    if (metric.empty()) return;
    const std::string path = place + "train.until." + train.until->place();
    check_recorded(cell, metric, path);
    check_known_at_once(metric, path);
    measured.check(phase + metric, path);
  };
  const std::vector<PhaseOptions>& phases = cell.experiment.phases;
  if (phases.empty()) return check_rule(cell.experiment.train, "", "");
  for (std::size_t i = 0; i < phases.size(); ++i)
    check_rule(phases[i].train, phases[i].name + ".", join_path("phases", i) + ".");
}

void check_crossing(const Scenario& scenario) {
  if (!scenario.crossing) return;
  const CrossingSearch& search = *scenario.crossing;
  const std::string place = join_path(join_path("sweep", search.path), "crossing");
  const References references(scenario);
  if (!search.arm.empty()) references.check_arm(search.arm, join_path(place, "arm"));
  if (!search.against.empty()) references.check_arm(search.against, join_path(place, "against"));
  const std::string metric_place = join_path(place, "metric");
  for (const std::string& arm : scenario.arms)
    if (search.searches(arm) || arm == search.against)
      check_plotted_value(references, arm, search.metric, metric_place);
  const PlottedValue metric(search.metric, references.table());
  if (metric.may_be_censored())
    throw UserError(metric_place,
                    fmt::format("got '{}', which may be censored; needs one that has a mean", search.metric));
  if (search.level && metric.is_positive() && *search.level <= 0)
    throw UserError(join_path(place, "level"),
                    fmt::format("got {}, which '{}', positive, never crosses; needs a number above 0",
                                *search.level, search.metric));
}

void check_objective(const Scenario& scenario) {
  if (!scenario.objective) return;
  const bool is_directed = scenario.document.at("objective").is_object();
  const std::string place = is_directed ? "objective.metric" : "objective";
  const References references(scenario);
  ErrorList errors;
  for (const std::string& arm : scenario.arms)
    if (errors.check([&] { references.check_metric(arm, scenario.objective->metric, place); })) return;
  errors.throw_any();
}

void check_claims(const Scenario& scenario, ErrorList& errors) {
  std::vector<std::string> ids;
  for (const Claim& claim : scenario.claims) ids.push_back(claim.id);
  errors.check([&] { check_ids(ids, "claims"); });
  const References references(scenario);
  const RowIndex rows(references.table());
  for (std::size_t i = 0; i < scenario.claims.size(); ++i) {
    const Claim& claim = scenario.claims[i];
    const std::string path = join_path("claims", i);
    errors.check([&] {
      if (scenario.crossing) check_within_ends(*scenario.crossing, claim, path);
      if (claim.is_tuned) check_tuned(scenario, claim, path);
      const Regime regime(claim.regime, rows, join_path(path, "regime"));
      std::visit([&](const auto& statement) { check_statement(references, rows, regime, statement, path); },
                 claim.statement);
    });
  }
}

}  // namespace moelab
