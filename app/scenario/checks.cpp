#include "app/scenario/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claim_points.h"
#include "analysis/stats/expression.h"
#include "app/figures/figure_kind.h"
#include "app/scenario/cells.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/data/file_data.h"
#include "sim/data/problem.h"
#include "sim/train/batches.h"
#include "sim/train/best_fit.h"
#include "sim/train/least_squares.h"
#include "sim/train/train_options.h"

namespace moelab {
namespace {

/// The names of an expression; what a text ought to be is checked elsewhere.
void add_names_of(const std::string& text, std::set<std::string>& names) {
  try {
    for (const std::string& name : Expression::parse(text, "").names()) names.insert(name);
  } catch (const InvalidOption&) {
  }
}

/// The names in every text with operators.
void add_names(const Json& part, std::set<std::string>& names) {
  if (part.is_structured()) {
    for (const Json& element : part) add_names(element, names);
  } else if (part.is_string() && part.get_ref<const std::string&>().find(' ') != std::string::npos) {
    add_names_of(part.get<std::string>(), names);
  }
}

/// A side's value is an expression without operators, too.
void add_values_of_sides(const Json& claims, std::set<std::string>& names) {
  for (const Json& claim : claims) {
    for (const char* side : {"left", "right"}) {
      const Json value = claim.value(side, Json::object()).value("value", Json());
      if (value.is_string()) add_names_of(value.get<std::string>(), names);
    }
  }
}

std::optional<double> number_of(const CellConfig& config, const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos || (path.substr(0, dot) != "data" && path.substr(0, dot) != "model" &&
                                   path.substr(0, dot) != "train" && path.substr(0, dot) != "loss"))
    return std::nullopt;
  const Json* part = &config.at(path.substr(0, dot));
  for (std::size_t begin = dot + 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (!part->is_object() || !part->contains(key)) return std::nullopt;
    part = &part->at(key);
    begin = end + 1;
  }
  if (!part->is_number()) return std::nullopt;
  return part->get<double>();
}

}  // namespace

std::map<std::string, double> fixed_numbers(const Scenario& scenario) {
  std::set<std::string> names;
  add_names(scenario.claims, names);
  add_values_of_sides(scenario.claims, names);
  add_names(scenario.figures, names);
  if (scenario.crossing) add_names(Json(scenario.crossing->metric), names);
  std::map<std::string, double> fixed;
  for (const std::string& name : names) {
    const std::vector<std::string>& swept = scenario.sweep_paths;
    if (scenario.cells.empty() || std::find(swept.begin(), swept.end(), name) != swept.end()) continue;
    const std::optional<double> number = number_of(scenario.cells.front().config, name);
    const bool is_shared =
        number && std::all_of(scenario.cells.begin(), scenario.cells.end(), [&](const Cell& cell) {
          // Seeds share their configuration.
          return cell.seed != 0 || number_of(cell.config, name) == number;
        });
    if (is_shared) fixed[name] = *number;
  }
  return fixed;
}

