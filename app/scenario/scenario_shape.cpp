#include "app/scenario/scenario_shape.h"

#include "analysis/stats/rates.h"
#include "app/figures/figure_kind.h"
#include "app/json/options.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/crossing_search.h"
#include "app/scenario/scenario.h"
#include "app/scenario/scenario_file.h"
#include "sim/train/experiment.h"

namespace moelab {
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

}  // namespace moelab
