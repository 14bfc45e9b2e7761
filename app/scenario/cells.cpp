#include "app/scenario/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/uuid/detail/sha1.hpp>
#include <boost/uuid/name_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <map>
#include <utility>
#include <vector>

#include "app/scenario/checks.h"
#include "app/scenario/errors.h"
#include "sim/base/error.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {
namespace {

// Resolved JSON to typed options

PhaseOptions read_phase(const Json& phase) {
  PhaseOptions options;
  options.name = phase.at("name");
  options.data = read_options<DataOptions>(phase.at("data"));
  options.loss = read_options<LossOptions>(phase.at("loss"));
  options.train = read_options<TrainOptions>(phase.at("train"));
  const Json& learns = phase.at("learns");
  const auto has = [&](const char* part) {
    return std::find(learns.begin(), learns.end(), part) != learns.end();
  };
  options.learns = {has("router"), has("experts"), has("layers"), has("first_layers"), has("read_outs")};
  options.keep_optimizer = phase.at("keep_optimizer");
  return options;
}

NamedData read_evaluations(const Json& evaluations) {
  NamedData read;
  for (const auto& [name, data] : evaluations.items())
    read.emplace_back(name, read_options<DataOptions>(data));
  return read;
}

/// Sets the options that a part of the configuration defines.
void read_part(const std::string& name, const Json& part, CellOptions& options) {
  ExperimentOptions& experiment = options.experiment;
  if (name == "data") experiment.data = read_options<DataOptions>(part);
  if (name == "model") experiment.model = read_options<ModelOptions>(part);
  if (name == "loss") experiment.loss = read_options<LossOptions>(part);
  if (name == "train") experiment.train = read_options<TrainOptions>(part);
  if (name == "metrics") {
    for (const Json& group : part) options.metrics.push_back(read_options<MetricOptions>(group));
  }
  if (name == "save") {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!options.saved.insert(part[i].get<std::string>()).second)
        throw UserError(join_path("save", i), "got " + part[i].dump() + " a second time");
    }
  }
}

/// Reads the independent parts: all except phases and evaluations.
CellOptions read_parts(const Json& config) {
  CellOptions options;
  for (const auto& [name, part] : config.items()) read_part(name, part, options);
  return options;
}

// Cell ids

/// A part of every cell id. Increase it when a program change alters results, so that old results are not
/// reused.
constexpr int kNumericsVersion = 4;

Json identity_of_data(const Json& data, FileContents& contents) {
  Json identity = without_defaults(data_shape(), data);
  const auto files = files_of(read_options<DataOptions>(data));
  for (const auto& [field, path] : files) identity.erase(field);
  for (const auto& [field, path] : files) {
    // A field with several files has a list of their contents.
    const std::string name = contents.name_of(path);
    if (!identity.contains(field)) {
      identity[field] = name;
    } else if (identity[field].is_string()) {
      identity[field] = Json::array({identity[field], name});
    } else {
      identity[field].push_back(name);
    }
  }
  return identity;
}

Json identity_of_phase(const Json& phase, FileContents& contents) {
  // The data, loss and train of a phase follow the same rules as the parts of a scenario.
  Json identity = phase;
  for (const Field& field : config_shape().fields) {
    if (field.name == "loss" || field.name == "train")
      identity[field.name] = without_defaults(field.shape, phase.at(field.name));
  }
  identity["data"] = identity_of_data(phase.at("data"), contents);
  for (const auto& [name, data] : phase.at("evaluations").items())
    identity["evaluations"][name] = identity_of_data(data, contents);
  return identity;
}

/// Whether r of `gating.eval` differs from softmax(γ). Some stored results of numerics version 4 used
/// softmax(γ) for soft and top-1 losses, shuffled metrics and saved probabilities. Models that use r get
/// different ids, so those results are not reused.
bool is_asked_by_its_own_probabilities(const Json& model) {
  if (!model.contains("gating")) return false;
  const Json& rule = model.at("gating").at("eval");
  const std::string kind = rule.at("kind");
  return kind == "sigmoid" || kind == "relu" || kind == "dense_to_sparse" ||
         (kind == "soft_slots" && rule.at("slots") > 1);
}

