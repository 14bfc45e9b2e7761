#include "app/scenario/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/uuid/name_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "app/scenario/checks.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/base/ordered_parts.h"

namespace moelab {

CellConfig::CellConfig(const Json& config) {
  *this = SharedParts().config(config);
}

const Json& CellConfig::at(std::string_view name) const {
  if (parts_) {
    const auto found =
        std::find_if(parts_->begin(), parts_->end(), [&](const auto& part) { return part->first == name; });
    if (found != parts_->end()) return (*found)->second;
  }
  throw std::out_of_range("a configuration without '" + std::string(name) + "'");
}

Json CellConfig::json() const {
  Json config = Json::object();
  if (!parts_) return config;
  for (const auto& part : *parts_) config[part->first] = part->second;
  return config;
}

std::shared_ptr<const CellConfig::Part> SharedParts::shared(const std::string& name, const Json& value) {
  const std::string text = name + value.dump();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const CellConfig::Part>& part = known_[text];
  if (!part) part = std::make_shared<const CellConfig::Part>(name, value);
  return part;
}

CellConfig SharedParts::config(const Json& config) {
  CellConfig::Parts parts;
  for (const auto& [name, value] : config.items()) parts.push_back(shared(name, value));
  CellConfig made;
  made.parts_ = std::make_shared<const CellConfig::Parts>(std::move(parts));
  return made;
}

CellConfig SharedParts::config(const Json& config, const CellConfig& before,
                               const std::set<std::string>& changed) {
  CellConfig::Parts parts = *before.parts_;
  for (auto& part : parts) {
    if (changed.contains(part->first)) part = shared(part->first, config.at(part->first));
  }
  CellConfig made;
  made.parts_ = std::make_shared<const CellConfig::Parts>(std::move(parts));
  return made;
}

namespace {

/// Part of every cell's id: raised when a change of the program changes results, so that old ones are not
/// reused.
constexpr int kNumericsVersion = 4;

Json identity_of_data(const Json& data, FileContents& contents) {
  Json identity = without_defaults(data_shape(), data);
  const auto files = files_of(read_data(data));
  for (const auto& [field, path] : files) identity.erase(field);
  for (const auto& [field, path] : files) {
    // A field of several files has a list of their contents.
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
  // As a scenario's parts, of which a phase has its own.
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

/// Whether r of `gating.eval` is not softmax(γ). Soft and top-1 losses, shuffled metrics and saved
/// probabilities of such models were those of softmax(γ) for a while in numerics version 4: cells that go by
/// r have other ids.
bool is_asked_by_its_own_probabilities(const Json& model) {
  if (!model.contains("gating")) return false;
  const Json& rule = model.at("gating").at("eval");
  const std::string kind = rule.at("kind");
  return kind == "sigmoid" || kind == "relu" || kind == "dense_to_sparse" ||
         (kind == "soft_slots" && rule.at("slots") > 1);
}

/// Whether the router takes statistics of the rows that are measured with a row: groups of batch_size of
/// them, which were of 1024 rows for a while in numerics version 4.
bool is_measured_in_groups(const Json& model) {
  return model.contains("router") && model.at("router").at("kind") == "adaptive_clustering";
}

/// {part: what counts of it}, or {} where all of it is at its default.
Json identity_of_part(const std::string& part, const Json& value, FileContents& contents) {
  Json identity = without_defaults(config_shape(), Json::object({{part, value}}));
  if (part == "data") identity[part] = identity_of_data(value, contents);
  if (part == "model") {
    if (is_asked_by_its_own_probabilities(value)) identity[part]["asked_by"] = "r";
    if (is_measured_in_groups(value)) identity[part]["measured_in"] = "batch_size";
  }
  if (part == "evaluations") {
    for (const auto& [name, data] : value.items()) identity[part][name] = identity_of_data(data, contents);
  }
  if (part == "phases") {
    for (std::size_t i = 0; i < value.size(); ++i) identity[part][i] = identity_of_phase(value[i], contents);
  }
  return identity;
}

}  // namespace

std::string CellIdentities::text_of(const SharedPart& part) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = texts_.find(part); known != texts_.end()) return known->second;
  }
  std::string text = canonical_text(identity_of_part(part->first, part->second, contents_));
  text = text.substr(1, text.size() - 2);  // the member without the braces, or nothing
  const std::lock_guard lock(mutex_);
  return texts_.emplace(part, std::move(text)).first->second;
}

