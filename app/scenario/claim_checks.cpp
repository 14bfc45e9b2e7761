#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/stats/claim_sides.h"
#include "analysis/stats/rate_claims.h"
#include "app/run/cluster_maps.h"
#include "app/run/metric_groups.h"
#include "app/scenario/cross_checks.h"
#include "sim/base/error.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

/// What claims and figures may refer to.
class References {
 public:
  explicit References(const Scenario& scenario) {
    table_.arms = scenario.arms;
    table_.sweep_paths = scenario.sweep_paths;
    for (const Cell& cell : scenario.cells) {
      if (cell.seed != 0) continue;
      configs_[cell.arm].push_back(&cell.config);
      if (cell.arm == scenario.arms.front())
        table_.rows.push_back({"", cell.arm, 0, cell.point, "missing", {}, {}});
      for (const Json& group : cell.config.at("metrics")) groups_[cell.arm].insert(group.at("kind"));
    }
  }

  /// A table without results: the arms, and one row for each sweep point.
  const ResultTable& table() const { return table_; }

  void check_arm(const std::string& arm, const std::string& path) const {
    if (!configs_.contains(arm)) throw UserError(path, unknown_name("arm", arm, table_.arms));
  }

  void check_swept(const std::string& name, const std::string& other, const std::string& path) const {
    std::vector<std::string> allowed = table_.sweep_paths;
    if (!other.empty()) allowed.push_back(other);
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return;
    throw UserError(path, unknown_name("swept path", name, allowed));
  }

  void check_metric(const std::string& arm, const std::string& metric, const std::string& path) const {
    if (!find_metric(metric)) throw UserError(path, unknown_name("metric", metric, metric_names()));
    check_arm(arm, path);
    check_prefix(arm, metric, path);
    check_layer(arm, metric, path);
    const std::string group = group_of_metric(metric);
    if (groups_.contains(arm) && groups_.at(arm).contains(group)) return;
    throw UserError(
        path, fmt::format("'{}' belongs to the group '{}', which \"metrics\" leaves out", metric, group));
  }

  /// A step that the run of every cell of the arm records.
  void check_step(const std::string& arm, const Json& step, const std::string& path) const {
    if (!step.is_number()) return;
    for (const Json* config : configs_.at(arm)) {
      const Json& train = config->at("train");
      if (is_least_squares(train))
        throw UserError(path,
                        "got " + step.dump() + ", but a least-squares fit records its start and end alone");
      const std::int64_t wanted = step,
                         last = total_steps(train, config->at("data").value("train_samples", 0));
      const std::int64_t every = record_interval(train, last);
      if (wanted > last)
        throw UserError(path, fmt::format("got {}, needs a step of the run, at most {}", wanted, last));
      if (wanted != last && wanted % every != 0) {
        throw UserError(
            path, fmt::format("got {}, needs a recorded step: a multiple of {}, or the last", wanted, every));
      }
    }
  }

  /// The sweep points with these coordinates. Throws when there is none.
  std::vector<const SweepPoint*> points_at(const Json& where, const std::string& path) const {
    std::vector<const SweepPoint*> points;
    for (const ResultRow& row : table_.rows) {
      const bool matches = std::all_of(row.point.begin(), row.point.end(), [&](const auto& coordinate) {
        return !where.contains(coordinate.first) ||
               canonical_text(where.at(coordinate.first)) == canonical_text(coordinate.second);
      });
      if (matches) points.push_back(&row.point);
    }
    if (points.empty())
      throw UserError(path, "got " + abbreviated(where) + ", which is no point of the sweep");
    return points;
  }

  /// The prefix of a metric is an evaluation of every cell of the arm.
  void check_prefix(const std::string& arm, const std::string& metric, const std::string& path) const {
    const std::size_t dot = metric.rfind('.');
    if (dot == std::string::npos) return;
    for (const Json* config : configs_.at(arm)) {
      std::vector<std::string> names;
      for (const auto& evaluation : config->at("evaluations").items()) names.push_back(evaluation.key());
      if (std::find(names.begin(), names.end(), metric.substr(0, dot)) == names.end()) {
        throw UserError(path, unknown_name("evaluation", metric.substr(0, dot), names));
      }
    }
  }