/// Whether the router computes statistics over the rows that are measured together, in groups of batch_size.
/// Some stored results of numerics version 4 used groups of 1024 rows; a different id avoids their reuse.
bool is_measured_in_groups(const Json& model) {
  return model.contains("router") && model.at("router").at("kind") == "adaptive_clustering";
}

/// Whether the load loss reads learned noise. Some stored results of numerics version 4 measured the numbers
/// of selected rows; a different id avoids their reuse.
bool is_measured_by_chances(const Json& model) {
  if (!model.contains("gating")) return false;
  const Json& rule = model.at("gating").at("train");
  return rule.at("kind") == "noisy_topk" && rule.at("noise") == "learned";
}

/// Whether training is a fit. Some stored results of numerics version 4 summed its loss in another order; a
/// different id avoids their reuse.
bool is_fit(const Json& train) {
  return train.contains("optimizer") && train.at("optimizer").at("kind") == "lbfgs";
}

/// Rewrites the temperatures of routers. A number was the start of a learned temperature once: learned ones
/// keep the ids of that time, because they mean the same, and fixed ones differ from them.
void tell_temperatures(Json& identity) {
  if (!identity.is_structured()) return;
  for (auto member = identity.begin(); member != identity.end(); ++member) {
    Json& value = *member;
    if (!identity.is_object() || member.key() != "temperature") {
      tell_temperatures(value);
      continue;
    }
    const Json start = value.is_object() ? value.at("start") : value;
    const bool is_learned = value.is_object() && value.at("learned").get<bool>();
    value = is_learned ? start : Json::object({{"fixed", start}});
  }
}

/// The member of the hashed text for a part of the configuration: "\"model\":{…}". Empty if the whole part
/// has default values.
std::string identity_of_part(const std::string& part, const Json& value, FileContents& contents) {
  Json identity = without_defaults(config_shape(), Json::object({{part, value}}));
  if (part == "data") identity[part] = identity_of_data(value, contents);
  if (part == "model") {
    if (identity.contains(part)) tell_temperatures(identity[part]);
    if (is_asked_by_its_own_probabilities(value)) identity[part]["asked_by"] = "r";
    if (is_measured_in_groups(value)) identity[part]["measured_in"] = "batch_size";
    if (is_measured_by_chances(value)) identity[part]["load_measured_by"] = "chances";
  }
  if (part == "train" && is_fit(value)) identity[part]["summed_by"] = "lanes";
  if (part == "evaluations") {
    for (const auto& [name, data] : value.items()) identity[part][name] = identity_of_data(data, contents);
  }
  if (part == "phases") {
    for (std::size_t i = 0; i < value.size(); ++i) identity[part][i] = identity_of_phase(value[i], contents);
  }
  const std::string text = canonical_text(identity);
  return text.substr(1, text.size() - 2);  // without the braces
}

/// The members of the parts, in the order of their names, up to and from the place of the seeds' member.
void write_members(const std::map<std::string, std::string>& parts, std::string& before_seed,
                   std::string& after_seed) {
  for (const auto& [name, member] : parts) {
    if (member.empty()) continue;
    if (name < "seed") {
      before_seed += member + ",";
    } else {
      after_seed += "," + member;
    }
  }
}

/// The id of a cell: 16 hexadecimal digits, a hash of the members of its parts and its seeds.
std::string cell_id(const std::string& before_seed, const Seeds& seeds, const std::string& after_seed) {
  const std::string shared = seeds.shared == 0 ? "" : fmt::format(R"(,"shared":{})", seeds.shared);
  const boost::uuids::uuid hash = boost::uuids::name_generator_sha1(boost::uuids::ns::oid())(
      fmt::format(R"({}{}{{{}"seed":{{"index":{},"root":{}{}}}{}}})", kNumericsVersion, '\n', before_seed,
                  seeds.index, seeds.root, shared, after_seed));
  return fmt::format("{:02x}", fmt::join(hash.begin(), hash.begin() + 8, ""));
}

// Evaluations and phases

