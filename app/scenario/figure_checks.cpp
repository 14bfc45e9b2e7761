#include <fmt/format.h>

#include <algorithm>

#include "app/scenario/cross_checks.h"
#include "app/scenario/figure_values.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

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
  references.check_where(where_of(figure), path);
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
  references.check_axes(where_of(figure), {x, y}, path);
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
  references.check_sizes(figure, x, {x, series}, path, join_path(path, "x"));
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
  references.check_axes(where_of(figure), {x, series}, path);
}

}  // namespace

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