namespace {

/// Measured with train.until, whatever groups are chosen.
constexpr const char* kUntilReached = "until_reached";

bool is_chosen(const CellConfig& config, const std::string& group) {
  const Json& chosen = config.at("metrics");
  return std::any_of(chosen.begin(), chosen.end(),
                     [&](const Json& each) { return each.at("kind") == group; });
}

/// What stands before the dot in names of metrics: evaluations, phases and evaluations of those.
std::vector<std::string> test_sets(const CellConfig& config) {
  std::vector<std::string> names;
  for (const auto& evaluation : config.at("evaluations").items()) names.push_back(evaluation.key());
  for (const Json& phase : config.at("phases")) {
    const std::string name = phase.at("name");
    names.push_back(name);
    for (const auto& evaluation : config.at("evaluations").items())
      names.push_back(name + "." + evaluation.key());
  }
  return names;
}

void check_evaluation(const CellConfig& config, const MetricKey& key, const std::string& path) {
  if (key.evaluation.empty()) return;
  const std::vector<std::string> names = test_sets(config);
  if (std::find(names.begin(), names.end(), key.evaluation) == names.end())
    throw UserError(path, unknown_name("evaluation", key.evaluation, names));
}

/// Layers that route rows, or those of the model where none does.
int layers_of(const Json& model) {
  if (model.at("kind") != "transformer") return model.at("layers");
  return std::max(1, mixtures_of(read_options<ModelOptions>(model)));
}

/// A metric of routing names the layer where there are several, and no layer that there is not.
void check_layer(const CellConfig& config, const MetricKey& key, bool of_layers, const std::string& path) {
  const int layers = layers_of(config.at("model"));
  const bool names_layer = of_layers && layers > 1;
  if (key.layer.has_value() == names_layer && key.layer.value_or(0) < layers) return;
  const bool is_transformer = config.at("model").at("kind") == "transformer";
  throw UserError(path, fmt::format("got '{}', needs {} for {} = {}", key.text(),
                                    names_layer ? fmt::format("an ending _layer0 … _layer{}", layers - 1)
                                                : "no ending of a layer",
                                    is_transformer ? "mixtures of the model" : "model.layers", layers));
}

/// The metrics of the entries of the group.
std::vector<std::string> entry_metrics(const CellConfig& config, const MetricGroup& group) {
  std::vector<std::string> names;
  for (const Json& entry : config.at("metrics")) {
    if (entry.at("kind") != group.name) continue;
    for (const MetricGroup::Metric& metric : group.metrics) {
      names.push_back(MetricKey{.metric = metric.name,
                                .variant = entry.contains("name") ? entry.at("name").get<std::string>() : ""}
                          .text());
    }
  }
  return names;
}

void check_entry(const CellConfig& config, const MetricGroup& group, const MetricKey& key,
                 const std::string& path) {
  const std::vector<std::string> names = entry_metrics(config, group);
  if (std::find(names.begin(), names.end(), key.text()) == names.end())
    throw UserError(path, unknown_name("metric", key.text(), names));
}

/// A test set by the name that its metrics have before the dot: an evaluation, a phase or an evaluation of
/// one; without a name, and for evaluations alone, that at the end of the last phase.
struct TestSet {
  std::optional<std::size_t> phase;
  const Json& data;
  bool is_own;
};

TestSet tested_on(const CellConfig& config, std::string_view name) {
  const Json& phases = config.at("phases");
  std::optional<std::size_t> phase;
  if (!phases.empty()) phase = phases.size() - 1;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string own = phases[i].at("name");
    if (name != own && !name.starts_with(own + ".")) continue;
    phase = i;
    name.remove_prefix(std::min(name.size(), own.size() + 1));
    break;
  }
  const auto part = [&](const char* field) -> const Json& {
    return phase ? phases[*phase].at(field) : config.at(field);
  };
  if (name.empty()) return {phase, part("data"), true};
  return {phase, part("evaluations").at(std::string(name)), false};
}

/// The first phase is recorded at its start, too.
bool is_recorded_again(const ExperimentOptions& experiment, std::optional<std::size_t> phase) {
  if (phase.value_or(0) == 0) return true;
  const PhaseOptions& own = experiment.phases[*phase];
  const std::int64_t steps = total_steps(own.train, own.data.train_samples.value_or(0));
  return record_interval(own.train, steps) < steps;
}

}  // namespace

struct MeasuredMetrics::Subject {
  ExperimentOptions experiment;
  MetricSubject metrics;

  Subject(const CellConfig& config, const TestSet& test)
      : experiment(read_experiment(config.json())),
        metrics(experiment, experiment.data, Seeds{1, 0}, test.is_own, nullptr,
                is_recorded_again(experiment, test.phase)) {
    if (test.phase) {
      experiment.loss = experiment.phases[*test.phase].loss;
      experiment.train = experiment.phases[*test.phase].train;
    }
    experiment.data = read_small_data(test.data);
  }
};

const MetricSubject& MeasuredMetrics::subject(const std::string& evaluation) const {
  std::shared_ptr<const Subject>& known = subjects_[evaluation];
  if (!known) known = std::make_shared<const Subject>(config_, tested_on(config_, evaluation));
  return known->metrics;
}

