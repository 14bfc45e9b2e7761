#include "app/scenario/resolved_parts.h"

#include "app/scenario/cross_checks.h"
#include "app/scenario/experiment_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_shape.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The data of an evaluation: those of the configuration after the evaluation's own overrides.
Json evaluation_data(const Json& document, const Json& overrides, const std::string& place) {
  const std::vector<Override> changes = read_overrides(overrides, place);
  for (const Override& change : changes) {
    if (is_within(change.path, "data")) continue;
    throw UserError(change.place, "got " + Json(change.path).dump() + ", needs a path below data");
  }
  Json changed = document;
  changed.erase("phases");
  apply_overrides(config_shape(), changes, changed);
  try {
    const Json config = resolve(config_shape(), changed, "");
    check_config(config, read_experiment(config));
    return config.at("data");
  } catch (const InvalidOption& error) {
    throw at_override(error, config_shape(), changes, changed);
  }
}

/// A phase with the whole of its data, loss, training and evaluations: those of the configuration after the
/// phase's own fields.
Json resolved_phase(const Json& document, const Json& evaluations, Json phase, const std::string& place) {
  Json changed = document;
  changed.erase("phases");
  const Json& data = phase.at("data");
  if (data.contains("generator") && document.contains("data") && document.at("data").is_object() &&
      document.at("data").value("generator", Json()) != data.at("generator"))
    changed["data"] = data;
  std::vector<Override> changes;
  for (const char* part : {"data", "loss", "train"}) {
    for (const auto& [field, value] : phase.at(part).items())
      changes.push_back({join_path(part, field), value, join_path(join_path(place, part), field), ""});
  }
  apply_overrides(config_shape(), changes, changed);
  try {
    const Json config = resolve(config_shape(), changed, "");
    for (const char* part : {"data", "loss", "train"}) phase[part] = config.at(part);
    check_config(config, read_experiment(config));
  } catch (const InvalidOption& error) {
    throw at_override(error, config_shape(), changes, changed);
  }
  phase["evaluations"] = resolved_evaluations(changed, evaluations);
  return phase;
}

}  // namespace

Json resolved_evaluations(const Json& document, Json evaluations) {
  for (auto& [name, evaluation] : evaluations.items()) {
    const std::string place = join_path("evaluations", name);
    check_name(name, place);
    evaluation = evaluation_data(document, evaluation, place);
  }
  return evaluations;
}

Json resolved_phases(const Json& document, const Json& config) {
  Json phases = config.at("phases");
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string place = join_path("phases", i);
    phases[i] = resolved_phase(document, config.at("evaluations"), phases[i], place);
  }
  return phases;
}

}  // namespace moelab