/// Keeps the token vocabulary of the model for other text. Learned byte pairs come from the text of `data`,
/// unless the other text names its own source.
void keep_byte_pairs(const Json& data, Json& other) {
  const auto learns = [](const Json& text) {
    return text.at("generator") == "text" && text.at("tokenizer").at("kind") == "bpe";
  };
  if (!learns(data) || !learns(other) || data.at("paths") == other.at("paths")) return;
  if (other.at("tokenizer").contains("paths")) return;
  const Json& known = data.at("tokenizer");
  other["tokenizer"]["paths"] = known.contains("paths") ? known.at("paths") : data.at("paths");
}

/// Places an error below the evaluation or phase if no override wrote the wrong value. Errors in the model
/// keep their path, because all phases share the model.
UserError error_below(const std::string& place, const UserError& error) {
  if (error.path().starts_with(place) || error.path().starts_with("model")) return error;
  return {join_path(place, error.path()), error.message()};
}

/// The data of an evaluation: the data of the configuration after the evaluation's overrides. `document` has
/// no phases.
Json evaluation_data(const Json& document, const Json& data, const Json& overrides,
                     const std::string& place) {
  const std::vector<Override> changes = kept(read_overrides(overrides, place));
  for (const Override& change : changes) {
    if (is_within(change.path, "data")) continue;
    throw UserError(change.place, "got " + Json(change.path).dump() + ", needs a path below data");
  }
  Json changed = document;
  apply_overrides(config_shape(), changes, changed);
  try {
    Json config = resolve(config_shape(), changed, "");
    keep_byte_pairs(data, config["data"]);
    const CellOptions options = read_parts(config);
    check_config(options);
    check_same_rows(read_options<DataOptions>(data), options.experiment.data, place);
    return config.at("data");
  } catch (const InvalidOption& error) {
    throw error_below(place, at_override(error, config_shape(), changes, changed));
  }
}

/// Resolves evaluations to {name: data}: the data of the unresolved configuration `document` after each
/// evaluation's overrides. Rows must have the shape of `data`, and text keeps the tokens of `data`.
Json resolved_evaluations(const Json& document, const Json& data, Json evaluations) {
  for (auto& [name, evaluation] : evaluations.items()) {
    const std::string place = join_path("evaluations", name);
    check_name(name, place);
    evaluation = evaluation_data(document, data, evaluation, place);
  }
  return evaluations;
}

/// Resolves a phase: its data, loss, training and evaluations are complete. They are the configuration's
/// values after the phase's overrides. `document` has no phases.
Json resolved_phase(const Json& document, const Json& config_before, Json phase, const std::string& place) {
  Json changed = document;
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
    const CellOptions options = read_parts(config);
    check_config(options);
    check_same_rows(read_options<DataOptions>(config_before.at("data")), options.experiment.data,
                    join_path(place, "data"));
    check_training_on(options.experiment);
  } catch (const InvalidOption& error) {
    throw error_below(place, at_override(error, config_shape(), changes, changed));
  }
  phase["evaluations"] = resolved_evaluations(changed, phase.at("data"), config_before.at("evaluations"));
  return phase;
}

/// Resolves the phases of a resolved `config`. Each phase starts from `document` and applies its own fields.
Json resolved_phases(const Json& document, const Json& config) {
  Json phases = config.at("phases");
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string place = join_path("phases", i);
    phases[i] = resolved_phase(document, config, phases[i], place);
  }
  return phases;
}

/// Reads resolved phases with complete data.
void read_phases(const Json& phases, CellOptions& options) {
  for (const Json& phase : phases) {
    options.experiment.phases.push_back(read_phase(phase));
    options.phase_evaluations.push_back(read_evaluations(phase.at("evaluations")));
  }
}

/// Requires that the files keep these contents.
void hold_files(CellOptions& options, const std::shared_ptr<FileContents>& contents) {
  options.experiment.data.contents = contents;
  for (PhaseOptions& phase : options.experiment.phases) phase.data.contents = contents;
  for (auto& [name, data] : options.evaluations) data.contents = contents;
  for (NamedData& evaluations : options.phase_evaluations) {
    for (auto& [name, data] : evaluations) data.contents = contents;
  }
}