CellIds CellIdentities::of(const CellConfig& config) {
  // The canonical text of all parts, with the seeds where the order of keys has them.
  std::vector<std::pair<std::string, std::string>> texts;
  for (const SharedPart& part : *config.parts()) texts.emplace_back(part->first, text_of(part));
  std::sort(texts.begin(), texts.end());
  CellIds ids;
  // As boost::uuids::name_generator_sha1 does, which cannot go on from a common beginning: with ten seeds a
  // point that saves a fifth of the time of expanding a large sweep.
  const boost::uuids::uuid space = boost::uuids::ns::oid();
  ids.before_.process_bytes(space.data, space.size());
  const auto add_before = [&](const std::string& text) {
    ids.before_.process_bytes(text.data(), text.size());
  };
  add_before(fmt::format("{}\n{{", kNumericsVersion));
  for (const auto& [part, text] : texts) {
    if (text.empty()) continue;
    if (part < "seed")
      add_before(text + ',');
    else
      ids.after_ += ',' + text;
  }
  ids.after_ += '}';
  return ids;
}

std::string CellIds::id(const Seeds& seeds) const {
  const std::string shared = seeds.shared == 0 ? "" : fmt::format(R"(,"shared":{})", seeds.shared);
  const std::string rest =
      fmt::format(R"("seed":{{"index":{},"root":{}{}}}{})", seeds.index, seeds.root, shared, after_);
  boost::uuids::detail::sha1 hash = before_;
  hash.process_bytes(rest.data(), rest.size());
  boost::uuids::detail::sha1::digest_type digest;
  hash.get_digest(digest);
  // The first eight bytes of the name's UUID, whose version, 5, stands in the seventh.
  return fmt::format("{:08x}{:08x}", digest[0], (digest[1] & 0xffff0fff) | 0x5000);
}

DataOptions read_data(const Json& data, std::shared_ptr<FileContents> contents) {
  DataOptions options = read_options<DataOptions>(data);
  options.contents = std::move(contents);
  return options;
}

DataOptions read_small_data(Json data) {
  // Quarters of the clusters are there from four on.
  if (data.contains("clusters")) data["clusters"] = std::min(data["clusters"].get<int>(), 4);
  // Its depth says which levels there are.
  if (data.contains("hierarchy")) data["hierarchy"]["branching"] = 2;
  for (const char* field : {"separation", "scale_to_separation", "weights"}) data.erase(field);
  return read_data(data);
}

namespace {

PhaseOptions read_phase(const Json& phase) {
  PhaseOptions options;
  options.name = phase.at("name");
  options.data = read_data(phase.at("data"));
  options.loss = read_options<LossOptions>(phase.at("loss"));
  options.train = read_options<TrainOptions>(phase.at("train"));
  const Json& learns = phase.at("learns");
  const auto has = [&](const char* part) {
    return std::find(learns.begin(), learns.end(), part) != learns.end();
  };
  options.learns = {has("router"), has("experts"), has("layers")};
  options.keep_optimizer = phase.at("keep_optimizer");
  return options;
}

std::vector<std::pair<std::string, DataOptions>> read_evaluations(
    const Json& evaluations, const std::shared_ptr<FileContents>& contents) {
  std::vector<std::pair<std::string, DataOptions>> read;
  for (const auto& [name, data] : evaluations.items()) read.emplace_back(name, read_data(data, contents));
  return read;
}

}  // namespace

ExperimentOptions read_experiment(const Json& config) {
  ExperimentOptions options{read_data(config.at("data")), read_options<ModelOptions>(config.at("model")),
                            read_options<LossOptions>(config.at("loss")),
                            read_options<TrainOptions>(config.at("train"))};
  for (const Json& phase : config.value("phases", Json::array())) options.phases.push_back(read_phase(phase));
  return options;
}

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

