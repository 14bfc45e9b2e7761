#include "app/scenario/scenario_options.h"

#include <algorithm>

namespace moelab {
namespace {

/// The values of a swept path in a file. read_sweep() reads them as JSON overrides; this struct only
/// describes the allowed values.
struct SweptRange {
  std::vector<AnyValue> values;
  CrossingFields crossing;

  std::vector<Binding> alternatives() {
    return {[this](Fields& fields) { fields.add_list("", values, 1, ""); },
            [this](Fields& fields) { fields.add("", crossing, ""); }};
  }
};
struct SweptValues {
  std::vector<AnyValue> values;
  NamedValues<SweptRange> ranges;

  std::vector<Binding> alternatives() {
    return {[this](Fields& fields) { fields.add_list("", values, 1, ""); },
            [this](Fields& fields) { fields.add("", ranges, ""); }};
  }
};

}  // namespace

void PhaseFields::bind(Fields& fields) {
  fields.required().add("name", name, "prefix of the phase's own metrics: letters, digits, . _ -");
  fields.add("data", data, "fields of data that are its own; with another generator, all of them");
  fields.add("loss", loss, "fields of loss that are its own");
  fields.add("train", train, "fields of train that are its own");
  fields.add_names("learns", learns, {"router", "experts", "layers", "first_layers", "read_outs"}, 1,
                   "what learns: routers; experts and dense networks, or their first weights or last layer; "
                   "attention, projection and read-out; trainable false never does");
  fields.add("keep_optimizer", keep_optimizer, "go on with the moments of the phase before");
}

std::vector<MetricOptions> ConfigFields::default_metrics() {
  std::vector<MetricOptions> metrics;
  for (const MetricGroup& group : metric_groups()) {
    if (group.by_default) metrics.push_back(MetricOptions::named(group.name));
  }
  return metrics;
}

void ConfigFields::bind(Fields& fields) {
  fields.required().add("data", data, "where samples come from");
  fields.required().add("model", model, "what is trained");
  fields.add("loss", loss, "what is minimised");
  fields.required().add("train", train, "how it is minimised");
  fields.add("phases", phases,
             "trainings one after another, each from where the one before ended; their data, loss and train "
             "over those above");
  fields.add("metrics", metrics, "groups of metrics to measure");
  fields.add_names("save", save, {"weights", "routing", "routing_steps"}, 0,
                   "arrays to keep: the parameters; the test rows with routing and outputs; mean routing, "
                   "loads and linear routers' rows at every recorded step");
  fields.add("evaluations", evaluations,
             "name → overrides {data.…: value}: the trained model is measured on these test data, too, its "
             "metrics as name.metric");
}

void SeedFields::bind(Fields& fields) {
  fields.add("root", root, between(0, 9007199254740992.0), "root of all random streams");
  fields.add("count", count, moelab::count(), "repetitions of every arm and sweep point");
  fields.add_names("shared", shared, {"problem", "train", "test"}, 0,
                   "streams that all seeds take from seed 0: the problem, training data, test data");
}

std::uint64_t SeedFields::shared_streams() const {
  Seeds seeds;
  for (const std::string& name : shared) {
    if (name == "problem") seeds.share(Purpose::problem);
    if (name == "train") seeds.share(Purpose::train_data);
    if (name == "train") seeds.share(Purpose::population);
    if (name == "test") seeds.share(Purpose::test_data);
    if (name == "test") seeds.share(Purpose::evaluation);
  }
  return seeds.shared;
}

void TuneFields::bind(Fields& fields) {
  fields.required().add("low", low, any_number(), "least value");
  fields.required().add("high", high, any_number(), "greatest value");
  int scale = is_log ? 0 : 1;
  fields.add("scale", scale, {"log", "linear"}, "of the range");
  is_log = scale == 0;
}

namespace {

/// An objective that names its direction.
struct DirectedObjective {
  std::string metric;
  std::optional<StudyObjective::Direction> direction;
  void bind(Fields& fields) {
    fields.required().add("metric", metric, "name of a metric");
    fields.add("direction", direction, {"min", "max"},
               "which value is the best (default: the least, or the greatest of accuracies, indices of "
               "agreement, purities and shares of clusters with an expert)");
  }
};

}  // namespace

std::vector<Binding> StudyObjective::alternatives() {
  const auto set = [this](const DirectedObjective& own) {
    metric = own.metric;
    direction = own.direction;
  };
  return {alternative(direction ? std::nullopt : std::optional(metric),
                      [set](const std::string& own) {
                        set({own, std::nullopt});
                      }),
          alternative(direction ? std::optional(DirectedObjective{metric, direction}) : std::nullopt, set)};
}

void ScenarioFields::bind(Fields& fields) {
  std::optional<std::string> schema, extends;
  std::int64_t version = kScenarioVersion;
  NamedValues<OverrideValues> arms, profiles;
  NamedValues<SweptValues> sweep;
  fields.add("$schema", schema, "for editors; ignored");
  fields.add("version", version, between(kScenarioVersion, kScenarioVersion), "of the scenario format");
  fields.add("extends", extends,
             "another scenario file, relative to this one, whose fields this one changes");
  fields.required().add("name", name, "names the run folder: letters, digits, . _ -");
  fields.optional().add("title", title, "one line");
  fields.optional().add("source", source, "the paper and its figure or section");
  fields.optional().add_text_or_list("notes", notes, "free text: how the hyper-parameters were chosen", 0);
  ConfigFields::bind(fields);
  fields.optional().add(
      "arms", arms,
      "name → overrides {path: value} (default: one arm, base); a template makes an arm for "
      "each value: \"aux_{c}\": {\"for\": {\"c\": [0.01, 0.1]}, \"set\": {\"loss.aux\": "
      "\"{c}\"}}");
  fields.optional().add("sweep", sweep,
                        "path → [values], {\"log2range\": [low, high]} or {\"crossing\": {…}}; \"zip\" → "
                        "{path: [values], …}; several entries make a grid, the first varying slowest");
  fields.add("seeds", seeds, "repetitions");
  fields.add("objective", objective,
             "the study's metric: `moelab tune` chooses by it, the main table shows it; a metric or "
             "{\"metric\", \"direction\"} (default: the first figure's metric)");
  fields.optional().add("tune", tune,
                        "path → range that `moelab tune` chooses from, for every arm on root seed 1000");
  fields.optional().add("labels", labels,
                        "how figures call an arm, a swept path, a metric or a swept value (\"path=value\")");
  fields.add("claims", claims, "statements that the run tests");
  fields.add("figures", figures, "what is drawn");
  fields.add("profiles", profiles, "name → overrides {path: value} chosen with --profile");
}

const Shape& data_shape() {
  static const Shape shape = shape_of<DataOptions>();
  return shape;
}

namespace {

/// The shape with the names of metrics as aliases of their groups in "metrics".
Shape with_metric_names(Shape shape) {
  for (Field& field : shape.fields) {
    if (field.name != "metrics") continue;
    Shape groups = *field.shape.element;
    for (const Kind& kind : groups.kinds)
      for (const MetricGroup::Metric& metric : metrics_of_group(kind.name))
        groups.aliases.emplace_back(metric.name, kind.name);
    field.shape.element = std::make_shared<const Shape>(std::move(groups));
  }
  return shape;
}

}  // namespace

const Shape& config_shape() {
  static const Shape shape = with_metric_names(shape_of<ConfigFields>());
  return shape;
}

const Shape& scenario_shape() {
  static const Shape shape = with_metric_names(shape_of<ScenarioFields>());
  return shape;
}

Json scenario_file_schema() {
  Json whole = json_schema(scenario_shape());
  Json fields = Json::object();
  for (const auto& [name, field] : whole.at("properties").items())
    fields[name] = {{"description", field.at("description")}};
  // A scenario that extends another may set fields of it by their paths ("train.steps").
  constexpr const char* kPath = "^[a-z_]+\\..+";
  Json patterns = whole.at("patternProperties");
  patterns[kPath] = Json::object();
  return {{"$schema", whole.at("$schema")},
          {"type", "object"},
          {"properties", std::move(fields)},
          {"patternProperties", std::move(patterns)},
          {"additionalProperties", false},
          {"if", {{"required", {"extends"}}}},
          {"then", {{"required", {"name"}}}},
          {"else",
           {{"properties", whole.at("properties")},
            {"patternProperties", {{kPath, false}}},
            {"required", whole.at("required")}}}};
}

}  // namespace moelab
