#include "analysis/metrics/metric_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "analysis/stats/result_table.h"
#include "sim/model/measure_places.h"
#include "sim/train/least_squares.h"

// To add a group of metrics, write a file that defines <name>_metrics() and add a line here.
// clang-format off
#define MOELAB_METRIC_GROUPS(entry) \
  entry(task_metrics)               \
  entry(sparsity_metrics)           \
  entry(router_norms_metrics)       \
  entry(gradient_metrics)           \
  entry(load_metrics)               \
  entry(routing_metrics)            \
  entry(boundary_metrics)           \
  entry(fluctuation_metrics)        \
  entry(saturation_metrics)         \
  entry(agreement_metrics)          \
  entry(overlap_metrics)            \
  entry(layers_metrics)             \
  entry(levels_metrics)             \
  entry(own_experts_metrics)        \
  entry(cluster_losses_metrics)     \
  entry(feature_weights_metrics)    \
  entry(layer_loads_metrics)        \
  entry(replaced_metrics)           \
  entry(swapped_metrics)            \
  entry(floor_metrics)              \
  entry(facts_metrics)              \
  entry(convergence_metrics)        \
  entry(auxiliary_losses_metrics)   \
  entry(expert_outputs_metrics)     \
  entry(voronoi_metrics)            \
  entry(fit_metrics)                \
  entry(likelihood_metrics)         \
  entry(patches_metrics)            \
  entry(training_metrics)           \
  entry(continual_metrics)          \
  entry(directions_metrics)
// clang-format on

