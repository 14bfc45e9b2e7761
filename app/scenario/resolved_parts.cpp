#include "app/scenario/resolved_parts.h"

#include "app/scenario/cross_checks.h"
#include "app/scenario/drawn_checks.h"
#include "app/scenario/experiment_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_shape.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Tokens of other text are those that the model was made for: byte pairs that are learned go on being those
/// of `data`, unless the text says whose they are.
void keep_byte_pairs(const Json& data, Json& other) {
  const auto learns = [](const Json& text) {
    return text.at("generator") == "text" && text.at("tokenizer").at("kind") == "bpe";
  };
  if (!learns(data) || !learns(other) || data.at("paths") == other.at("paths")) return;
  if (other.at("tokenizer").contains("paths")) return;
  const Json& known = data.at("tokenizer");
  other["tokenizer"]["paths"] = known.contains("paths") ? known.at("paths") : data.at("paths");
}

/// The error at its own place: below that of the evaluation or phase where no override wrote what is wrong,
/// unless it is the model's, which is that of all.
UserError error_below(const std::string& place, const UserError& error) {
  if (error.path().starts_with(place) || error.path().starts_with("model")) return error;
  return {join_path(place, error.path()), error.message()};
}

/// The data of an evaluation: those of the configuration after the evaluation's own overrides.
Json evaluation_data(const Json& document, const Json& data, const Json& overrides,
                     const std::string& place) {
  const std::vector<Override> changes = kept(read_overrides(overrides, place));
  for (const Override& change : changes) {
    if (is_within(change.path, "data")) continue;
    throw UserError(change.place, "got " + Json(change.path).dump() + ", needs a path below data");
  }
  Json changed = document;
  changed.erase("phases");
  apply_overrides(config_shape(), changes, changed);
  try {
    Json config = resolve(config_shape(), changed, "");
    keep_byte_pairs(data, config["data"]);
    check_config(config, read_experiment(config));
    check_same_rows(data, config.at("data"), place);
    return config.at("data");
  } catch (const InvalidOption& error) {
    throw error_below(place, at_override(error, config_shape(), changes, changed));
  }
}

/// A phase with the whole of its data, loss, training and evaluations: those of the configuration after the
/// phase's own fields.
Json resolved_phase(const Json& document, const Json& config_before, Json phase, const std::string& place) {
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
    Json config = resolve(config_shape(), changed, "");
    keep_byte_pairs(config_before.at("data"), config["data"]);
    for (const char* part : {"data", "loss", "train"}) phase[part] = config.at(part);
    const ExperimentOptions experiment = read_experiment(config);
    check_config(config, experiment);
    check_same_rows(config_before.at("data"), config.at("data"), join_path(place, "data"));
    check_training_on(config.at("data"), experiment.train);
  } catch (const InvalidOption& error) {
    throw error_below(place, at_override(error, config_shape(), changes, changed));
  }
  phase["evaluations"] = resolved_evaluations(changed, phase.at("data"), config_before.at("evaluations"));
  return phase;
}

}  // namespace

Json resolved_evaluations(const Json& document, const Json& data, Json evaluations) {
  for (auto& [name, evaluation] : evaluations.items()) {
    const std::string place = join_path("evaluations", name);
    check_name(name, place);
    evaluation = evaluation_data(document, data, evaluation, place);
  }
  return evaluations;
}

Json resolved_phases(const Json& document, const Json& config) {
  Json phases = config.at("phases");
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string place = join_path("phases", i);
    phases[i] = resolved_phase(document, config, phases[i], place);
  }
  return phases;
}

}  // namespace moelab
