#include "app/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <stdexcept>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/rates.h"
#include "app/figures/figure_kind.h"
#include "app/scenario/cells.h"
#include "app/scenario/checks.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/train/experiment.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Whether `given` names a kind, and `base` is not of that kind.
bool names_another_kind(const Json& base, const Json& given, const Shape* shape) {
  if (shape == nullptr || shape->type != Shape::Type::variant || !given.contains(shape->tag)) return false;
  const Json& kind = given.at(shape->tag);
  return base.is_object() ? base.value(shape->tag, Json()) != kind : base != kind;
}

/// The fields of `given`, which stand at `path`, as overrides of `base`.
void add_overrides(const Json& document, const Json& base, const std::string& path, const Json& given,
                   std::vector<Override>& overrides) {
  for (const auto& [key, value] : given.items()) {
    const std::string here = join_path(path, key);
    const Json known = base.is_object() ? base.value(key, Json()) : Json();
    if (!value.is_object() ||
        names_another_kind(known, value, find_shape(scenario_shape(), document, here))) {
      overrides.push_back({here, value, here, ""});
    } else {
      add_overrides(document, known, here, value, overrides);
    }
  }
}

bool is_map(const std::string& key) {
  const std::vector<Field>& fields = scenario_shape().fields;
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.name == key && field.shape.type == Shape::Type::map;
  });
}

/// Null takes an entry away that is there.
[[noreturn]] void refuse_to_remove(const std::string& place, const std::string& name, const Json& known) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : known.items()) names.push_back(key);
  throw UserError(place, "got null, which takes an entry of the extended scenario away: " +
                             unknown_name("entry", name, names));
}

void extend(Json& document, const Json& given) {
  Json fields = given;
  fields.erase("extends");
  for (const auto& [key, entries] : given.items()) {
    if (!is_map(key) || !entries.is_object()) continue;
    fields.erase(key);
    Json& known = document[key];
    if (!known.is_object()) known = Json::object();
    for (const auto& [name, entry] : entries.items()) {
      if (entry.is_null()) {
        if (!known.contains(name)) refuse_to_remove(join_path(key, name), name, known);
        known.erase(name);
      } else {
        known[name] = entry;
      }
    }
  }
  std::vector<Override> overrides;
  add_overrides(document, document, "", fields, overrides);
  apply_overrides(scenario_shape(), overrides, document);
}