  /// Every cell of the arm saves these arrays, "routing" or "weights", and has a routing.
  void check_saved(const std::string& arm, const std::string& arrays, const std::string& path) const {
    for (const Json* config : configs_.at(arm)) {
      const Json& saved = config->at("save");
      if (config->at("model").at("kind") == "dense")
        throw UserError(path, "shows arm '" + arm + "', which is dense and has no routing");
      if (std::find(saved.begin(), saved.end(), arrays) == saved.end())
        throw UserError(path, "shows arm '" + arm + "', needs \"save\": [\"" + arrays + "\"]");
    }
  }

  /// A metric of routing names the layer where there are several, and no layer that there is not.
  void check_layer(const std::string& arm, const std::string& metric, const std::string& path) const {
    const std::string_view number = layer_number(metric);
    const std::string group = group_of_metric(metric);
    const bool is_of_layers =
        group != "task" && group != "gradient" && group != "convergence" && group != "layer_loads";
    for (const Json* config : configs_.at(arm)) {
      const int layers = config->at("model").at("layers");
      if (number.empty() && (layers == 1 || !is_of_layers)) continue;
      if (!number.empty() && is_of_layers && layers > 1 && std::stoi(std::string(number)) < layers) continue;
      throw UserError(path, fmt::format("got '{}', needs {} for model.layers = {}", metric,
                                        layers > 1 && is_of_layers
                                            ? fmt::format("an ending _layer0 … _layer{}", layers - 1)
                                            : "no ending of a layer",
                                        layers));
    }
  }

 private:
  ResultTable table_;
  std::map<std::string, std::vector<const Json*>> configs_;
  std::map<std::string, std::set<std::string>> groups_;
};

/// The arm of a side or a trend, the one that it is held against, and the metric, which both must have.
void check_measured(const References& references, const Json& side, const std::string& path) {
  references.check_arm(side.at("arm"), join_path(path, "arm"));
  references.check_metric(side.at("arm"), side.at("metric"), join_path(path, "metric"));
  for (const char* other : {"relative_to", "distance_from"}) {
    if (!side.contains(other)) continue;
    references.check_arm(side.at(other), join_path(path, other));
    references.check_metric(side.at(other), side.at("metric"), join_path(path, "metric"));
  }
}

void check_side(const References& references, const Json& side, const std::string& path) {
  if (side.contains("value")) {
    for (const char* key : {"arm", "metric", "relative_to", "distance_from", "where", "step"}) {
      if (side.contains(key))
        throw UserError(join_path(path, key), "given beside 'value'; needs one or the other");
    }
    return;
  }
  for (const char* key : {"arm", "metric"}) {
    if (!side.contains(key))
      throw UserError(join_path(path, key), "missing; a side needs arm and metric, or value");
  }
  check_measured(references, side, path);
  for (const char* key : {"relative_to", "step"}) {
    if (side.contains("distance_from") && side.contains(key))
      throw UserError(join_path(path, key), "given beside 'distance_from', which is of whole curves");
  }
  if (!side.contains("step")) return;
  for (const char* arm : {"arm", "relative_to"}) {
    if (side.contains(arm)) references.check_step(side.at(arm), side.at("step"), join_path(path, "step"));
  }
}

void check_trend(const References& references, const Json& claim, const std::string& path) {
  check_measured(references, claim, path);
  const std::string along = claim.at("along");
  references.check_swept(along, "step", join_path(path, "along"));
  if (along == "step") return;
  std::set<std::string> values;
  for (const ResultRow& row : references.table().rows) {
    if (const Json* const value = row.coordinate(along)) values.insert(canonical_text(*value));
  }
  if (values.size() < 2) throw UserError(join_path(path, "along"), "a trend needs at least two swept values");
}

/// The arms that a figure shows; its metrics must be theirs.
std::vector<std::string> figure_arms(const References& references, const Json& figure,
                                     const std::string& path) {
  std::vector<std::string> arms = references.table().arms;
  if (figure.contains("arms")) arms = figure.at("arms").get<std::vector<std::string>>();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    references.check_arm(arms[i], join_path(join_path(path, "arms"), i));
  }
  return arms;
}

/// The sweep points that a figure shows.
std::vector<const SweepPoint*> check_where(const References& references, const Json& figure,
                                           const std::string& path) {
  const std::string where_path = join_path(path, "where");
  const Json where = figure.value("where", Json::object());
  for (const auto& [name, value] : where.items())
    references.check_swept(name, "", join_path(where_path, name));
  return references.points_at(where, where_path);
}