namespace moelab {

MOELAB_TABLE(MetricAxis, MOELAB_METRIC_GROUPS)

namespace {

const MetricGroup::Metric* metric_of(const MetricGroup& group, std::string_view name) {
  for (const MetricGroup::Metric& metric : group.metrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

constexpr std::string_view kLayerEnding = "_layer";

/// Takes the ending of a layer off the name.
std::optional<int> take_layer(std::string_view& name) {
  const std::size_t place = name.rfind(kLayerEnding);
  if (place == std::string_view::npos) return std::nullopt;
  const std::string_view number = name.substr(place + kLayerEnding.size());
  int layer = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
  if (error != std::errc() || end != number.data() + number.size() || number.front() == '-')
    return std::nullopt;
  name = name.substr(0, place);
  return layer;
}

const ModelOptions& model_of(const MetricSubject& subject) {
  return subject.experiment().model;
}

bool always(const MetricSubject& /*subject*/, int /*layer*/) {
  return true;
}

/// Attacks make test sets of their own at every step.
bool has_same_rows(const MetricSubject& subject, int /*layer*/) {
  return !subject.data().contamination.entry().is_attack();
}

bool has_router_weight(const MetricSubject& subject, int layer) {
  const Network<float>& network = subject.network();
  if (!network.has_router()) return false;
  const std::string name = "router_weight" + network.layer_ending(layer);
  const std::vector<NamedArray<float>> arrays =
      network.arrays(AlignedVector<float>(network.parameter_size()));
  return std::any_of(arrays.begin(), arrays.end(),
                     [&](const NamedArray<float>& array) { return array.name == name; });
}

bool may_leave_rows(const MetricSubject& subject, const GatingRule& rule) {
  const GatingKind& kind = rule.entry();
  return kind.may_leave_rows && kind.may_leave_rows(rule.options(), subject.network().experts());
}

bool selects_sets(const MetricSubject& subject, int /*layer*/) {
  const GatingRule& rule = model_of(subject).gating.eval;
  const GatingKind& kind = rule.entry();
  const bool is_single =
      kind.most_experts && kind.most_experts(rule.options()) == 1 && !may_leave_rows(subject, rule);
  return !is_single && !subject.network().eval_gating().activates_all();
}

bool leaves_unserved(const MetricSubject& subject, int /*layer*/) {
  return may_leave_rows(subject, model_of(subject).gating.eval) ||
         subject.network().eval_gating().couples_rows();
}

bool has_parts(const MetricSubject& subject, int /*layer*/) {
  const Layout layout = subject.problem().layout();
  return !layout.sequences && layout.labels > 1;
}

bool has_model_output(const MetricSubject& subject, int /*layer*/) {
  const Layout layout = subject.problem().layout();
  return !reads_ids(model_of(subject)) && subject.network().layers() == 1 &&
         layout.target_dim() == layout.tokens * layout.output_dim;
}

bool has_token_ids(const MetricSubject& subject, int /*layer*/) {
  return subject.data().entry().token_ids;
}

/// Ids are names, not places in a space.
bool has_space(const MetricSubject& subject, int layer) {
  return !has_token_ids(subject, layer);
}

bool knows_language(const MetricSubject& subject, int /*layer*/) {
  return subject.problem().knows_language() && !task_loss_kind(subject.experiment().loss.task).masks_tokens &&
         !subject.data().contamination.entry().change_ids;
}

/// What has seen later tokens can be below any floor.
bool routes_causally(const MetricSubject& subject, int /*layer*/) {
  const ModelOptions& model = model_of(subject);
  const auto sees_later = [](const auto& rule) {
    const auto looks_ahead = rule.entry().looks_ahead;
    const std::string where = looks_ahead ? looks_ahead(rule.options()) : "";
    return !where.empty() && !where.ends_with(" in training");
  };
  return mixtures_of(model) == 0 || !(sees_later(model.router) || sees_later(model.gating.eval));
}

bool has_best_prediction(const MetricSubject& subject, int /*layer*/) {
  const Problem& problem = subject.problem();
  return problem.bayes_prediction(Matrix::Zero(1, problem.layout().sample_dim())).has_value();
}

bool has_true_measure(const MetricSubject& subject, int /*layer*/) {
  const MixingMeasure* const truth = subject.problem().true_measure();
  const ModelOptions& model = model_of(subject);
  if (!truth) return false;
  const std::optional<MixtureForm> form = mixture_form(model);
  return form && is_same_family(*form, truth->form) && has_gate_bias(model);
}

bool has_record_before(const MetricSubject& subject, int layer) {
  return has_same_rows(subject, layer) && subject.is_recorded_again();
}

/// Needs that every user's arrays meet, or that one kind of array meets.
bool any_arrays(const GivenArrays& /*given*/) {
  return true;
}
template <bool GivenArrays::*field>
bool has(const GivenArrays& given) {
  return given.*field;
}
bool has_sets(const GivenArrays& given) {
  return given.top_k > 1;
}

constexpr const char* kRecordBefore =
    "a recorded step before, of the same phase and on the same rows: no attack";
constexpr const char* kPrevious = "--previous-probs, --previous-logits or --previous-assignments";

/// How figures call a swept path.
struct PathLabel {
  const char* name;
  const char* axis;
  const char* legend;
};

constexpr std::array kPathLabels = {
    PathLabel{"step", "training step", "step"},
    PathLabel{"data.train_samples", "training samples", "samples"},
    PathLabel{"data.clusters", "clusters", "clusters"},
    PathLabel{"data.dim", "input width", "width"},
    PathLabel{"data.spurious_dims", "spurious dimensions", "spurious dimensions"},
    PathLabel{"data.mean_std", "standard deviation of the means", "mean_std"},
    PathLabel{"data.noise_std", "noise standard deviation", "noise_std"},
    PathLabel{"data.separation", "cluster separation c", "separation"},
    PathLabel{"model.experts", "experts", "experts"},
    PathLabel{"model.layers", "layers", "layers"},
    PathLabel{"model.router.init_scale", "initial scale of the router", "router scale"},
    PathLabel{"model.router.kind", "router", "router"},
    PathLabel{"train.batch_size", "batch size", "batch"},
    PathLabel{"train.steps", "training steps", "steps"},
    PathLabel{"train.weight_decay", "weight decay", "weight decay"},
    PathLabel{"train.lr.router", "learning rate of the router", "router rate"},
    PathLabel{"train.lr.expert", "learning rate of the experts", "expert rate"},
};

const PathLabel* path_label(const std::string& name) {
  const auto* const known = std::find_if(kPathLabels.begin(), kPathLabels.end(),
                                         [&](const PathLabel& label) { return label.name == name; });
  return known == kPathLabels.end() ? nullptr : known;
}

/// A metric's label, followed by the layer, the entry and the evaluation of its key.
std::string metric_label(const std::string& name, std::string MetricGroup::Metric::*form) {
  const MetricGroup::Metric* const metric = find_metric(name);
  if (!metric || (metric->*form).empty()) return name;
  const MetricKey key = MetricKey::parse(name);
  std::string label = metric->*form;
  if (key.layer) label += ", layer " + std::to_string(*key.layer);
  for (const std::string& part : {key.variant, key.evaluation}) {
    if (!part.empty()) label += ", " + part;
  }
  return label;
}

}  // namespace

void check_set_size(int k, const ExperimentOptions& experiment, const std::string& path) {
  const int experts = routed_experts(experiment.model);
  // One expert has no sets to compare: the metric does not apply, whatever k.
  if (k <= experts || experts == 1 || !reads_mixture(experiment.model)) return;
  throw InvalidOption(path + ".k", fmt::format("got {}, needs at most model.experts = {}", k, experts));
}

void MetricOptions::bind(Fields& fields) {
  OneOf<MetricAxis>::bind(fields);
  fields.add("records", records, {"every", "last"},
             "measured at every recorded step, or at the last one alone, which saves time");
}

void check(const MetricOptions& group, const ExperimentOptions& experiment, const std::string& path) {
  const MetricGroup& entry = group.entry();
  if (entry.check) entry.check(group.options(), experiment, path);
  if (group.records == MetricOptions::Records::every) return;
  const std::vector<const Need*> of_other_steps = {&needs::step_before, &needs::probabilities_before,
                                                   &needs::last_step};
  const bool compares = std::any_of(entry.metrics.begin(), entry.metrics.end(), [&](const auto& metric) {
    const std::vector<const Need*> all = needs_of(metric.name);
    return std::any_of(all.begin(), all.end(), [&](const Need* need) {
      return std::find(of_other_steps.begin(), of_other_steps.end(), need) != of_other_steps.end();
    });
  });
  if (compares)
    throw InvalidOption(path + ".records",
                        "got \"last\", but the group '" + entry.name + "' compares steps; needs \"every\"");
  if (!entry.make_row_meter && !entry.make_model_meter.of<double>())
    throw InvalidOption(path + ".records", "got \"last\", but the group '" + entry.name +
                                               "' is not measured at records; needs \"every\"");
}

std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name) {
  for (const MetricGroup& group : metric_groups()) {
    if (group.name == name) return group.metrics;
  }
  return {};
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) names.push_back(metric.name);
  }
  return names;
}