void MeasuredMetrics::check(const std::string& metric, const std::string& path,
                            const std::string& arm) const {
  const MetricKey key = MetricKey::parse(metric);
  const MetricGroup* const group = group_of(key.metric);
  if (!group) throw UserError(path, unknown_name("metric", metric, metric_names()));
  if (!group->of_entries) {
    check_evaluation(config_, key, path);
    check_layer(config_, key, group->of_layers, path);
  }
  if (!is_chosen(config_, group->name) && key.metric != kUntilReached) {
    throw UserError(path, fmt::format("'{}' belongs to the group '{}', which \"metrics\" leaves out", metric,
                                      group->name));
  }
  if (group->of_entries) return check_entry(config_, *group, key, path);
  if (const Need* const need = unmet_need(key.metric, subject(key.evaluation), key.layer.value_or(0))) {
    const std::string who = arm.empty() ? "got" : fmt::format("arm '{}' has no", arm);
    throw UserError(path, fmt::format("{} '{}', which needs {}", who, metric, need->what));
  }
}

std::vector<std::string> MeasuredMetrics::names() const {
  std::vector<std::string> sets = test_sets(config_), names;
  sets.emplace_back();
  const int layers = layers_of(config_.at("model"));
  for (const MetricGroup& group : metric_groups()) {
    const bool all = is_chosen(config_, group.name);
    if (group.of_entries) {
      const std::vector<std::string> own = entry_metrics(config_, group);
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

bool is_of_end_alone(const std::string& metric) {
  const std::string name = MetricKey::parse(metric).metric;
  const MetricGroup* const group = group_of(name);
  // What training costs is counted along its way.
  return group && !group->make && (group->name != "training" || name == kUntilReached);
}

namespace {

/// Cells share equal parts.
std::vector<const Json*> parts_of(const CellConfig& config) {
  std::vector<const Json*> parts;
  for (const char* part : {"data", "model", "loss", "train", "metrics", "evaluations", "phases"})
    parts.push_back(&config.at(part));
  return parts;
}

}  // namespace

References::References(const Scenario& scenario) : claims_(scenario.claims) {
  table_.arms = scenario.arms;
  table_.sweep_paths = scenario.sweep_paths;
  table_.fixed = fixed_numbers(scenario);
  if (scenario.crossing) table_.searched_path = scenario.crossing->path;
  std::map<std::string, std::set<const MeasuredMetrics*>> seen;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    configs_[cell.arm].push_back(&cell.config);
    const MeasuredMetrics* const measured =
        &metrics_.try_emplace(parts_of(cell.config), cell.config).first->second;
    if (seen[cell.arm].insert(measured).second) measured_[cell.arm].push_back(measured);
    if (cell.arm == scenario.arms.front())
      table_.rows.push_back({"", cell.arm, 0, read_point(cell.point), "missing", {}, {}});
  }
}

void References::check_arm(const std::string& arm, const std::string& path) const {
  if (!configs_.contains(arm)) throw UserError(path, unknown_name("arm", arm, table_.arms));
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
  for (const CellConfig* config : configs_.at(arm)) {
    std::int64_t before = 0;  // steps of the phases before
    bool is_recorded = false;
    std::string every;  // what recorded steps are multiples of
    const auto look_at = [&](const Json& part) {
      const TrainOptions train = read_options<TrainOptions>(part.at("train"));
      if (is_least_squares(train)) {
        throw UserError(
            path, fmt::format("got {}, but a least-squares fit records its start and end alone", step.step));
      }
      const std::int64_t steps = total_steps(train, part.at("data").value("train_samples", 0));
      const std::int64_t interval = record_interval(train, steps), own = step.step - before;
      is_recorded |= own >= 0 && own <= steps && (own == steps || own % interval == 0);
      before += steps;
      every += fmt::format("{}{}", every.empty() ? "" : " or, in a later phase, ", interval);
    };
    if (config->at("phases").empty())
      look_at(Json{{"train", config->at("train")}, {"data", config->at("data")}});
    for (const Json& phase : config->at("phases")) look_at(phase);
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
  if (is_of_end_alone(metric))
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
  for (const CellConfig* config : configs_.at(arm)) {
    const Json& saved = config->at("save");
    if (config->at("model").at("kind") == "dense")
      throw UserError(path, "shows arm '" + arm + "', which is dense and has no routing");
    if (std::find(saved.begin(), saved.end(), arrays) == saved.end())
      throw UserError(path, "shows arm '" + arm + "', needs \"save\": [\"" + arrays + "\"]");
  }
}

std::set<int> References::saved_input_widths(const std::string& arm, const SweepPoint& where) const {
  const std::vector<const CellConfig*>& configs = configs_.at(arm);
  // An arm whose points are its own, by a search, is looked at everywhere.
  const bool has_points_of_table = configs.size() == table_.rows.size();
  std::set<const Json*> seen;
  std::set<int> widths;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (has_points_of_table && !table_.rows[i].is_at(where)) continue;
    // Arrays are saved at the end of the last phase.
    const Json& phases = configs[i]->at("phases");
    const Json& data = phases.empty() ? configs[i]->at("data") : phases.back().at("data");
    if (!seen.insert(&data).second) continue;
    const Layout layout = draw_problem(read_small_data(data), Seeds{1, 0})->layout();
    widths.insert(static_cast<int>(layout.input_shape(1).back()));
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

void References::check_sizes(const Json& part, const std::string& along, const std::vector<std::string>& axes,
                             const std::string& path, const std::string& along_path) const {
  check_swept(along, "", along_path);
  check_axes(where_of(part), axes, path);
  const std::string window_path = join_path(path, "window");
  if (part.contains("window") &&
      (part.at("window").size() != 2 || part.at("window")[0] >= part.at("window")[1]))
    throw UserError(window_path, "got " + abbreviated(part.at("window")) + ", needs [least n, most n]");
  std::set<double> sizes;
  for (const ResultRow& row : table_.rows) {
    const SweepValue* const value = row.coordinate(along);
    if (!value) continue;
    if (!value->number() || *value->number() <= 1) {
      throw UserError(along_path,
                      "has the value " + abbreviated(to_json(*value)) + ", needs numbers above 1");
    }
    const double n = *value->number();
    if (!part.contains("window") || (n >= part.at("window")[0] && n <= part.at("window")[1])) sizes.insert(n);
  }
  if (sizes.size() < 3) {
    throw UserError(part.contains("window") ? window_path : along_path,
                    fmt::format("leaves {} values, a slope needs at least three", sizes.size()));
  }
}

SweepPoint where_of(const Json& part) {
  return part.contains("where") ? read_point(part.at("where")) : SweepPoint();
}

void check_ids(const Json& parts, const std::string& path) {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string id = parts[i].at("id"), here = join_path(join_path(path, i), "id");
    check_name(id, here);
    if (!ids.insert(id).second) throw UserError(here, "got '" + id + "' a second time, needs distinct ids");
  }
}

namespace {

/// Arrays that would not fit into any memory are refused before one is asked for: 8 GB in double.
void check_size(const Json& data) {
  constexpr std::int64_t kMostNumbers = 1'000'000'000;
  if (!data.contains("dim")) return;
  const std::int64_t width = data.at("dim").get<std::int64_t>() * data.value("tokens", std::int64_t{1});
  for (const char* rows : {"clusters", "train_samples", "test_samples"}) {
    if (!data.contains(rows) || data.at(rows).get<std::int64_t>() <= kMostNumbers / width) continue;
    throw UserError(std::string("data.") + rows,
                    fmt::format("got {} rows of {} numbers, needs at most {} numbers in all",
                                data.at(rows).dump(), width, kMostNumbers));
  }
}

/// Elements of a list name different things.
void check_distinct_names(const Json& config, const std::string& list) {
  std::set<Json> seen;
  for (std::size_t i = 0; i < config.at(list).size(); ++i) {
    const Json& element = config.at(list)[i];
    Json name = element.is_object() ? element.at("kind") : element;
    if (element.is_object() && element.contains("name")) name = Json::array({name, element.at("name")});
    if (!seen.insert(name).second)
      throw UserError(join_path(list, i), "got " + name.dump() + " a second time");
  }
}

/// A file that is read twice counts its samples twice.
void check_distinct_files(const Json& data, const std::string& path) {
  if (!data.contains("paths") || !data.at("paths").is_array()) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < data.at("paths").size(); ++i) {
    const std::string file = data.at("paths")[i];
    std::error_code unseen;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(file, unseen);
    if (!seen.insert(unseen ? file : whole.string()).second)
      throw UserError(join_path(path, i),
                      "got '" + file + "' a second time, needs distinct files and folders");
  }
}

/// Phases are told by their names, which evaluations do not have, too, nor names that begin as those of the
/// metrics of a phase do.
void check_phase_names(const Json& config) {
  std::set<std::string> seen;
  for (const auto& [name, data] : config.at("evaluations").items()) seen.insert(name);
  for (std::size_t i = 0; i < config.at("phases").size(); ++i) {
    const std::string name = config.at("phases")[i].at("name");
    const std::string path = join_path(join_path("phases", i), "name");
    check_name(name, path);
    if (name.find('.') != std::string::npos)
      throw UserError(path, "got '" + name + "', needs a name without dots");
    if (!seen.insert(name).second)
      throw UserError(path, "got '" + name + "', which another phase or an evaluation has");
    for (const auto& [evaluation, data] : config.at("evaluations").items()) {
      if (!evaluation.starts_with(name + ".")) continue;
      throw UserError(
          join_path("evaluations", evaluation),
          fmt::format("begins with the name of the phase '{}' and a dot, as metrics of that phase "
                      "do; needs another name",
                      name));
    }
  }
}

}  // namespace

void check_name(const std::string& name, const std::string& path) {
  constexpr std::size_t kLongest = 100;  // a file name may have 255 bytes, and endings are added
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool is_allowed = !name.empty() && name.size() <= kLongest && name.front() != '.' &&
                          name.front() != '-' && name.find_first_not_of(kAllowed) == std::string::npos;
  if (is_allowed) return;
  throw UserError(path,
                  fmt::format("got {}, needs a name of at most {} letters, digits, . _ - that begins with a "
                              "letter, a digit or _",
                              abbreviated(name), kLongest));
}

void check_config(const Json& config, const ExperimentOptions& experiment) {
  check_size(config.at("data"));
  check_distinct_files(config.at("data"), "data.paths");
  check(experiment);
  const Json& metrics = config.at("metrics");
  for (std::size_t i = 0; i < metrics.size(); ++i)
    check(read_options<MetricOptions>(metrics[i]), experiment, join_path("metrics", i));
  check_phase_names(config);
  check_distinct_names(config, "metrics");
  check_distinct_names(config, "save");
}

void check_separation(const Scenario& scenario) {
  std::set<std::string> drawn;
  const auto draw = [&](const Cell& cell, const Json& given) {
    if (!given.contains("separation")) return;
    Json data = given;
    // Sample counts do not enter the means: one draw serves the whole sweep over them.
    if (data.contains("train_samples")) data["train_samples"] = 1;
    data["test_samples"] = 1;
    if (!drawn.insert(canonical_text(data) + std::to_string(cell.seed)).second) return;
    draw_problem(read_data(data), cell.seeds());
  };
  for (const Cell& cell : scenario.cells) {
    draw(cell, cell.config.at("data"));
    for (const Json& phase : cell.config.at("phases")) draw(cell, phase.at("data"));
  }
}

void check_files(const Scenario& scenario) {
  std::set<std::string> read;
  const auto look_at = [&](const Json& data, const Json& loss) {
    if (data.at("generator") != "file") return;
    const std::string task = loss.at("task");
    if (!read.insert(canonical_text(data) + task).second) return;
    check_file_values(read_data(data), task_loss_kind(task).needs_classes);
  };
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    look_at(cell.config.at("data"), cell.config.at("loss"));
    for (const Json& phase : cell.config.at("phases")) look_at(phase.at("data"), phase.at("loss"));
  }
}

namespace {

std::unique_ptr<Problem> small_problem(const Json& data) {
  return draw_problem(read_small_data(data), Seeds{1, 0});
}

/// Without the fields that every generator has, none of which has a part in the shape of a row.
Json shaping(Json data) {
  for (const char* field : {"contamination", "train_samples", "test_samples", "independent"})
    data.erase(field);
  return data;
}

/// "sequences of 4 rows of 3 inputs, 2 outputs a row".
std::string shape_text(const Layout& layout) {
  if (layout.vocabulary > 0)
    return fmt::format("sequences of {} tokens, {} in all", layout.tokens, layout.vocabulary);
  const std::string sequences = layout.sequences ? fmt::format("sequences of {} ", layout.tokens) : "";
  const std::string image =
      layout.image.size() > 0 ? fmt::format(" ({} of an image)", layout.image.size()) : "";
  return fmt::format("{}rows of {} inputs{}, {} outputs{}", sequences, layout.input_dim, image,
                     layout.output_dim, layout.target_per_token ? " a row" : "");
}

}  // namespace

void check_same_rows(const Json& data, const Json& other, const std::string& place) {
  if (shaping(data) == shaping(other)) return;
  const Layout needed = small_problem(data)->layout(), own = small_problem(other)->layout();
  if (own.has_same_rows(needed)) return;
  throw UserError(place, fmt::format("has {}, needs {}, which the model was made for", shape_text(own),
                                     shape_text(needed)));
}

void check_training_on(const Json& data, const TrainOptions& train) {
  const bool is_population = train.gradient == TrainOptions::Gradient::population;
  if (is_population && population_rule(train).rule == TrainOptions::Rule::quasi_monte_carlo)
    check_uniform_map(*small_problem(data));
  if (train.start && train.start->as<BestStartOptions>()) check_best_targets(small_problem(data)->layout());
}

namespace {

/// The sweep of a profile may be wrong, which is told where it is chosen.
std::vector<SweepAxis> axes_of(const Json& variant) {
  try {
    return read_sweep(variant.value("sweep", Json::object()));
  } catch (const InvalidOption&) {
    return {};
  }
}

/// What the variants have together.
struct LabelledNames {
  std::vector<std::string> names = {"step"};               ///< arms and swept paths
  std::map<std::string, std::vector<std::string>> values;  ///< by swept path; none where they are searched

  void add(const Json& variant) {
    if (!variant.contains("arms")) add_name("base");
    const Json arms = variant.value("arms", Json::object());
    for (const auto& [arm, overrides] : arms.items()) add_name(arm);
    for (const SweepAxis& axis : axes_of(variant)) {
      for (const std::string& path : axis.paths) add_name(path);
      if (axis.crossing.is_null()) add_values(axis);
    }
  }
  bool has(const std::string& name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

 private:
  /// Variants have most names together.
  static void add_new(const std::string& text, std::vector<std::string>& texts) {
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  void add_name(const std::string& name) { add_new(name, names); }
  void add_values(const SweepAxis& axis) {
    for (const std::vector<Override>& step : axis.steps)
      for (const Override& change : step)
        add_new(value_text(read_sweep_value(change.value)), values[change.path]);
  }
};

void check_label(const LabelledNames& known, const std::string& name) {
  const std::size_t equals = name.find('=');
  const std::string path = name.substr(0, equals);
  if (known.has(name) || find_metric(name)) return;
  if (!known.has(path)) {
    std::vector<std::string> names = known.names;
    for (const std::string& metric : metric_names()) names.push_back(metric);
    throw UserError(join_path("labels", name), unknown_name("arm, swept path or metric", name, names));
  }
  const auto found = known.values.find(path);
  if (found == known.values.end()) return;
  const std::string text = name.substr(equals + 1);
  if (std::find(found->second.begin(), found->second.end(), text) == found->second.end())
    throw UserError(join_path("labels", name), unknown_name("value of " + path, text, found->second));
}

}  // namespace

void check_labels(std::span<const Json> variants) {
  LabelledNames known;
  for (const Json& variant : variants) known.add(variant);
  for (const Json& variant : variants) {
    const Json labels = variant.value("labels", Json::object());
    for (const auto& [name, label] : labels.items()) check_label(known, name);
  }
}

namespace {

/// Throws UserError where the metric is known at an end alone, of the training or of a phase.
void check_recorded(const CellConfig& config, const std::string& metric, const std::string& path) {
  const std::string evaluation = MetricKey::parse(metric).evaluation;
  const Json& phases = config.at("phases");
  const bool is_of_phase = std::any_of(phases.begin(), phases.end(), [&](const Json& phase) {
    const std::string name = phase.at("name");
    return evaluation == name || evaluation.starts_with(name + ".");
  });
  if (is_of_phase || is_of_end_alone(metric))
    throw UserError(path, "got '" + metric + "', needs a metric of every recorded step");
}

/// What looks at a metric while training goes on cannot wait for what is held against the last step.
void check_known_at_once(const std::string& metric, const std::string& path) {
  const std::vector<const Need*> all = needs_of(MetricKey::parse(metric).metric);
  if (std::find(all.begin(), all.end(), &needs::last_step) != all.end())
    throw UserError(path, "got '" + metric + "', needs a metric that is known before the last step");
}

}  // namespace

void check_convergence(const Json& config) {
  const Json& metrics = config.at("metrics");
  if (std::none_of(metrics.begin(), metrics.end(),
                   [](const Json& group) { return group.at("kind") == "convergence"; }))
    return;
  const MeasuredMetrics measured{CellConfig(config)};
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].at("kind") != "convergence") continue;
    const std::string here = join_path("metrics", i), metric = metrics[i].at("metric");
    if (metrics[i].contains("name")) check_name(metrics[i].at("name"), join_path(here, "name"));
    const std::string path = join_path(here, "metric");
    check_recorded(CellConfig(config), metric, path);
    measured.check(metric, path);
  }
}