/// Completes a configuration whose independent parts are resolved and read: adds phases and evaluations, then
/// checks everything.
void complete(const Json& document, Json& config, CellOptions& options) {
  // Each phase and evaluation copies the document, so that the phases inside it would take quadratic time.
  Json without_phases = document;
  without_phases.erase("phases");
  config["phases"] = resolved_phases(without_phases, config);
  read_phases(config.at("phases"), options);
  check_config(options);
  if (options.experiment.phases.empty()) check_training_on(options.experiment);
  config["evaluations"] = resolved_evaluations(without_phases, config.at("data"), config.at("evaluations"));
  options.evaluations = read_evaluations(config.at("evaluations"));
  check_phase_names(options);
  check_convergence(options);
  check_until(options);
}

/// Builds the model for rows of this layout, as `run` does. The parts of a model have rules of their own.
void check_network(const ModelOptions& model, const Layout& layout) {
  const Network<float> network(model, layout);
}

Layout layout_of(const DataOptions& data) {
  return draw_problem(small_data(data), Seeds{1, 0})->layout();
}

}  // namespace

CellOptions in_phase(const CellOptions& cell, std::size_t phase) {
  CellOptions own = cell;
  if (phase >= cell.experiment.phases.size()) return own;
  const PhaseOptions& options = cell.experiment.phases[phase];
  own.experiment.data = options.data;
  own.experiment.loss = options.loss;
  own.experiment.train = options.train;
  own.evaluations = cell.phase_evaluations.at(phase);
  return own;
}

CellOptions options_of(const Cell& cell) {
  CellOptions options = *cell.options;
  options.seeds = cell.seeds();
  return options;
}

CellOptions read_config(const Json& config) {
  CellOptions options = read_parts(config);
  read_phases(config.value("phases", Json::array()), options);
  options.evaluations = read_evaluations(config.value("evaluations", Json::object()));
  return options;
}

Json config_json(const CellOptions& cell) {
  const auto data_of_each = [](const NamedData& evaluations) {
    Json json = Json::object();
    for (const auto& [name, data] : evaluations) json[name] = options_json(data);
    return json;
  };
  const ExperimentOptions& experiment = cell.experiment;
  Json config = {{"data", options_json(experiment.data)},
                 {"model", options_json(experiment.model)},
                 {"loss", options_json(experiment.loss)},
                 {"train", options_json(experiment.train)},
                 {"phases", Json::array()},
                 {"metrics", Json::array()},
                 {"save", cell.saved},
                 {"evaluations", data_of_each(cell.evaluations)}};
  for (const MetricOptions& group : cell.metrics) config["metrics"].push_back(options_json(group));
  for (std::size_t i = 0; i < experiment.phases.size(); ++i) {
    const PhaseOptions& phase = experiment.phases[i];
    Json learns = Json::array();
    if (phase.learns.router) learns.push_back("router");
    if (phase.learns.experts) learns.push_back("experts");
    if (phase.learns.layers) learns.push_back("layers");
    if (phase.learns.first_layers) learns.push_back("first_layers");
    if (phase.learns.read_outs) learns.push_back("read_outs");
    config["phases"].push_back({{"name", phase.name},
                                {"data", options_json(phase.data)},
                                {"loss", options_json(phase.loss)},
                                {"train", options_json(phase.train)},
                                {"learns", learns},
                                {"keep_optimizer", phase.keep_optimizer},
                                {"evaluations", data_of_each(cell.phase_evaluations[i])}});
  }
  return config;
}

std::vector<const DataOptions*> data_of(const CellOptions& cell) {
  std::vector<const DataOptions*> all = {&cell.experiment.data};
  for (const auto& [name, data] : cell.evaluations) all.push_back(&data);
  for (const PhaseOptions& phase : cell.experiment.phases) all.push_back(&phase.data);
  for (const NamedData& evaluations : cell.phase_evaluations) {
    for (const auto& [name, data] : evaluations) all.push_back(&data);
  }
  return all;
}

const DataOptions& last_data(const CellOptions& cell) {
  const std::vector<PhaseOptions>& phases = cell.experiment.phases;
  return phases.empty() ? cell.experiment.data : phases.back().data;
}

