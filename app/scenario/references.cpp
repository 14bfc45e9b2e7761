#include "app/scenario/references.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/json/options.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/experiment_reader.h"
#include "app/scenario/fixed_numbers.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"
#include "sim/data/problem.h"
#include "sim/train/least_squares.h"

namespace moelab {

namespace {

/// Cells share equal parts.
std::vector<const Json*> parts_of(const CellConfig& config) {
  std::vector<const Json*> parts;
  for (const char* part : {"data", "model", "loss", "train", "metrics", "evaluations", "phases"})
    parts.push_back(&config.at(part));
  return parts;
}

}  // namespace

References::References(const Scenario& scenario) : claims_(scenario.claims) {
  table_.arms = scenario.arms;
  table_.sweep_paths = scenario.sweep_paths;
  table_.fixed = fixed_numbers(scenario);
  if (scenario.crossing) table_.searched_path = scenario.crossing->path;
  std::map<std::string, std::set<const MeasuredMetrics*>> seen;
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    configs_[cell.arm].push_back(&cell.config);
    const MeasuredMetrics* const measured =
        &metrics_.try_emplace(parts_of(cell.config), cell.config).first->second;
    if (seen[cell.arm].insert(measured).second) measured_[cell.arm].push_back(measured);
    if (cell.arm == scenario.arms.front())
      table_.rows.push_back({"", cell.arm, 0, read_point(cell.point), "missing", {}, {}});
  }
}

void References::check_arm(const std::string& arm, const std::string& path) const {
  if (!configs_.contains(arm)) throw UserError(path, unknown_name("arm", arm, table_.arms));
}

void References::check_swept(const std::string& name, const std::string& other,
                             const std::string& path) const {
  std::vector<std::string> allowed = table_.sweep_paths;
  if (!other.empty()) allowed.push_back(other);
  if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return;
  throw UserError(path, unknown_name("swept path", name, allowed));
}

void References::check_metric(const std::string& arm, const std::string& metric,
                              const std::string& path) const {
  if (!find_metric(metric)) throw UserError(path, unknown_name("metric", metric, metric_names()));
  check_arm(arm, path);
  for (const MeasuredMetrics* const measured : measured_.at(arm)) measured->check(metric, path, arm);
}

void References::check_numbers(const std::string& swept, const std::string& path) const {
  for (const ResultRow& row : table_.rows) {
    const SweepValue* const value = row.coordinate(swept);
    if (value && !value->number())
      throw UserError(path, fmt::format("{} has the value {}, needs numbers", swept, value->text()));
  }
}

void References::check_number(const std::string& name, const std::string& path) const {
  if (table_.fixed.contains(name)) return;
  check_swept(name, "", path);
  check_numbers(name, path);
}

void References::check_part(const std::string& arm, const std::string& name, const std::string& path) const {
  const std::vector<std::string>& swept = table_.sweep_paths;
  if (table_.fixed.contains(name)) return;
  if (std::find(swept.begin(), swept.end(), name) != swept.end()) return check_numbers(name, path);
  if (find_metric(name)) return check_metric(arm, name, path);
  std::vector<std::string> allowed = metric_names();
  allowed.insert(allowed.end(), swept.begin(), swept.end());
  throw UserError(path, unknown_name(swept.empty() ? "metric" : "metric or swept path", name, allowed));
}

void References::check_step(const std::string& arm, const ClaimStep& step, const std::string& path) const {
  if (step.at != ClaimStep::At::recorded) return;
  for (const CellConfig* config : configs_.at(arm)) {
    std::int64_t before = 0;  // steps of the phases before
    bool is_recorded = false;
    std::string every;  // what recorded steps are multiples of
    const auto look_at = [&](const Json& part) {
      const TrainOptions train = read_options<TrainOptions>(part.at("train"));
      if (is_least_squares(train)) {
        throw UserError(
            path, fmt::format("got {}, but a least-squares fit records its start and end alone", step.step));
      }
      const std::int64_t steps = total_steps(train, part.at("data").value("train_samples", 0));
      const std::int64_t interval = record_interval(train, steps), own = step.step - before;
      is_recorded |= own >= 0 && own <= steps && (own == steps || own % interval == 0);
      before += steps;
      every += fmt::format("{}{}", every.empty() ? "" : " or, in a later phase, ", interval);
    };
    if (config->at("phases").empty())
      look_at(Json{{"train", config->at("train")}, {"data", config->at("data")}});
    for (const Json& phase : config->at("phases")) look_at(phase);
    if (step.step > before)
      throw UserError(path, fmt::format("got {}, needs a step of the run, at most {}", step.step, before));
    if (!is_recorded) {
      throw UserError(path, fmt::format("got {}, needs a recorded step: a multiple of {}, or the last",
                                        step.step, every));
    }
  }
}

