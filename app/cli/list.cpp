#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/routed_tokens.h"
#include "app/cli/documents.h"
#include "app/cli/verbs.h"
#include "app/run/results.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "plots/kinds/figure_kind.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// An axis of the scenario language: the path where a scenario names its kind, and all kinds.
struct ListedAxis {
  std::string name;
  std::string path;
  std::vector<Kind> kinds;
  std::string metric = "";  ///< the only metric that is listed; empty for all
};

/// The kinds of target of all generators, each once.
std::vector<Kind> target_kinds() {
  std::vector<Kind> targets;
  for (const Kind& generator : data_shape().kinds) {
    const Shape* const target = find_shape(data_shape(), {{data_shape().tag, generator.name}}, "target");
    for (const Kind& kind : target ? target->kinds : std::vector<Kind>()) {
      const bool is_known = std::any_of(targets.begin(), targets.end(),
                                        [&](const Kind& other) { return other.name == kind.name; });
      if (!is_known) targets.push_back(kind);
    }
  }
  return targets;
}

template <class Options>
std::vector<Kind> kinds_of() {
  return shape_of<Options>().kinds;
}

/// The entries of a table that have no fields.
template <class Table>
std::vector<Kind> kinds_without_fields(const Table& table) {
  std::vector<Kind> kinds;
  for (const auto& kind : table) kinds.push_back({kind.name, kind.help, {}});
  return kinds;
}

std::vector<ListedAxis> axes() {
  return {{"generators", "data.generator", data_shape().kinds},
          {"targets", "data.target.kind", target_kinds()},
          {"contaminations", "data.contamination.kind", kinds_of<ContaminationOptions>()},
          {"models", "model.kind", kinds_of<OneOf<ModelAxis>>()},
          {"mixers", "model.mixer.kind", kinds_of<MixerOptions>()},
          {"routers", "model.router.kind", kinds_of<RouterOptions>()},
          {"start_laws", "model.router.init", kinds_without_fields(start_laws())},
          {"experts", "model.expert.kind", kinds_of<ExpertOptions>()},
          {"gatings", "model.gating.train, model.gating.eval", kinds_of<GatingRule>()},
          {"losses", "loss.task", kinds_without_fields(task_loss_kinds())},
          {"auxiliary_losses", "fields of loss", kinds_without_fields(auxiliary_loss_kinds())},
          {"optimizers", "train.optimizer.kind", kinds_of<TrainingRule>()},
          {"schedules", "train.schedule.kind", kinds_of<ScheduleOptions>()},
          {"metrics", "metrics", kinds_of<MetricOptions>()},
          {"operators", "op of claims", kinds_of<ClaimOptions>()},
          {"figures", "figures", kinds_of<FigureOptions>()}};
}

/// The listed metrics of the group `name`; empty for other axes.
std::vector<MetricGroup::Metric> metrics_of(const ListedAxis& axis, const std::string& name) {
  std::vector<MetricGroup::Metric> metrics;
  if (axis.name == "metrics") metrics = metrics_of_group(name);
  if (!axis.metric.empty())
    std::erase_if(metrics, [&](const MetricGroup::Metric& metric) { return metric.name != axis.metric; });
  return metrics;
}

Json axis_json(const ListedAxis& axis) {
  Json kinds = Json::array();
  for (const Kind& kind : axis.kinds) {
    Json fields = Json::array();
    for (const Field& field : kind.fields) {
      Json json = {{"name", field.name}, {"value", shape_text(field.shape)}, {"help", field.help}};
      json["required"] = !field.default_value.has_value();
      if (field.default_value && !field.default_value->is_null()) json["default"] = *field.default_value;
      fields.push_back(std::move(json));
    }
    Json json = {{"name", kind.name}, {"help", kind.help}, {"fields", std::move(fields)}};
    Json metrics = Json::array();
    for (const MetricGroup::Metric& metric : metrics_of(axis, kind.name)) {
      metrics.push_back({{"name", metric.name},
                         {"help", metric.help},
                         {"label", metric.axis_label},
                         {"positive", metric.positive},
                         {"needs", needs_text(needs_of(metric.name))}});
    }
    if (!metrics.empty()) json["metrics"] = std::move(metrics);
    kinds.push_back(std::move(json));
  }
  return {{"path", axis.path}, {"kinds", std::move(kinds)}};
}