std::vector<std::string> files_read_by(const Cell& cell) {
  std::vector<std::string> files;
  for (const DataOptions* const data : data_of(*cell.options)) {
    for (const auto& [field, file] : files_of(*data)) files.push_back(file);
  }
  return files;
}

DataOptions small_data(const DataOptions& data) {
  Json json = options_json(data);
  // Four clusters are the smallest number that still has quarters.
  if (json.contains("clusters")) json["clusters"] = std::min(json["clusters"].get<int>(), 4);
  // The depth of the hierarchy determines its levels, so only the branching is reduced.
  if (json.contains("hierarchy")) json["hierarchy"]["branching"] = 2;
  for (const char* field : {"separation", "scale_to_separation", "weights"}) json.erase(field);
  return read_options<DataOptions>(json);
}

namespace {

/// Rejects a setting that `later` replaces completely or partly. `later` applies in every cell, or `within`
/// an arm. `who` names its source, and `advice` says what to write instead.
void check_setting(const Override& setting, const Override& later, const std::string& within,
                   const std::string& who, const std::string& advice) {
  const bool is_whole = is_replaced(setting.path, later.path);
  if (!is_whole && !is_within(later.path, setting.path)) return;
  throw UserError(setting.place,
                  fmt::format("is {}without effect{}: {} replaces {}; {}", is_whole ? "" : "partly ", within,
                              who, is_whole ? "it" : "a part of it", advice));
}

}  // namespace

void check_not_swept(std::span<const Override> overrides, std::span<const SweepAxis> axes) {
  for (const SweepAxis& axis : axes) {
    for (const std::string& path : axis.paths) {
      for (const Override& change : overrides) {
        if (!is_replaced(change.path, path)) continue;
        throw UserError(change.place, "is without effect: the sweep over '" + path + "' replaces it");
      }
    }
  }
}

void check_settings(std::span<const Override> settings, std::span<const Arm> arms,
                    std::span<const SweepAxis> axes) {
  for (const Override& setting : settings) {
    for (const SweepAxis& axis : axes) {
      for (const Override& swept : axis.steps.front()) {
        check_setting(setting, swept, "", fmt::format("the sweep over '{}'", swept.path),
                      fmt::format("set {}", swept.place));
      }
    }
    for (const Arm& arm : arms) {
      for (const Override& change : arm.overrides) {
        check_setting(setting, change, fmt::format(" in the arm '{}'", arm.name),
                      fmt::format("its '{}'", change.path),
                      fmt::format("set arms.<arm>.{} for the arms that are meant", setting.path));
      }
    }
  }
}

namespace {

/// The errors of the configuration with these overrides. `document` receives the unresolved result.
std::vector<ScenarioError> errors_with(const Json& base, std::span<const Override> overrides,
                                       Json& document) {
  document = base;
  try {
    apply_overrides(config_shape(), overrides, document);
    Json config = resolve(config_shape(), document, "");
    CellOptions options = read_parts(config);
    complete(document, config, options);
    check_network(options.experiment.model, layout_of(options.experiment.data));
  } catch (const InvalidOption& error) {
    return errors_of(error);
  }
  return {};
}

/// Places an error at the override that causes it. This is the override that wrote the value. Otherwise it is
/// the first override that produces the same error together with those before it.
UserError explained(const UserError& error, const Json& base, std::span<const Override> overrides,
                    const Json& document) {
  const UserError moved = at_override(error, config_shape(), overrides, document);
  const bool is_at_override = std::any_of(overrides.begin(), overrides.end(), [&](const Override& change) {
    return change.place == error.path();
  });
  if (is_at_override || moved.path() != error.path()) return moved;
  for (std::size_t count = 0; count <= overrides.size(); ++count) {
    Json unused;
    const std::vector<ScenarioError> found = errors_with(base, overrides.first(count), unused);
    if (std::none_of(found.begin(), found.end(), [&](const ScenarioError& other) {
          return other.path() == error.path() && other.message() == error.message();
        }))
      continue;
    if (count == 0) break;
    const Override& cause = overrides[count - 1];
    return {cause.place + cause.element, "makes " + error.path() + " wrong: " + error.message()};
  }
  return error;
}

}  // namespace