const MetricGroup* group_of(std::string_view metric) {
  for (const MetricGroup& group : metric_groups()) {
    if (metric_of(group, metric)) return &group;
  }
  return nullptr;
}

const MetricGroup::Metric* find_metric(std::string_view text) {
  const std::string name = MetricKey::parse(text).metric;
  const MetricGroup* const group = group_of(name);
  return group ? metric_of(*group, name) : nullptr;
}

std::string group_of_metric(std::string_view text) {
  const MetricGroup* const group = group_of(MetricKey::parse(text).metric);
  return group ? group->name : "";
}

std::vector<const Need*> needs_of(std::string_view metric) {
  const MetricGroup* const group = group_of(metric);
  if (!group) return {};
  std::vector<const Need*> all = group->needs;
  const std::vector<const Need*>& own = metric_of(*group, metric)->needs;
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

const Need* unmet_need(std::string_view metric, const MetricSubject& subject, int layer) {
  for (const Need* const need : needs_of(metric)) {
    if (!need->is_met(subject, layer)) return need;
  }
  return nullptr;
}

bool applies_to(std::string_view metric, const GivenArrays& given) {
  const std::vector<const Need*> all = needs_of(metric);
  return std::all_of(all.begin(), all.end(),
                     [&](const Need* need) { return need->is_given && need->is_given(given); });
}

std::vector<std::string> missing_arguments(std::string_view metric, const GivenArrays& given) {
  std::vector<std::string> missing;
  for (const Need* const need : needs_of(metric)) {
    if (!need->argument) return {};
    if (!need->is_given(given)) missing.emplace_back(need->argument);
  }
  return missing;
}

bool has_metric(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), find_metric);
}

