#include <fmt/format.h>

#include <algorithm>

#include "app/metrics/metric_groups.h"
#include "app/scenario/cross_checks.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool is_chosen(const CellConfig& config, const std::string& group) {
  const Json& chosen = config.at("metrics");
  return std::any_of(chosen.begin(), chosen.end(),
                     [&](const Json& each) { return each.at("kind") == group; });
}

/// What stands before the last dot is an evaluation.
void check_prefix(const CellConfig& config, const std::string& metric, const std::string& path) {
  const std::size_t dot = metric.rfind('.');
  if (dot == std::string::npos) return;
  std::vector<std::string> names;
  for (const auto& evaluation : config.at("evaluations").items()) names.push_back(evaluation.key());
  if (std::find(names.begin(), names.end(), metric.substr(0, dot)) == names.end())
    throw UserError(path, unknown_name("evaluation", metric.substr(0, dot), names));
}

/// A metric of routing names the layer where there are several, and no layer that there is not.
void check_layer(const CellConfig& config, const std::string& metric, const std::string& path) {
  const std::string_view number = layer_number(metric);
  const bool of_layers = is_of_layers(metric);
  const int layers = config.at("model").at("layers");
  if (number.empty() && (layers == 1 || !of_layers)) return;
  if (!number.empty() && of_layers && layers > 1 && std::stoi(std::string(number)) < layers) return;
  throw UserError(
      path, fmt::format("got '{}', needs {} for model.layers = {}", metric,
                        layers > 1 && of_layers ? fmt::format("an ending _layer0 … _layer{}", layers - 1)
                                                : "no ending of a layer",
                        layers));
}

/// The metric is that of an entry of convergence.
void check_entry(const CellConfig& config, const std::string& metric, const std::string& path) {
  std::vector<std::string> names;
  for (const Json& group : config.at("metrics")) {
    if (group.at("kind") != "convergence") continue;
    const std::string ending = group.contains("name") ? "." + group.at("name").get<std::string>() : "";
    for (const std::string& name : names_of(metrics_of_group("convergence"))) names.push_back(name + ending);
  }
  if (std::find(names.begin(), names.end(), metric) == names.end())
    throw UserError(path, unknown_name("metric", metric, names));
}

}  // namespace

void check_measured_metric(const CellConfig& config, const std::string& metric, const std::string& path) {
  if (!find_metric(metric)) throw UserError(path, unknown_name("metric", metric, metric_names()));
  const std::string group = group_of_metric(metric);
  const bool is_entry = group == "convergence";
  if (!is_entry) {
    check_prefix(config, metric, path);
    check_layer(config, metric, path);
  }
  if (!is_chosen(config, group)) {
    throw UserError(
        path, fmt::format("'{}' belongs to the group '{}', which \"metrics\" leaves out", metric, group));
  }
  if (is_entry) check_entry(config, metric, path);
}

void check_convergence(const Json& config) {
  const Json& metrics = config.at("metrics");
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].at("kind") != "convergence") continue;
    const std::string here = join_path("metrics", i), metric = metrics[i].at("metric");
    if (metrics[i].contains("name")) check_name(metrics[i].at("name"), join_path(here, "name"));
    const std::string path = join_path(here, "metric"), group = group_of_metric(metric);
    check_measured_metric(config, metric, path);
    // Those are known at the end alone.
    if (group == "convergence" || group == "fit")
      throw UserError(path, "got '" + metric + "', needs a metric of every recorded step");
  }
}

}  // namespace moelab