CellOptions read_cell(const Cell& cell) {
  const Json config = cell.config.json();
  CellOptions options{read_experiment(config), {}, {}, {}, cell.seeds()};
  options.experiment.data.contents = cell.contents;
  for (const Json& group : config.at("metrics"))
    options.metrics.push_back(read_options<MetricOptions>(group));
  for (const Json& name : config.at("save")) options.saved.insert(name.get<std::string>());
  options.evaluations = read_evaluations(config.at("evaluations"), cell.contents);
  for (PhaseOptions& phase : options.experiment.phases) phase.data.contents = cell.contents;
  for (const Json& phase : config.at("phases"))
    options.phase_evaluations.push_back(read_evaluations(phase.at("evaluations"), cell.contents));
  return options;
}

std::vector<const Json*> data_of(const CellConfig& config) {
  std::vector<const Json*> all = {&config.at("data")};
  for (const auto& [name, data] : config.at("evaluations").items()) all.push_back(&data);
  for (const Json& phase : config.at("phases")) {
    all.push_back(&phase.at("data"));
    for (const auto& [name, data] : phase.at("evaluations").items()) all.push_back(&data);
  }
  return all;
}

std::vector<std::string> files_read_by(const Cell& cell) {
  std::vector<std::string> files;
  const auto add = [&](const Json& data) {
    for (const auto& [field, file] : files_of(read_data(data))) files.push_back(file);
  };
  for (const Json* data : data_of(cell.config)) add(*data);
  return files;
}

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

namespace {

/// Refuses a setting of which `later`, set after it in every cell or in those `within` an arm, leaves nothing
/// or only a part. `who` sets it, and `advice` is what to write instead.
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

/// Grid points that one thread expands in turn: enough to be worth a thread.
constexpr std::size_t kPointsAtOnce = 256;

/// seeds.shared as Seeds has it.
std::uint64_t shared_streams(const Json& names) {
  Seeds seeds;
  for (const Json& name : names) {
    if (name == "problem") seeds.share(Purpose::problem);
    if (name == "train") seeds.share(Purpose::train_data);
    if (name == "train") seeds.share(Purpose::population);
    if (name == "test") seeds.share(Purpose::test_data);
    if (name == "test") seeds.share(Purpose::evaluation);
  }
  return seeds.shared;
}

}  // namespace

CellExpansion::CellExpansion(const Json& base, const Json& seeds)
    : base_(base),
      seed_count_(seeds.at("count")),
      seeds_{seeds.at("root"), 0, shared_streams(seeds.at("shared"))},
      contents_(std::make_shared<FileContents>()),
      identities_(*contents_) {}

void CellExpansion::add_cells_at(const Arm& arm, PointResolver& resolver, std::vector<Override> point,
                                 std::vector<Cell>& cells) {
  Cell cell;
  cell.config = resolver.config(point);
  cell.arm = arm.name;
  cell.contents = contents_;
  for (Override& change : point) cell.point.emplace_back(std::move(change.path), std::move(change.value));
  cell.root_seed = seeds_.root;
  cell.shared_streams = seeds_.shared;
  const CellIds ids = identities_.of(cell.config);
  for (cell.seed = 0; cell.seed < seed_count_; ++cell.seed) {
    cell.id = ids.id(cell.seeds());
    cells.push_back(cell);
  }
}

void CellExpansion::add_cells(const Arm& arm, std::size_t points,
                              const std::function<std::vector<Override>(std::size_t)>& point_at,
                              std::vector<Cell>& cells) {
  const auto expand = [&](std::size_t part) {
    std::vector<Cell> some;
    PointResolver resolver(base_, arm.overrides, parts_);
    const std::size_t first = part * kPointsAtOnce;
    for (std::size_t i = first; i < std::min(first + kPointsAtOnce, points); ++i)
      add_cells_at(arm, resolver, point_at(i), some);
    return some;
  };
  in_ordered_parts(
      (points + kPointsAtOnce - 1) / kPointsAtOnce, expand,
      [&](std::size_t, std::vector<Cell> some) { std::ranges::move(some, std::back_inserter(cells)); });
}

}  // namespace moelab