std::string axis_text(const ListedAxis& axis) {
  std::string text = fmt::format("{} ({})\n", axis.name, axis.path);
  for (const Kind& kind : axis.kinds) {
    const std::string needs = axis.name == "metrics" ? needs_of_group_text(kind.name) : "";
    text += fmt::format("  {}: {}{}{}\n", kind.name, kind.help, needs.empty() ? "" : "; needs ", needs);
    Table fields, metrics;
    for (const Field& field : kind.fields)
      fields.rows.push_back({"    " + field.name, shape_text(field.shape), default_text(field), field.help});
    for (const MetricGroup::Metric& metric : metrics_of(axis, kind.name)) {
      const std::string own_needs = needs_text(metric.needs);
      metrics.rows.push_back(
          {"    " + metric.name, metric.help + (own_needs.empty() ? "" : "; needs " + own_needs)});
    }
    text += text_table(fields) + text_table(metrics);
  }
  return text;
}

Candidates offer_axes(const std::string&) {
  Candidates candidates;
  for (const ListedAxis& axis : axes()) candidates.words.push_back({axis.name, axis.path});
  return candidates;
}

/// A metric as `analyze` defines it.
ListedAxis axis_of_analysis(const RoutedMetric& metric) {
  const std::string follows = metric.follows;
  return {"analysis",
          "a metric of moelab analyze",
          {{metric.name, metric.definition + (follows.empty() ? "" : "; follows " + follows), {}}}};
}

/// The names in their order, each once. A kind's name can be on several axes.
std::vector<std::string> without_repeats(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names)
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  return once;
}

/// What `name` stands for: an axis; a kind, on each axis that has it; a metric, with its group. An empty name
/// stands for all axes.
std::vector<ListedAxis> chosen_axes(const std::string& name) {
  std::vector<std::string> names;
  std::vector<ListedAxis> chosen;
  for (ListedAxis& axis : axes()) {
    names.push_back(axis.name);
    if (!name.empty() && name != axis.name) {
      for (const Kind& kind : axis.kinds) names.push_back(kind.name);
      const std::string group = axis.name == "metrics" ? group_of_metric(name) : "";
      std::erase_if(axis.kinds, [&](const Kind& kind) { return kind.name != name && kind.name != group; });
      if (!group.empty()) axis.metric = name;
      if (axis.kinds.empty()) continue;
    }
    chosen.push_back(std::move(axis));
  }
  // `analyze` may define a metric of scenarios for K choices, or by the first one.
  for (const RoutedMetric& metric : routed_metrics()) {
    if (metric.name == name) chosen.push_back(axis_of_analysis(metric));
    names.emplace_back(metric.name);
  }
  if (!chosen.empty()) return chosen;
  for (const std::string& metric : metric_names()) names.push_back(metric);
  throw UserError("NAME", unknown_name("axis, kind or metric", name, without_repeats(names)));
}

/// The names of all kinds, for a terminal of 80 columns.
std::string overview() {
  constexpr std::size_t kIndent = 18, kWidth = 79;
  std::string text;
  for (const ListedAxis& axis : axes()) {
    std::string line = fmt::format("{:<{}}", axis.name, kIndent);
    for (const Kind& kind : axis.kinds) {
      const std::string name = kind.name + (&kind == &axis.kinds.back() ? "" : ", ");
      if (line.size() + kind.name.size() + 1 > kWidth) {
        text += line.substr(0, line.size() - 1) + "\n";
        line = std::string(kIndent, ' ');
      }
      line += name;
    }
    text += line + "\n";
  }
  return text + "\nmoelab list NAME explains an axis (routers), kind (cosine) or metric (layer_ari).\n";
}

struct ListOptions {
  std::string name;  ///< empty for the overview
  bool json = false;

  void bind(VerbOptions& options) {
    options.add("NAME", &name,
                "an axis (routers), a kind (cosine) or a metric (layer_ari) (default: all names)",
                {.candidates = offer_axes});
    bind_json(options, json);
  }
};

/// Lists the parts of scenarios, with their fields.
int print_list(const ListOptions& options) {
  if (options.json) {
    print_json(list_json(options.name));
    return 0;
  }
  if (options.name.empty()) {
    std::cout << overview();
    return 0;
  }
  bool is_first = true;
  for (const ListedAxis& axis : chosen_axes(options.name)) {
    std::cout << (is_first ? "" : "\n") << axis_text(axis);
    is_first = false;
  }
  return 0;
}

}  // namespace

Json list_json(const std::string& name) {
  Json answer = Json::object();
  for (const ListedAxis& chosen : chosen_axes(name)) answer[chosen.name] = axis_json(chosen);
  return answer;
}

Verb list_verb() {
  return make_verb("list", "List generators, routers, experts, metrics … with their fields", "list routers",
                   print_list);
}

}  // namespace moelab