/// Every point of the figure, told by `axes`, belongs to one sweep point.
void check_axes(const References& references, const Json& figure, const std::vector<std::string>& axes,
                const std::string& path) {
  std::set<std::string> drawn;
  for (const SweepPoint* point : check_where(references, figure, path)) {
    Json coordinates = Json::object();
    for (const auto& [name, value] : *point) {
      if (std::find(axes.begin(), axes.end(), name) != axes.end()) coordinates[name] = value;
    }
    if (drawn.insert(canonical_text(coordinates)).second) continue;
    throw UserError(join_path(path, "where"),
                    fmt::format("leaves several sweep points for one point of the figure; needs a value "
                                "for every swept path that is not one of {}",
                                fmt::join(axes, ", ")));
  }
}

/// n is a number above 1, of which there are three or more in the window; one value for each.
void check_sizes(const References& references, const Json& part, const std::string& along,
                 const std::vector<std::string>& axes, const std::string& path,
                 const std::string& along_path) {
  references.check_swept(along, "", along_path);
  check_axes(references, part, axes, path);
  const std::string window_path = join_path(path, "window");
  if (part.contains("window") &&
      (part.at("window").size() != 2 || part.at("window")[0] >= part.at("window")[1]))
    throw UserError(window_path, "got " + abbreviated(part.at("window")) + ", needs [least n, most n]");
  std::set<double> sizes;
  for (const ResultRow& row : references.table().rows) {
    for (const auto& [name, value] : row.point) {
      if (name != along) continue;
      if (!value.is_number() || value <= 1)
        throw UserError(along_path, "has the value " + abbreviated(value) + ", needs numbers above 1");
      const double n = value;
      if (!part.contains("window") || (n >= part.at("window")[0] && n <= part.at("window")[1]))
        sizes.insert(n);
    }
  }
  if (sizes.size() < 3) {
    throw UserError(part.contains("window") ? window_path : along_path,
                    fmt::format("leaves {} values, a slope needs at least three", sizes.size()));
  }
}

void check_rate(const References& references, const Json& claim, const std::string& path) {
  const std::string along = claim.at("along");
  references.check_arm(claim.at("arm"), join_path(path, "arm"));
  references.check_metric(claim.at("arm"), claim.at("metric"), join_path(path, "metric"));
  if (claim.contains("than") && claim.at("than").is_string()) {
    references.check_arm(claim.at("than"), join_path(path, "than"));
    references.check_metric(claim.at("than"), claim.at("metric"), join_path(path, "metric"));
  }
  check_sizes(references, claim, along, {along}, path, join_path(path, "along"));
}

void require_axes(const Json& figure, const std::string& path) {
  for (const char* key : {"x", "y"}) {
    if (!figure.contains(key)) throw UserError(join_path(path, key), "missing");
  }
}

/// Figures of single cells show the arrays that they save.
void check_saved_arrays(const References& references, const Json& figure, const std::string& arrays,
                        const std::string& path) {
  const std::vector<std::string> arms = figure_arms(references, figure, path);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    references.check_saved(arms[i], arrays,
                           figure.contains("arms") ? join_path(join_path(path, "arms"), i) : path);
  }
  check_where(references, figure, path);
}

void check_embedding(const References& references, const Json& figure, const std::string& path) {
  for (const char* key : {"x", "y", "value", "at_least", "value_label", "x_label", "y_label"}) {
    if (figure.contains(key)) throw UserError(join_path(path, key), "given, but kind is 'embedding'");
  }
  check_saved_arrays(references, figure, "routing", path);
}

void check_cluster_map(const References& references, const Json& figure, const std::string& path) {
  for (const char* key : {"x", "y", "at_least", "value_label"}) {
    if (figure.contains(key)) throw UserError(join_path(path, key), "given, but kind is 'cluster_map'");
  }
  const std::vector<std::string> values = {kMeanRouting, kRouterCosine};
  const std::string value = figure.value("value", values.front());
  if (std::find(values.begin(), values.end(), value) == values.end())
    throw UserError(join_path(path, "value"), unknown_name("value", value, values));
  check_saved_arrays(references, figure, "routing", path);
  if (value == kRouterCosine) check_saved_arrays(references, figure, "weights", path);
}

void check_heat_map(const References& references, const Json& figure, const std::string& path) {
  require_axes(figure, path);
  if (!figure.contains("value"))
    throw UserError(join_path(path, "value"), "missing; a heat map needs a metric");
  if (!figure.at("y").is_string()) throw UserError(join_path(path, "y"), "got a list, needs a swept path");
  const std::string x = figure.at("x"), y = figure.at("y");
  references.check_swept(x, "", join_path(path, "x"));
  references.check_swept(y, "", join_path(path, "y"));
  if (x == y) throw UserError(join_path(path, "y"), "is the x axis already");
  for (const std::string& arm : figure_arms(references, figure, path)) {
    references.check_metric(arm, figure.at("value"), join_path(path, "value"));
  }
  check_axes(references, figure, {x, y}, path);
}

