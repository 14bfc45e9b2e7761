#include <algorithm>

#include "app/json/options.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/measured_metrics.h"
#include "sim/base/error.h"
#include "sim/train/until.h"

namespace moelab {
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

}  // namespace moelab
