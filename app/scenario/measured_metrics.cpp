#include "app/scenario/measured_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/json/options.h"
#include "app/scenario/experiment_reader.h"
#include "sim/base/error.h"

namespace moelab {
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

}  // namespace moelab