void check_rate_panels(const References& references, const Json& figure, const std::string& path) {
  require_axes(figure, path);
  const std::vector<std::string> arms = figure_arms(references, figure, path);
  for (const char* key : {"rows", "columns"}) {
    if (!figure.contains(key))
      throw UserError(join_path(path, key), "missing; rate panels need the names of their rows and columns");
  }
  const std::size_t panels = figure.at("rows").size() * figure.at("columns").size();
  if (panels != arms.size()) {
    throw UserError(
        join_path(path, "rows"),
        fmt::format("and columns make {} panels, needs one for each of {} arms", panels, arms.size()));
  }
  const std::string x = figure.at("x"), series = figure.at("series");
  references.check_swept(series, "arm", join_path(path, "series"));
  const Json& y = figure.at("y");
  for (const Json& metric : y.is_array() ? y : Json::array({y})) {
    for (const std::string& arm : arms) references.check_metric(arm, metric, join_path(path, "y"));
  }
  const Json reported = figure.value("reported", Json::object());
  for (const auto& [arm, rate] : reported.items())
    references.check_arm(arm, join_path(join_path(path, "reported"), arm));
  check_sizes(references, figure, x, {x, series}, path, join_path(path, "x"));
}

void check_lines(const References& references, const Json& figure, const std::string& path) {
  require_axes(figure, path);
  const std::string x = figure.at("x"), series = figure.at("series");
  references.check_swept(x, "step", join_path(path, "x"));
  references.check_swept(series, "arm", join_path(path, "series"));
  if (x == series) throw UserError(join_path(path, "series"), "is the x axis already");
  for (const char* key : {"value", "at_least", "value_label"}) {
    if (figure.contains(key)) throw UserError(join_path(path, key), "given, but kind is not 'heat_map'");
  }
  for (const char* key : {"rows", "columns", "window", "reported"}) {
    if (figure.contains(key)) throw UserError(join_path(path, key), "given, but kind is not 'rate_panels'");
  }
  const std::vector<std::string> arms = figure_arms(references, figure, path);
  const std::string y_path = join_path(path, "y");
  const bool is_list = figure.at("y").is_array();
  const Json metrics = is_list ? figure.at("y") : Json::array({figure.at("y")});
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    for (const std::string& arm : arms) {
      references.check_metric(arm, metrics[i], is_list ? join_path(y_path, i) : y_path);
    }
  }
  check_axes(references, figure, {x, series}, path);
}

void check_ids(const Json& parts, const std::string& path) {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string id = parts[i].at("id"), here = join_path(join_path(path, i), "id");
    check_name(id, here);
    if (!ids.insert(id).second) throw UserError(here, "got '" + id + "' a second time, needs distinct ids");
  }
}

}  // namespace

void check_claims(const Scenario& scenario) {
  check_ids(scenario.claims, "claims");
  const References references(scenario);
  for (std::size_t i = 0; i < scenario.claims.size(); ++i) {
    const Json& claim = scenario.claims[i];
    const std::string path = join_path("claims", i);
    if (is_rate_claim(claim)) {
      check_rate(references, claim, path);
      continue;
    }
    if (claim.contains("along")) {
      check_trend(references, claim, path);
    } else {
      check_side(references, claim.at("left"), join_path(path, "left"));
      check_side(references, claim.at("right"), join_path(path, "right"));
    }
    // What will judge the claim finds its sweep points, and so refuses those that do not exist.
    read_claim(claim, references.table(), path);
  }
}

void check_figures(const Scenario& scenario) {
  check_ids(scenario.figures, "figures");
  const References references(scenario);
  for (std::size_t i = 0; i < scenario.figures.size(); ++i) {
    const Json& figure = scenario.figures[i];
    const auto check = figure.at("kind") == "heat_map"      ? check_heat_map
                       : figure.at("kind") == "rate_panels" ? check_rate_panels
                       : figure.at("kind") == "embedding"   ? check_embedding
                       : figure.at("kind") == "cluster_map" ? check_cluster_map
                                                            : check_lines;
    check(references, figure, join_path("figures", i));
  }
}

}  // namespace moelab