bool is_declared_positive(const std::string& name) {
  const MetricGroup::Metric* const metric = find_metric(name);
  return metric != nullptr && metric->positive;
}

bool is_larger_better(const std::string& name) {
  const MetricGroup::Metric* const metric = find_metric(name);
  return metric != nullptr && metric->larger_is_better;
}

bool may_be_censored(const std::string& metric) {
  // An evaluation may have any name: what is found under "held_out_censored" need not be a flag.
  const MetricGroup::Metric* const flag = find_metric(censored_name(metric));
  return flag != nullptr && flag->name.ends_with("_censored");
}

std::string MetricKey::text() const {
  std::string text = evaluation.empty() ? metric : evaluation + '.' + metric;
  if (layer) text.append(kLayerEnding).append(std::to_string(*layer));
  return variant.empty() ? text : text + '.' + variant;
}

MetricKey MetricKey::parse(std::string_view text) {
  MetricKey key;
  std::size_t dot = text.find('.');
  if (dot != std::string_view::npos) {
    const MetricGroup* const group = group_of(text.substr(0, dot));
    if (group && group->of_entries) {
      key.metric = text.substr(0, dot);
      key.variant = text.substr(dot + 1);
      return key;
    }
    dot = text.rfind('.');
    key.evaluation = text.substr(0, dot);
    text = text.substr(dot + 1);
  }
  key.layer = take_layer(text);
  key.metric = text;
  return key;
}

const Problem& MetricSubject::problem() const {
  if (!problem_) {
    drawn_ = draw_problem(data_, seeds_);
    problem_ = drawn_.get();
  }
  return *problem_;
}

const Network<float>& MetricSubject::network() const {
  if (!network_) network_ = std::make_unique<Network<float>>(experiment_.model, problem().layout());
  return *network_;
}

bool MetricSubject::class_targets() const {
  const Layout layout = problem().layout();
  return layout.class_targets ||
         (task_loss_kind(experiment_.loss.task).needs_classes && layout.vocabulary == 0);
}

