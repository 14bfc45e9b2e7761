#include "app/scenario/point_resolver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "app/json/options.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/drawn_checks.h"
#include "app/scenario/experiment_reader.h"
#include "app/scenario/resolved_parts.h"
#include "app/scenario/scenario_shape.h"

namespace moelab {
namespace {

/// Adds to a resolved configuration what is made of all of its parts, and checks it; `read` reads it once its
/// phases are there.
template <class Read>
void complete(const Json& document, Json& config, const Read& read) {
  config["phases"] = resolved_phases(document, config);
  const ExperimentOptions& experiment = read();
  check_config(config, experiment);
  if (experiment.phases.empty()) check_training_on(config.at("data"), experiment.train);
  config["evaluations"] = resolved_evaluations(document, config.at("data"), config.at("evaluations"));
  check_convergence(config);
  check_until(config);
}

/// The error of the configuration with these overrides, if any; `document` gets them unresolved.
std::optional<UserError> error_with(const Json& base, std::span<const Override> overrides, Json& document) {
  document = base;
  try {
    apply_overrides(config_shape(), overrides, document);
    Json config = resolve(config_shape(), document, "");
    complete(document, config, [&] { return read_experiment(config); });
  } catch (const InvalidOption& error) {
    return UserError(error.path(), error.message());
  }
  return std::nullopt;
}

/// The error at the override that brings it about: the one that wrote the value, or else the first that,
/// applied after those before it, makes the same error.
UserError explained(const UserError& error, const Json& base, std::span<const Override> overrides,
                    const Json& document) {
  const UserError moved = at_override(error, config_shape(), overrides, document);
  const bool is_at_override = std::any_of(overrides.begin(), overrides.end(), [&](const Override& change) {
    return change.place == error.path();
  });
  if (is_at_override || moved.path() != error.path()) return moved;
  for (std::size_t count = 0; count <= overrides.size(); ++count) {
    Json unused;
    const std::optional<UserError> found = error_with(base, overrides.first(count), unused);
    if (!found || found->path() != error.path() || found->message() != error.message()) continue;
    if (count == 0) break;
    const Override& cause = overrides[count - 1];
    return {cause.place + cause.element, "makes " + error.path() + " wrong: " + error.message()};
  }
  return error;
}

}  // namespace

PointResolver::PointResolver(const Json& base, std::span<const Override> arm, SharedParts& parts)
    : base_(base), arm_(arm), parts_(parts) {}

CellConfig PointResolver::config(std::span<const Override> point) {
  try {
    const bool is_first = !experiment_;
    is_first ? start(point) : change(point);
    complete(document_, config_, [&]() -> const ExperimentOptions& {
      is_first ? void(experiment_ = read_experiment(config_)) : read_changed();
      return *experiment_;
    });
    shared_ = is_first ? parts_.config(config_) : parts_.config(config_, shared_, changing_);
    return shared_;
  } catch (const InvalidOption&) {
    experiment_.reset();
    std::vector<Override> overrides(arm_.begin(), arm_.end());
    overrides.insert(overrides.end(), point.begin(), point.end());
    Json document;
    const std::optional<UserError> error = error_with(base_, overrides, document);
    if (!error) throw;
    throw explained(*error, base_, overrides, document);
  }
}

void PointResolver::start(std::span<const Override> point) {
  arm_document_ = base_;
  apply_overrides(config_shape(), arm_, arm_document_);
  changing_ = {"phases", "evaluations"};
  for (const Override& change : point) changing_.insert(change.path.substr(0, change.path.find('.')));
  changing_shape_ = config_shape();
  std::erase_if(changing_shape_.fields, [&](const Field& field) { return !is_changing(field.name); });
  document_ = arm_document_;
  apply_overrides(config_shape(), point, document_);
  config_ = resolve(config_shape(), document_, "");
}

void PointResolver::change(std::span<const Override> point) {
  for (const std::string& part : changing_) {
    document_.erase(part);
    if (const auto own = arm_document_.find(part); own != arm_document_.end()) document_[part] = *own;
  }
  apply_overrides(config_shape(), point, document_);
  Json changing = Json::object();
  for (const std::string& part : changing_) {
    if (const auto given = document_.find(part); given != document_.end()) changing[part] = *given;
  }
  const Json resolved = resolve(changing_shape_, changing, "");
  for (const auto& [part, value] : resolved.items()) config_[part] = value;
}

void PointResolver::read_changed() {
  if (!config_.at("phases").empty()) {
    experiment_ = read_experiment(config_);
    return;
  }
  if (is_changing("data")) experiment_->data = read_data(config_.at("data"));
  if (is_changing("model")) experiment_->model = read_options<ModelOptions>(config_.at("model"));
  if (is_changing("loss")) experiment_->loss = read_options<LossOptions>(config_.at("loss"));
  if (is_changing("train")) experiment_->train = read_options<TrainOptions>(config_.at("train"));
}

}  // namespace moelab