CellExpansion::CellExpansion(const Json& base, const SeedFields& seeds)
    : base_(base),
      seed_count_(static_cast<int>(seeds.count)),
      seeds_{seeds.root, 0, seeds.shared_streams()},
      contents_(std::make_shared<FileContents>()) {}

CellExpansion::Part& CellExpansion::part_of(const Field& field, const Json& document) {
  const auto given = document.find(field.name);
  const bool is_given = given != document.end() && !(given->is_null() && field.default_value);
  const std::string text = field.name + (is_given ? given->dump() : "");
  const auto known = parts_.find(text);
  if (known != parts_.end()) return known->second;
  Part part;
  // Without a value, the object gives the default or reports the missing field.
  part.resolved = is_given ? resolve(field.shape, *given, field.name)
                           : resolve(Shape::object({field}), Json::object(), "").at(field.name);
  const bool is_of_all = field.name == "phases" || field.name == "evaluations";
  if (!is_of_all) read_part(field.name, part.resolved, part.options);
  return parts_.emplace(text, std::move(part)).first->second;
}

CellExpansion::Configuration CellExpansion::configuration(const Json& document) {
  Configuration made;
  Json config = Json::object();
  auto options = std::make_shared<CellOptions>();
  std::vector<std::pair<std::string, Part*>> parts;
  Part *data = nullptr, *model = nullptr;
  for (const Field& field : config_shape().fields) {
    Part& part = part_of(field, document);
    if (field.name == "data") data = &part;
    if (field.name == "model") model = &part;
    parts.emplace_back(field.name, &part);
    config[field.name] = part.resolved;
    const ExperimentOptions& own = part.options.experiment;
    if (field.name == "data") options->experiment.data = own.data;
    if (field.name == "model") options->experiment.model = own.model;
    if (field.name == "loss") options->experiment.loss = own.loss;
    if (field.name == "train") options->experiment.train = own.train;
    if (field.name == "metrics") options->metrics = part.options.metrics;
    if (field.name == "save") options->saved = part.options.saved;
  }
  complete(document, config, *options);
  if (!data->layout) data->layout = layout_of(options->experiment.data);
  if (built_.emplace(data, model).second) check_network(options->experiment.model, *data->layout);
  std::map<std::string, std::string> identities;
  // The checks above have shown that the files exist.
  for (const auto& [name, part] : parts) {
    const bool is_of_all = name == "phases" || name == "evaluations";
    if (is_of_all || !part->identity) part->identity = identity_of_part(name, config.at(name), *contents_);
    identities[name] = *part->identity;
  }
  write_members(identities, made.before_seed, made.after_seed);
  hold_files(*options, contents_);
  made.options = std::move(options);
  return made;
}

void CellExpansion::check_point(const Arm& arm, const std::vector<Override>& point) const {
  std::vector<Override> overrides = arm.overrides;
  overrides.insert(overrides.end(), point.begin(), point.end());
  Json document;
  ErrorList errors;
  for (const ScenarioError& error : errors_with(base_, overrides, document))
    errors.add(explained(error, base_, overrides, document));
  errors.throw_any();
}

void CellExpansion::add_cells(const Arm& arm, std::size_t points,
                              const std::function<std::vector<Override>(std::size_t)>& point_at,
                              std::vector<Cell>& cells) {
  for (std::size_t i = 0; i < points; ++i) {
    const std::vector<Override> point = point_at(i);
    Configuration made;
    try {
      Json document = base_;
      apply_overrides(config_shape(), arm.overrides, document);
      apply_overrides(config_shape(), point, document);
      made = configuration(document);
    } catch (const InvalidOption&) {
      check_point(arm, point);
      throw;
    }
    Cell cell;
    cell.arm = arm.name;
    for (const Override& change : point) cell.point.emplace_back(change.path, read_sweep_value(change.value));
    cell.root_seed = seeds_.root;
    cell.shared_streams = seeds_.shared;
    cell.options = made.options;
    for (cell.seed = 0; cell.seed < seed_count_; ++cell.seed) {
      cell.id = cell_id(made.before_seed, cell.seeds(), made.after_seed);
      cells.push_back(cell);
    }
  }
}

}  // namespace moelab