namespace needs {

const Need router{"a model with a router",
                  [](const MetricSubject& of, int) { return mixtures_of(model_of(of)) > 0; },
                  "--probs or --logits", any_arrays};
const Need model{"a model", always};
const Need several_experts{"two experts or more",
                           [](const MetricSubject& of, int) {
                             return mixtures_of(model_of(of)) > 0 && routed_experts(model_of(of)) > 1;
                           },
                           "two experts or more", [](const GivenArrays& given) { return given.experts > 1; }};
const Need router_weight{"a router that is linear in x", has_router_weight, "--router",
                         has<&GivenArrays::router>};
const Need router_columns{"a router", always, "--router", has<&GivenArrays::router>};
const Need mixed_tokens{"a router that mixes tokens",
                        [](const MetricSubject& of, int) { return model_of(of).router.entry().leaves_base; }};
const Need sets{"a gating.eval that selects more than one expert, but not every one", selects_sets,
                "--top-k above 1", has_sets};
const Need sets_of_k{"sets of experts", always, "--top-k above 1", has_sets};
const Need unserved_rows{"a gating.eval that may leave rows without an expert", leaves_unserved};
const Need probabilities{"routing probabilities", always, "--logits, --probs or --scores",
                         has<&GivenArrays::probabilities>};
const Need first_choice{"the first choice of a row", always, "--by-score", has<&GivenArrays::first_choice>};
const Need layer_before{"a layer before it", [](const MetricSubject&, int layer) { return layer > 0; },
                        kPrevious, has<&GivenArrays::previous>};
const Need model_output{"one layer, and a target for each row that its experts see", has_model_output};
const Need shared_experts{"model.shared_experts above 0",
                          [](const MetricSubject& of, int) { return model_of(of).shared_experts > 0; }};
const Need expert_outputs{"experts", always, "--expert-outputs", has<&GivenArrays::expert_outputs>};

const Need own_data{"the cell's own data", [](const MetricSubject& of, int) { return of.is_own(); }};
const Need labels{"labels", always, "--labels", has<&GivenArrays::labels>};
const Need parts{"data of several labels to a sample", has_parts, nullptr, has<&GivenArrays::several_labels>};
const Need inputs{"inputs", always, "--inputs", has<&GivenArrays::inputs>};
const Need space{"inputs that are no ids of tokens", has_space, "--embeddings or --inputs",
                 has<&GivenArrays::space>};
const Need signal_subspace{"data whose target depends on a known subspace", [](const MetricSubject& of, int) {
                             return of.problem().signal_basis().size() > 0;
                           }};
const Need squared_error{
    "a loss.task other than cross_entropy and masked_tokens",
    [](const MetricSubject& of, int) { return !task_loss_kind(of.experiment().loss.task).needs_classes; }};
const Need classes{"targets that are classes",
                   [](const MetricSubject& of, int) { return of.class_targets(); }};
const Need best_prediction{"data with a known E[y | x]", has_best_prediction};
const Need token_ids{"data of ids of tokens", has_token_ids};
const Need text{"data of text", [](const MetricSubject& of, int) {
                  return has_token_ids(of, 0) && of.problem().bytes_of(Matrix::Zero(1, 1)).has_value();
                }};
const Need known_language{"ids with a known law, none swapped, and the next token as the task",
                          knows_language};
const Need causal_routing{"a router and a gating.eval that look at no later token", routes_causally};
const Need true_measure{"data of moe_regression, and a model of their form", has_true_measure};

const Need step_before{kRecordBefore, has_record_before, kPrevious, has<&GivenArrays::previous>};
const Need probabilities_before{kRecordBefore, has_record_before, "--previous-probs or --previous-logits",
                                has<&GivenArrays::previous_probabilities>};
const Need last_step{"the same rows at every step: no attack", has_same_rows, kPrevious,
                     has<&GivenArrays::previous>};
const Need population_gradient{"train.gradient population", [](const MetricSubject& of, int) {
                                 return of.experiment().train.gradient == TrainOptions::Gradient::population;
                               }};
const Need least_squares{
    "optimizer lbfgs", [](const MetricSubject& of, int) { return is_least_squares(of.experiment().train); }};
const Need best_start{"train.start best or search", [](const MetricSubject& of, int) {
                        return many_starts(of.experiment().train.start).has_value();
                      }};
const Need search_start{"train.start search", [](const MetricSubject& of, int) {
                          const std::optional<FitStart>& start = of.experiment().train.start;
                          return start && start->as<SearchStartOptions>();
                        }};
const Need oracle_start{
    "train.start search with oracle starts, data of moe_regression, and a model of their form",
    [](const MetricSubject& of, int layer) {
      return search_start.is_met(of, layer) && has_true_measure(of, layer) &&
             of.experiment().train.start->as<SearchStartOptions>()->oracle > 0;
    }};
const Need likelihood_fit{
    "train.optimizer.likelihood and data.law mixture", [](const MetricSubject& of, int) {
      const LeastSquaresOptions* const fit = of.experiment().train.optimizer.as<LeastSquaresOptions>();
      const MixingMeasure* const truth = of.problem().true_measure();
      return fit && fit->likelihood && truth && truth->variance.size() > 0 && truth->form == MixtureForm{};
    }};
const Need until{"train.until",
                 [](const MetricSubject& of, int) { return of.experiment().train.until.has_value(); }};

}  // namespace needs

std::string axis_label(const std::string& name) {
  const PathLabel* const path = path_label(name);
  return path ? path->axis : metric_label(name, &MetricGroup::Metric::axis_label);
}

std::string legend_label(const std::string& name) {
  const PathLabel* const path = path_label(name);
  return path ? path->legend : metric_label(name, &MetricGroup::Metric::legend_label);
}

}  // namespace moelab