/// The file that `file` extends.
fs::path extended_file(const fs::path& file, const Json& document) {
  const std::string place = file.string() + ": extends";
  const Json& given = document.at("extends");
  if (!given.is_string() || given.get_ref<const std::string&>().empty()) {
    throw UserError(place, "got " + abbreviated(given) + ", needs the path of a scenario file");
  }
  const fs::path extended = (file.parent_path() / given.get<std::string>()).lexically_normal();
  if (fs::is_regular_file(extended)) return extended;
  std::vector<std::string> others;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(extended.parent_path(), ignored)) {
    if (entry.path().extension() == ".json") others.push_back(entry.path().filename().string());
  }
  const std::string nearest = nearest_name(extended.filename().string(), others);
  throw UserError(place,
                  fmt::format("got {}, but there is no file {}{}", abbreviated(given), extended.string(),
                              nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

/// Whether the document holds something at `path`, whose keys may have dots themselves.
bool writes(const Json& document, std::string path) {
  if (path.starts_with('.')) path.erase(0, 1);
  if (path.empty()) return true;
  if (document.is_object()) {
    for (const auto& [key, value] : document.items()) {
      if (is_within(path, key) && writes(value, path.substr(key.size()))) return true;
    }
  }
  std::size_t index = 0;
  if (!document.is_array() || !path.starts_with('[')) return false;
  const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
  return error == std::errc() && index < document.size() &&
         writes(document[index], path.substr(static_cast<std::size_t>(end - path.data()) + 1));
}

}  // namespace

ScenarioFile read_scenario_file(const fs::path& file) {
  ScenarioFile read;
  for (fs::path next = file; !next.empty();) {
    const Json own = read_json_file(next);
    if (!own.is_object()) {
      throw UserError(read.files.empty() ? "" : next.string(),
                      "got " + abbreviated(own) + ", needs a scenario: an object");
    }
    check_version(own, next.string() + ": version");
    read.files.push_back(next.string());
    read.own_documents.push_back(own);
    if (!own.contains("extends")) break;
    const fs::path extended = extended_file(next, own);
    for (const std::string& earlier : read.files) {
      if (!fs::equivalent(earlier, extended)) continue;
      throw UserError(
          next.string() + ": extends",
          fmt::format("goes in a circle: {} → {}", fmt::join(read.files, " → "), extended.string()));
    }
    next = extended;
  }
  if (read.files.size() > 1 && !read.own_documents.front().contains("name")) {
    throw UserError("name", "missing: a scenario that extends another needs a name of its own");
  }
  read.document = read.own_documents.back();
  for (std::size_t i = read.files.size() - 1; i-- > 0;) {
    try {
      extend(read.document, read.own_documents[i]);
    } catch (const InvalidOption& error) {
      if (i == 0) throw;
      throw UserError(read.files[i] + ": " + error.path(), error.message());
    }
  }
  return read;
}

UserError at_file(const InvalidOption& error, const ScenarioFile& file) {
  for (std::size_t i = 0; i < file.files.size(); ++i) {
    if (!writes(file.own_documents[i], error.path())) continue;
    if (i == 0) break;
    return {error.path(), fmt::format("{} (written in {})", error.message(), file.files[i])};
  }
  return {error.path(), error.message()};
}

void check_version(const Json& document, const std::string& place) {
  if (!document.is_object() || !document.contains("version")) return;
  const Json& version = document.at("version");
  if (version == kScenarioVersion) return;
  throw UserError(place, fmt::format("got {}, but this program reads version {} of the scenario format{}",
                                     abbreviated(version), kScenarioVersion,
                                     version.is_number_integer() && version > kScenarioVersion
                                         ? "; a newer one may read it"
                                         : ""));
}

namespace {

Json default_metric_groups() {
  Json names = Json::array();
  for (const MetricGroup& group : metric_groups()) {
    if (group.by_default) names.push_back(group.name);
  }
  return names;
}

Shape overrides_shape() {
  return Shape::map(Shape::any());
}

Field relative_to_field() {
  return {"relative_to", Shape::text(), "an arm: the metric is divided by that of this arm", kOptional};
}

constexpr const char* kMetricHelp =
    "a metric, or an expression of metrics and swept paths, operators + - * / between spaces: "
    "\"effective_experts / model.experts\"";

Shape side_shape() {
  return Shape::object({
      {"arm", Shape::text(), "name of an arm (give arm and metric, or value)", kOptional},
      {"metric", Shape::text(), kMetricHelp, kOptional},
      relative_to_field(),
      {"value", Shape::either({Shape::real(), Shape::text()}),
       "a number instead of an arm's metric, or an expression of swept paths: \"model.experts / 4\"; one "
       "that names metrics is taken of the other side's arm, where that side is",
       kOptional},
      {"factor", Shape::positive_real(), "multiplies the side", 1},
      {"where", overrides_shape(), "sweep coordinates of this side: {path: value}", kOptional},
      {"step", Shape::either({Shape::count(0), Shape::choice({"start", "end"})}),
       "a recorded step (default: the last)", kOptional},
      {"distance_from", Shape::text(),
       "an arm: the side is the root mean square difference of the metric's curves over training", kOptional},
  });
}

/// Fields that every claim has, after those of its own kind.
std::vector<Field> claim_fields(std::vector<Field> own) {
  own.insert(own.begin(), {"id", Shape::text(), "name of the claim: letters, digits, . _ -"});
  own.push_back({"source", Shape::text(), "where the paper says so", kOptional});
  own.push_back(
      {"reported", Shape::any(), "the paper's number, shown beside ours; never a pass mark", kOptional});
  own.push_back({"tuned", Shape::boolean(),
                 "each arm is at its best: it sets every path of \"tune\" to a value of its own", false});
  own.push_back({"origin", Shape::choice({"paper", "ours"}), "whose claim it is", "ours"});
  own.push_back(
      {"text", Shape::text(), "the claim as a sentence; where it is the paper's, in its words", kOptional});
  return own;
}

Field smallest_effect_field() {
  return {"smallest_effect", Shape::positive_real(),
          "effects below it do not matter: relative where logarithms are compared (.05: within ±ln 1.05), "
          "else in the metric's units; an inconclusive point whose interval lies within is equivalent",
          kOptional};
}

Kind comparison(const std::string& op, const std::string& help, bool has_tolerance) {
  std::vector<Field> fields = {
      {"left", side_shape(), "left side"},
      {"right", side_shape(), "right side"},
      {"at", Shape::either({Shape::choice({"each", "last"}), Shape::list(Shape::any(), 1)}),
       "sweep points: each, the last, or a list of {path: value} (of values where one path is swept)",
       "each"},
      {"matched", Shape::choice({"steps", "loss", "flops"}),
       "what the sides have in common where they are read: their ends; an equal training loss (each at its "
       "first record at or below the greater of their least); equal operations (each at its last record "
       "within the fewer; needs the group training)",
       "steps"},
  };
  fields.push_back(has_tolerance ? Field{"tolerance", Shape::positive_real(), "relative tolerance"}
                                 : smallest_effect_field());
  return {op, help, claim_fields(std::move(fields))};
}

Field arm_field() {
  return {"arm", Shape::text(), "name of an arm", kOptional};
}

Field arms_field() {
  return {
      "arms", Shape::list(Shape::text(), 1),
      "in place of arm: a claim for each of them, its name where {arm} stands in id and text (without it, "
      "id_NAME)",
      kOptional};
}

Kind trend(const std::string& op, const std::string& help) {
  return {
      op, help,
      claim_fields({arm_field(),
                    arms_field(),
                    {"metric", Shape::text(), kMetricHelp},
                    relative_to_field(),
                    {"along", Shape::text(), "a swept path, or step"},
                    {"shape", Shape::choice({"ends", "monotone"}),
                     "ends: the last value against the first; monotone: also no step from one value to the "
                     "next goes significantly the other way",
                     "ends"},
                    smallest_effect_field()})};
}

/// What claims on rates and figures of them regress.
std::vector<Field> rate_fields() {
  return {{"where", overrides_shape(), "values of the other swept paths: {path: value}", kOptional},
          {"window", Shape::list(Shape::positive_real(), 2),
           "[least n, most n] of the regression (default: all)", kOptional},
          rate_average_field()};
}

Kind rate_claim(const std::string& op, const std::string& help, const std::vector<Field>& against) {
  std::vector<Field> fields = {arm_field(),
                               arms_field(),
                               {"metric", Shape::text(), "name of a metric: the error"},
                               {"along", Shape::text(), "the swept path whose values are n"}};
  for (const std::vector<Field>& more : {rate_fields(), against})
    fields.insert(fields.end(), more.begin(), more.end());
  return {op, help, claim_fields(std::move(fields))};
}

Shape claim_shape() {
  return Shape::variant({comparison("<", "left is below right, over paired seeds", false),
                         comparison(">", "left is above right, over paired seeds", false),
                         comparison("~", "left equals right within a relative tolerance", true),
                         trend("decreases", "the metric falls along a swept path"),
                         trend("increases", "the metric rises along a swept path"),
                         rate_claim("rate", "the slope of ln metric on ln n is an exponent",
                                    {{"exponent", Shape::real(), "the slope, −1/2 for n^(−1/2)"},
                                     {"tolerance", Shape::positive_real(), "around it", kRateTolerance}}),
                         rate_claim("slower", "the slope of ln metric on ln n is above another",
                                    {{"than", Shape::either({Shape::real(), Shape::text()}),
                                      "a slope, or the arm whose slope it is"},
                                     smallest_effect_field()})},
                        "op");
}

Shape phase_shape() {
  const Json all = Json::array({"router", "experts", "layers"});
  return Shape::object(
      {{"name", Shape::text(), "prefix of the phase's own metrics: letters, digits, . _ -"},
       {"data", overrides_shape(), "fields of data that are its own; with another generator, all of them",
        Json::object()},
       {"loss", overrides_shape(), "fields of loss that are its own", Json::object()},
       {"train", overrides_shape(), "fields of train that are its own", Json::object()},
       {"learns", Shape::list(Shape::choice({"router", "experts", "layers"}), 1),
        "what learns: routers, experts (and dense networks), layers around them (attention, projection, "
        "read-out); a router with trainable false never does",
        all},
       {"keep_optimizer", Shape::boolean(), "go on with the moments of the phase before", false}});
}

std::vector<Field> config_fields() {
  return {
      {"data", data_shape(), "where samples come from"},
      {"model", shape_of<ModelOptions>(), "what is trained"},
      {"loss", shape_of<LossOptions>(), "what is minimised", Json::object()},
      {"train", shape_of<TrainOptions>(), "how it is minimised"},
      {"phases", Shape::list(phase_shape()),
       "trainings one after another, each from where the one before ended; their data, loss and train over "
       "those above",
       Json::array()},
      {"metrics", Shape::list(shape_of<MetricOptions>()), "groups of metrics to measure",
       default_metric_groups()},
      {"save", Shape::list(Shape::choice({"weights", "routing", "routing_steps"})),
       "arrays to keep of every cell: the parameters; the test rows with their routing and outputs; each "
       "cluster's mean routing, each expert's load and the rows of linear routers at every recorded step (of "
       "the last phase)",
       Json::array()},
      {"evaluations", Shape::map(overrides_shape()),
       "name → overrides {data.…: value}: the trained model is measured on these test data, too, its metrics "
       "as name.metric",
       Json::object()},
  };
}

Shape make_scenario_shape() {
  std::vector<Field> fields = {
      {"$schema", Shape::text(), "for editors; ignored", kOptional},
      {"version", Shape::count(kScenarioVersion, kScenarioVersion), "of the scenario format",
       kScenarioVersion},
      {"extends", Shape::text(), "another scenario file, relative to this one, whose fields this one changes",
       kOptional},
      {"name", Shape::text(), "names the run folder: letters, digits, . _ -"},
      {"title", Shape::text(), "one line", kOptional},
      {"source", Shape::text(), "the paper and its figure or section", kOptional},
      {"notes", Shape::either({Shape::text(), Shape::list(Shape::text())}),
       "free text: how the hyper-parameters were chosen", kOptional},
  };
  for (Field& field : config_fields()) fields.push_back(std::move(field));
  const std::vector<Field> experiment = {
      {"arms", Shape::map(overrides_shape()), "name → overrides {path: value} (default: one arm, base)",
       kOptional},
      {"sweep",
       Shape::map(
           Shape::either({Shape::list(Shape::any(), 1),
                          Shape::map(Shape::either({Shape::list(Shape::any(), 1), crossing_shape()}))})),
       "path → [values] or {\"log2range\": [low, high]}, or \"zip\" → {path: [values], …}, or path → "
       "{\"crossing\": {…}}, whose values are placed where a metric's mean crosses a level; several entries "
       "make a grid, the first varying slowest, a crossing fastest",
       kOptional},
      {"seeds",
       Shape::object({{"root", Shape::count(0), "root of all random streams", 1},
                      {"count", Shape::count(1), "repetitions of every arm and sweep point", 5},
                      {"shared", Shape::list(Shape::choice({"problem", "train", "test"})),
                       "streams that all seeds share, those of seed 0: the problem, training data, test data",
                       Json::array()}}),
       "repetitions", Json::object()},
      {"tune",
       Shape::map(Shape::object({{"low", Shape::real(), "least value"},
                                 {"high", Shape::real(), "greatest value"},
                                 {"scale", Shape::choice({"log", "linear"}), "of the range", "log"}})),
       "path → range that `moelab tune` chooses from, for every arm on root seed 1000", kOptional},
      {"labels", Shape::map(Shape::text()),
       "how figures call an arm, a swept path, a metric or a swept value (\"path=value\")", kOptional},
      {"claims", Shape::list(claim_shape()), "what the results are held against", Json::array()},
      {"figures", Shape::list(figure_shape()), "what is drawn", Json::array()},
      {"profiles", Shape::map(overrides_shape()), "name → overrides {path: value} chosen with --profile",
       Json::object()},
  };
  fields.insert(fields.end(), experiment.begin(), experiment.end());
  return Shape::object(std::move(fields));
}

}  // namespace

const Shape& data_shape() {
  static const Shape shape = shape_of<DataOptions>();
  return shape;
}

const Shape& config_shape() {
  static const Shape shape = Shape::object(config_fields());
  return shape;
}

const Shape& scenario_shape() {
  static const Shape shape = make_scenario_shape();
  return shape;
}

Json scenario_file_schema() {
  Json whole = json_schema(scenario_shape());
  Json fields = Json::object();
  for (const auto& [name, field] : whole.at("properties").items())
    fields[name] = {{"description", field.at("description")}};
  return {{"$schema", whole.at("$schema")},
          {"type", "object"},
          {"properties", std::move(fields)},
          {"additionalProperties", false},
          {"if", {{"required", {"extends"}}}},
          {"then", {{"required", {"name"}}}},
          {"else", {{"properties", whole.at("properties")}, {"required", whole.at("required")}}}};
}

namespace {

constexpr double kMaxCells = 1e6;

std::vector<Override> profile_overrides(const Json& document, const std::string& profile) {
  if (profile.empty()) return {};
  std::vector<std::string> names;
  if (document.is_object() && document.contains("profiles") && document.at("profiles").is_object()) {
    for (const auto& [name, overrides] : document.at("profiles").items()) names.push_back(name);
    if (document.at("profiles").contains(profile)) {
      const Json& overrides = document.at("profiles").at(profile);
      const std::string place = "profiles." + profile;
      if (!overrides.is_object())
        throw UserError(place, "got " + abbreviated(overrides) + ", needs an object");
      return kept(read_overrides(overrides, place));
    }
  }
  throw UserError("--profile", unknown_name("profile", profile, names));
}

/// The first key of an override's path is a field of `shape`.
void check_roots(std::span<const Override> overrides, const Shape& shape) {
  std::vector<std::string> roots;
  for (const Field& field : shape.fields) {
    if (field.name != "profiles" && field.name != "extends" && field.name != "version")
      roots.push_back(field.name);
  }
  for (const Override& change : overrides) {
    const std::string root = change.path.substr(0, change.path.find('.'));
    if (std::find(roots.begin(), roots.end(), root) == roots.end()) {
      throw UserError(change.place, unknown_name("field", root, roots));
    }
  }
}

/// What changes the document before it is expanded.
struct Changes {
  std::vector<Override> profile, settings;
};

std::vector<Arm> read_arms(const Json& document) {
  if (!document.contains("arms")) return {{"base", {}}};
  if (document.at("arms").empty())
    throw UserError("arms", "got {}, needs at least one arm, or no \"arms\" at all");
  std::vector<Arm> arms;
  for (const auto& [name, overrides] : document.at("arms").items()) {
    if (name.empty() || name.find_first_of("\n\r\t") != std::string::npos) {
      throw UserError("arms", "got the name " + Json(name).dump() + ", needs a non-empty name on one line");
    }
    arms.push_back({name, kept(read_overrides(overrides, join_path("arms", name)))});
    check_roots(arms.back().overrides, config_shape());
  }
  return arms;
}

std::vector<SweepAxis> read_axes(const Json& document, std::span<const Arm> arms, const Changes& changes) {
  std::vector<SweepAxis> axes;
  if (document.contains("sweep")) {
    if (document.at("sweep").empty())
      throw UserError("sweep", "got {}, needs at least one path, or no \"sweep\" at all");
    axes = read_sweep(document.at("sweep"));
  }
  for (const SweepAxis& axis : axes) check_roots(axis.steps.front(), config_shape());
  if (document.contains("tune")) read_tune_ranges(document.at("tune"), document, axes);
  for (const Arm& arm : arms) check_not_swept(arm.overrides, axes);
  check_not_swept(changes.profile, axes);
  check_settings(changes.settings, arms, axes);
  return axes;
}

/// The points of every arm: the grid, or where a crossing is searched the values placed at each of its
/// points.
std::vector<std::vector<std::vector<Override>>> placed_points(const std::vector<SweepAxis>& axes,
                                                              const CrossingSearch& crossing,
                                                              std::size_t arms) {
  const std::vector<SweepAxis> others(axes.begin(), axes.end() - 1);
  const std::size_t columns = count_points(others, static_cast<std::size_t>(kMaxCells));
  if (crossing.placed.size() != arms * columns)
    throw std::invalid_argument("points of other arms and columns than the scenario has");
  std::vector<std::vector<std::vector<Override>>> points(arms);
  for (std::size_t place = 0; place < crossing.placed.size(); ++place)
    for (const Json& value : crossing.placed[place]) {
      std::vector<Override> point = sweep_point(others, place % columns);
      point.push_back(searched_override(axes.back(), value));
      points[place / columns].push_back(std::move(point));
    }
  return points;
}

void expand_cells(const Json& document, const Json& resolved, const Changes& changes, Scenario& scenario) {
  const std::vector<Arm> arms = read_arms(resolved);
  const std::vector<SweepAxis> axes = read_axes(resolved, arms, changes);
  const Json& seeds = resolved.at("seeds");
  const std::size_t points = count_points(axes, static_cast<std::size_t>(kMaxCells));
  const double settings = static_cast<double>(arms.size()) * static_cast<double>(points);
  const double count = settings * seeds.at("count").get<double>();
  if (count > kMaxCells) {
    throw UserError(settings > kMaxCells ? "sweep" : "seeds.count",
                    fmt::format("asks for {:.0f} cells or more (arms × points × seeds), needs at most {:.0f}",
                                count, kMaxCells));
  }
  scenario.arms.clear();
  scenario.sweep_paths.clear();
  scenario.cells.clear();
  for (const Arm& arm : arms) scenario.arms.push_back(arm.name);
  for (const SweepAxis& axis : axes) {
    scenario.sweep_paths.insert(scenario.sweep_paths.end(), axis.paths.begin(), axis.paths.end());
  }
  Json base = Json::object();
  for (const Field& field : config_shape().fields) {
    if (document.contains(field.name)) base[field.name] = document.at(field.name);
  }
  scenario.cells.reserve(static_cast<std::size_t>(count));
  CellExpansion expansion(base, seeds);
  if (!axes.empty() && !axes.back().crossing.is_null()) {
    CrossingSearch crossing = CrossingSearch::read(axes.back().paths.front(), axes.back().crossing, resolved);
    if (scenario.crossing) crossing.placed = scenario.crossing->placed;
    if (crossing.placed.empty()) {
      crossing.placed.assign(arms.size() * points / 2,
                             {CrossingSearch::value(crossing.low), CrossingSearch::value(crossing.high)});
    }
    scenario.crossing = std::move(crossing);
    const auto placed = placed_points(axes, *scenario.crossing, arms.size());
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      expansion.add_cells(
          arms[arm], placed[arm].size(), [&](std::size_t i) { return placed[arm][i]; }, scenario.cells);
    return;
  }
  for (const Arm& arm : arms)
    expansion.add_cells(
        arm, points, [&](std::size_t i) { return sweep_point(axes, i); }, scenario.cells);
}

/// The document resolved; null where its fields or values are not right, whatever its cells are.
Json resolved_if_right(const Json& document) {
  try {
    return resolve(scenario_shape(), document, "");
  } catch (const InvalidOption&) {
    return nullptr;
  }
}

/// The document as it stands and by each of its profiles, resolved. Profiles that are not chosen have right
/// paths and values, too; `validate` alone looks at their cells. `document` may be one that only settings
/// make right: then nothing can be said.
std::vector<Json> checked_variants(const Json& document, const std::string& chosen) {
  std::vector<Json> variants;
  const Json plain = resolved_if_right(document);
  if (!plain.is_null()) variants.push_back(plain);
  const Json profiles = document.value("profiles", Json::object());
  for (const auto& [name, overrides] : profiles.items()) {
    const std::string place = join_path("profiles", name);
    check_name(name, place);
    const std::vector<Override> changes = kept(read_overrides(overrides, place));
    check_roots(changes, scenario_shape());
    if (name == chosen || plain.is_null()) continue;
    Json changed = document;
    apply_overrides(scenario_shape(), changes, changed);
    try {
      variants.push_back(resolve(scenario_shape(), changed, ""));
    } catch (const InvalidOption& error) {
      throw at_override(error, scenario_shape(), changes, changed);
    }
  }
  return variants;
}

/// The resolved document.
Json expand(const Json& document, const Changes& changes, Scenario& scenario) {
  check_zip(document);
  Json resolved = resolve(scenario_shape(), document, "");
  scenario.name = resolved.at("name");
  check_name(scenario.name, "name");
  scenario.title = resolved.value("title", "");
  scenario.source = resolved.value("source", "");
  expand_cells(document, resolved, changes, scenario);
  const ExpandedClaims expanded = expand_claims(resolved.at("claims"));
  scenario.claims = expanded.claims;
  scenario.figures = resolved.at("figures");
  check_crossing(scenario);
  try {
    check_claims(scenario);
  } catch (const InvalidOption& error) {
    throw UserError(expanded.path_in_scenario(error.path()), error.message());
  }
  check_figures(scenario);
  check_separation(scenario);
  check_files(scenario);
  return resolved;
}

}  // namespace

Scenario load_scenario(const std::filesystem::path& file, const std::string& profile,
                       const std::vector<std::string>& settings) {
  const ScenarioFile read = read_scenario_file(file);
  try {
    Scenario scenario = expand_scenario(read.document, profile, settings);
    scenario.files = read.files;
    return scenario;
  } catch (const InvalidOption& error) {
    throw at_file(error, read);
  }
}

Scenario expand_scenario(const Json& document, const std::string& profile,
                         const std::vector<std::string>& settings) {
  if (!document.is_object())
    throw UserError("", "got " + abbreviated(document) + ", needs a scenario: an object");
  check_version(document, "version");
  if (document.contains("extends"))
    throw UserError("extends", "is for files: only they know what it is relative to");
  const Changes changes = {profile_overrides(document, profile), kept(read_settings(settings))};
  check_roots(changes.profile, scenario_shape());
  check_roots(changes.settings, scenario_shape());

  Scenario scenario;
  scenario.profile = profile;
  scenario.document = document;
  apply_overrides(scenario_shape(), changes.profile, scenario.document);
  apply_overrides(scenario_shape(), changes.settings, scenario.document);
  Json resolved;
  try {
    resolved = expand(scenario.document, changes, scenario);
  } catch (const InvalidOption& error) {
    std::vector<Override> overrides = changes.profile;
    overrides.insert(overrides.end(), changes.settings.begin(), changes.settings.end());
    throw at_override(error, scenario_shape(), overrides, scenario.document);
  }
  std::vector<Json> variants = checked_variants(document, profile);
  variants.push_back(std::move(resolved));
  check_labels(variants);
  return scenario;
}

void keep_placed(Scenario& scenario, std::vector<std::vector<Json>> placed) {
  scenario.crossing->placed = std::move(placed);
  expand_cells(scenario.document, resolve(scenario_shape(), scenario.document, ""), {}, scenario);
}

void keep_decided(Scenario& scenario, Json decided) {
  scenario.decided = std::move(decided);
  if (scenario.decided.is_null()) return;
  const std::vector<int> seeds = scenario.decided.at("seeds").get<std::vector<int>>();
  std::size_t place = 0;
  bool has_all = true;
  std::vector<Cell> kept;
  for (Cell& cell : scenario.cells) {
    place += cell.seed == 0 ? 1 : 0;
    has_all &= place <= seeds.size();
    if (has_all && cell.seed < seeds[place - 1]) kept.push_back(std::move(cell));
  }
  if (!has_all || place != seeds.size())
    throw std::invalid_argument("seeds of other arms and points than the scenario has");
  scenario.cells = std::move(kept);
}

}  // namespace moelab