void References::check_metric_at(const std::string& metric, const ClaimStep& step,
                                 const std::string& path) const {
  if (step.at == ClaimStep::At::end) return;
  if (is_of_end_alone(metric))
    throw UserError(path, fmt::format("given for '{}', which is known at the end alone", metric));
  const std::vector<const Need*> all = needs_of(MetricKey::parse(metric).metric);
  const bool is_of_change = std::any_of(all.begin(), all.end(), [](const Need* need) {
    return need == &needs::step_before || need == &needs::probabilities_before;
  });
  const bool is_start = step.at == ClaimStep::At::start || step.step == 0;
  if (is_start && is_of_change)
    throw UserError(path, fmt::format("is the start, where '{}' has no step before it", metric));
}

void References::check_saved(const std::string& arm, const std::string& arrays,
                             const std::string& path) const {
  for (const CellConfig* config : configs_.at(arm)) {
    const Json& saved = config->at("save");
    if (config->at("model").at("kind") == "dense")
      throw UserError(path, "shows arm '" + arm + "', which is dense and has no routing");
    if (std::find(saved.begin(), saved.end(), arrays) == saved.end())
      throw UserError(path, "shows arm '" + arm + "', needs \"save\": [\"" + arrays + "\"]");
  }
}

std::set<int> References::saved_input_widths(const std::string& arm, const SweepPoint& where) const {
  const std::vector<const CellConfig*>& configs = configs_.at(arm);
  // An arm whose points are its own, by a search, is looked at everywhere.
  const bool has_points_of_table = configs.size() == table_.rows.size();
  std::set<const Json*> seen;
  std::set<int> widths;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (has_points_of_table && !table_.rows[i].is_at(where)) continue;
    // Arrays are saved at the end of the last phase.
    const Json& phases = configs[i]->at("phases");
    const Json& data = phases.empty() ? configs[i]->at("data") : phases.back().at("data");
    if (!seen.insert(&data).second) continue;
    const Layout layout = draw_problem(read_small_data(data), Seeds{1, 0})->layout();
    widths.insert(static_cast<int>(layout.input_shape(1).back()));
  }
  return widths;
}

std::vector<const SweepPoint*> References::check_where(const SweepPoint& where,
                                                       const std::string& path) const {
  const std::string where_path = join_path(path, "where");
  for (const auto& coordinate : where)
    check_swept(coordinate.first, "", join_path(where_path, coordinate.first));
  std::vector<const SweepPoint*> points;
  for (const ResultRow& row : table_.rows) {
    if (row.is_at(where)) points.push_back(&row.point);
  }
  if (points.empty()) {
    throw UserError(where_path, "got " + abbreviated(point_json(where)) + ", which is no point of the sweep");
  }
  return points;
}

void References::check_axes(const SweepPoint& where, const std::vector<std::string>& axes,
                            const std::string& path) const {
  std::set<std::string> drawn;
  for (const SweepPoint* point : check_where(where, path)) {
    SweepPoint coordinates;
    for (const auto& coordinate : *point) {
      if (std::find(axes.begin(), axes.end(), coordinate.first) != axes.end())
        coordinates.push_back(coordinate);
    }
    if (drawn.insert(canonical_text(point_json(coordinates))).second) continue;
    throw UserError(join_path(path, "where"),
                    fmt::format("leaves several sweep points for one point of the figure; needs a value "
                                "for every swept path that is not one of {}",
                                fmt::join(axes, ", ")));
  }
}

void References::check_sizes(const Json& part, const std::string& along, const std::vector<std::string>& axes,
                             const std::string& path, const std::string& along_path) const {
  check_swept(along, "", along_path);
  check_axes(where_of(part), axes, path);
  const std::string window_path = join_path(path, "window");
  if (part.contains("window") &&
      (part.at("window").size() != 2 || part.at("window")[0] >= part.at("window")[1]))
    throw UserError(window_path, "got " + abbreviated(part.at("window")) + ", needs [least n, most n]");
  std::set<double> sizes;
  for (const ResultRow& row : table_.rows) {
    const SweepValue* const value = row.coordinate(along);
    if (!value) continue;
    if (!value->number() || *value->number() <= 1) {
      throw UserError(along_path,
                      "has the value " + abbreviated(to_json(*value)) + ", needs numbers above 1");
    }
    const double n = *value->number();
    if (!part.contains("window") || (n >= part.at("window")[0] && n <= part.at("window")[1])) sizes.insert(n);
  }
  if (sizes.size() < 3) {
    throw UserError(part.contains("window") ? window_path : along_path,
                    fmt::format("leaves {} values, a slope needs at least three", sizes.size()));
  }
}

SweepPoint where_of(const Json& part) {
  return part.contains("where") ? read_point(part.at("where")) : SweepPoint();
}

void check_ids(const Json& parts, const std::string& path) {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string id = parts[i].at("id"), here = join_path(join_path(path, i), "id");
    check_name(id, here);
    if (!ids.insert(id).second) throw UserError(here, "got '" + id + "' a second time, needs distinct ids");
  }
}

}  // namespace moelab