void check_until(const Json& config) {
  const auto check_rule = [&](const Json& train, const std::string& phase, const std::string& place) {
    if (!train.contains("until")) return;
    const UntilOptions until = read_options<UntilOptions>(train.at("until"));
    const std::string metric = until.looked_at();
    if (metric.empty()) return;
    const std::string path = place + (until.plateau ? "train.until.plateau.metric" : "train.until.metric");
    check_recorded(CellConfig(config), metric, path);
    check_known_at_once(metric, path);
    MeasuredMetrics{CellConfig(config)}.check(phase + metric, path);
  };
  const Json& phases = config.at("phases");
  if (phases.empty()) return check_rule(config.at("train"), "", "");
  for (std::size_t i = 0; i < phases.size(); ++i) {
    check_rule(phases[i].at("train"), phases[i].at("name").get<std::string>() + ".",
               join_path("phases", i) + ".");
  }
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

namespace {

/// The arm of a side or a trend, the one that it is held against, and the metrics, which both must have.
void check_measured(const References& references, const ClaimSide& side, const std::string& path,
                    const char* metric_key = "metric") {
  const std::string metric_path = join_path(path, metric_key);
  const Expression expression = Expression::parse(side.metric, metric_path);
  if (!side.distance_from.empty() && !expression.is_name())
    throw UserError(metric_path, "got '" + side.metric + "', needs one metric beside 'distance_from'");
  const auto check_arm = [&](const std::string& arm, const char* key) {
    references.check_arm(arm, join_path(path, key));
    for (const std::string& name : expression.names()) references.check_part(arm, name, metric_path);
  };
  check_arm(side.arm, "arm");
  if (!side.relative_to.empty()) check_arm(side.relative_to, "relative_to");
  if (!side.distance_from.empty()) check_arm(side.distance_from, "distance_from");
}

/// `json` is what `side` was read from; a value is taken where the other side is.
void check_side(const References& references, const ClaimSide& side, const ClaimSide& other, const Json& json,
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
  check_measured(references, side, path, json.contains("value") ? "value" : "metric");
  if (!side.step) return;
  references.check_step(side.arm, *side.step, join_path(path, "step"));
  for (const std::string& name : Expression::parse(side.metric, join_path(path, "metric")).names())
    references.check_metric_at(name, *side.step, join_path(path, "step"));
  if (!side.relative_to.empty()) {
    references.check_step(side.relative_to, *side.step, join_path(path, "step"));
  }
}

// What will judge a claim finds its sweep points, and so refuses those that do not exist.

void check_statement(const References& references, const RowIndex& rows, const Comparison& claim,
                     const Json& json, const std::string& path) {
  check_side(references, claim.left, claim.right, json.at("left"), join_path(path, "left"));
  check_side(references, claim.right, claim.left, json.at("right"), join_path(path, "right"));
  if (const std::string metric = matched_metric(claim.matched); !metric.empty()) {
    for (const ClaimSide* side : {&claim.left, &claim.right})
      references.check_metric(side->arm, metric, join_path(path, "matched"));
  }
  find_points(claim, rows, path);
}

void check_statement(const References& references, const RowIndex& rows, const Trend& claim, const Json&,
                     const std::string& path) {
  check_measured(references, claim.side, path);
  references.check_swept(claim.along, "step", join_path(path, "along"));
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
  find_points(claim, rows, path);
}

void check_statement(const References& references, const RowIndex&, const RateClaim& claim, const Json& json,
                     const std::string& path) {
  const RateQuery& query = claim.query;
  references.check_arm(query.arm, join_path(path, "arm"));
  references.check_metric(query.arm, query.metric, join_path(path, "metric"));
  if (const std::string* const than = std::get_if<std::string>(&claim.against)) {
    references.check_arm(*than, join_path(path, "than"));
    references.check_metric(*than, query.metric, join_path(path, "metric"));
  }
  references.check_sizes(json, query.along, {query.along}, path, join_path(path, "along"));
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

/// What `moelab tune` has chosen for an arm stands among the arm's overrides.
void check_tuned(const Scenario& scenario, const Claim& claim, const std::string& path) {
  const std::string here = join_path(path, "tuned");
  const Json tune = scenario.document.value("tune", Json::object());
  if (tune.empty()) throw UserError(here, "got true, needs \"tune\", which says what is chosen for each arm");
  const Json arms = scenario.document.value("arms", Json::object());
  for (const std::string& arm : arms_of(claim)) {
    const Json own = arms.value(arm, Json::object());
    for (const auto& [tuned, range] : tune.items()) {
      if (own.contains(tuned)) continue;
      throw UserError(here,
                      "got true, but arms." + arm + " does not set " + tuned + ", which \"tune\" names");
    }
  }
}

/// Where a path is searched, its values are known later, but none is placed outside the ends.
void check_within_ends(const CrossingSearch& search, const SweepPoint& point, const std::string& path) {
  for (const auto& [name, value] : point) {
    const auto number = value.number();
    if (name != search.path || (number && *number >= search.low && *number <= search.high)) continue;
    throw UserError(join_path(path, name),
                    fmt::format("got {}, needs a value between the ends of the crossing: {} to {}",
                                value.text(), search.low, search.high));
  }
}

/// `json` is a claim, whose "at" names points that every run of the search has.
void check_within_ends(const CrossingSearch& search, const Json& json, const std::string& path) {
  for (const char* side : {"left", "right"}) {
    if (!json.contains(side) || !json.at(side).is_object()) continue;
    check_within_ends(search, where_of(json.at(side)), join_path(join_path(path, side), "where"));
  }
  check_within_ends(search, where_of(json), join_path(path, "where"));
}

}  // namespace

void check_claims(const Scenario& scenario) {
  check_ids(scenario.claims, "claims");
  const References references(scenario);
  const RowIndex rows(references.table());
  const std::vector<Claim> claims = read_claims(scenario.claims);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (scenario.crossing) check_within_ends(*scenario.crossing, scenario.claims[i], join_path("claims", i));
    if (claims[i].is_tuned) check_tuned(scenario, claims[i], join_path("claims", i));
    std::visit(
        [&](const auto& statement) {
          check_statement(references, rows, statement, scenario.claims[i], join_path("claims", i));
        },
        claims[i].statement);
  }
}

}  // namespace moelab
