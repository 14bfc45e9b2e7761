#include "app/scenario/scenario_shape.h"

#include "analysis/stats/rates.h"
#include "app/json/options.h"
#include "app/metrics/metric_groups.h"
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
       "a number instead of an arm's metric, or an expression of swept paths: \"model.experts / 4\"",
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
  };
  fields.push_back(has_tolerance ? Field{"tolerance", Shape::positive_real(), "relative tolerance"}
                                 : smallest_effect_field());
  return {op, help, claim_fields(std::move(fields))};
}

Kind trend(const std::string& op, const std::string& help) {
  return {
      op, help,
      claim_fields({{"arm", Shape::text(), "name of an arm"},
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
           "[least n, most n] of the regression (default: all)", kOptional}};
}

Kind rate_claim(const std::string& op, const std::string& help, std::vector<Field> against) {
  std::vector<Field> fields = {{"arm", Shape::text(), "name of an arm"},
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

Shape figure_shape() {
  const Shape scale = Shape::choice({"linear", "log"});
  return Shape::object({
      {"id", Shape::text(), "name of the figure's files: letters, digits, . _ -"},
      {"kind", Shape::choice({"lines", "heat_map", "rate_panels", "embedding", "cluster_map"}),
       "lines over x, a grid over x and y for each arm, a panel for each arm with slopes of y on x, or the "
       "test "
       "rows in the plane of their first two principal components, coloured by likeliest expert, or each "
       "cluster's mean routing or "
       "likeness to router rows (both need \"save\": [\"routing\"])",
       "lines"},
      {"x", Shape::text(), "lines, heat map: a swept path, or step (lines)", kOptional},
      {"y", Shape::either({Shape::text(), Shape::list(Shape::text(), 1)}),
       "lines: a metric or several; heat map: a swept path", kOptional},
      {"value", Shape::text(),
       "heat map: the metric that colours a cell, mean over seeds; cluster map: routing, E[r_e(x) | c] "
       "(default), or router_rows, cos(w_e, E[x | c]) (needs \"weights\" saved, too)",
       kOptional},
      {"at_least", Shape::real(), "heat map: colour the share of seeds whose value is at least this, instead",
       kOptional},
      {"value_label", Shape::text(), "heat map: what the caption calls the value", kOptional},
      {"series", Shape::text(), "arm, or a swept path: one line for each", "arm"},
      {"x_scale", scale, "scale of the x axis", "linear"},
      {"y_scale", scale, "scale of the y axis", "linear"},
      {"title", Shape::text(), "title", kOptional},
      {"x_label", Shape::text(), "label of the x axis", kOptional},
      {"y_label", Shape::text(), "label of the y axis", kOptional},
      {"where", overrides_shape(), "values of the other swept paths: {path: value}", kOptional},
      {"arms", Shape::list(Shape::text(), 1), "arms to show (default: all)", kOptional},
      {"rows", Shape::list(Shape::text(), 1),
       "rate panels: names of the rows, whose panels are arms in order", kOptional},
      {"columns", Shape::list(Shape::text(), 1), "rate panels: names of the columns", kOptional},
      {"window", Shape::list(Shape::positive_real(), 2), "rate panels: [least x, most x] of the slopes",
       kOptional},
      {"reported", Shape::map(Shape::text()), "rate panels: arm → the rate that the source gives", kOptional},
  });
}

std::vector<Field> config_fields() {
  return {
      {"data", data_shape(), "where samples come from"},
      {"model", shape_of<ModelOptions>(), "what is trained"},
      {"loss", shape_of<LossOptions>(), "what is minimised", Json::object()},
      {"train", shape_of<TrainOptions>(), "how it is minimised"},
      {"metrics", Shape::list(shape_of<MetricOptions>()), "groups of metrics to measure",
       default_metric_groups()},
      {"save", Shape::list(Shape::choice({"weights", "routing"})), "arrays to keep of every cell",
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
       Shape::map(Shape::either({Shape::list(Shape::any(), 1), Shape::map(Shape::list(Shape::any(), 1))})),
       "path → [values] or {\"log2range\": [low, high]}, or \"zip\" → {path: [values], …}; several entries "
       "make a "
       "grid, the first varying slowest",
       kOptional},
      {"seeds",
       Shape::object({{"root", Shape::count(0), "root of all random streams", 1},
                      {"count", Shape::count(1), "repetitions of every arm and sweep point", 5}}),
       "repetitions", Json::object()},
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
