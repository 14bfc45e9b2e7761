#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "plots/kinds/figure_kind.h"
#include "plots/kinds/saved_arrays.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

Matrix cosines(const Matrix& means, const Matrix& weight) {
  const Vector of_means = means.rowwise().norm(), of_rows = weight.rowwise().norm();
  Matrix cosine = means * weight.transpose();
  for (Eigen::Index c = 0; c < cosine.rows(); ++c) {
    for (Eigen::Index e = 0; e < cosine.cols(); ++e) {
      const double lengths = of_means(c) * of_rows(e);
      cosine(c, e) = lengths > 0 ? cosine(c, e) / lengths : 0;
    }
  }
  return cosine;
}

/// The cosines from a cell's saved arrays. Throws UserError at `path` if the router has no row per expert
/// that matches the inputs.
Matrix router_cosines(const std::string& arm, const Matrix& inputs, const std::vector<int>& labels,
                      const std::filesystem::path& weight_file, const std::string& path) {
  const Matrix weight = std::filesystem::exists(weight_file) ? read_rows(weight_file).values() : Matrix();
  if (weight.cols() != inputs.cols())
    throw UserError(path, "the router of arm '" + arm + "' has no row for each expert that meets the inputs");
  return cosines(cluster_means(inputs, labels), weight);
}

/// Orders rows by the column of their largest entry. Within a column, the larger entry comes first.
std::vector<Eigen::Index> staircase(const Matrix& values) {
  std::vector<Eigen::Index> best(static_cast<std::size_t>(values.rows())), order(best.size());
  for (Eigen::Index c = 0; c < values.rows(); ++c) values.row(c).maxCoeff(&best[static_cast<std::size_t>(c)]);
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](Eigen::Index c) {
    const Eigen::Index expert = best[static_cast<std::size_t>(c)];
    return std::pair(expert, -values(c, expert));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return place(a) < place(b); });
  return order;
}

/// Notes for the clusters in `order`, each with its first test rows. `order` contains indices by first
/// occurrence.
std::vector<std::string> cluster_notes(const RowArray& probabilities, const std::vector<int>& labels,
                                       const std::vector<Eigen::Index>& order) {
  constexpr std::size_t kShownRows = 10;
  std::vector<int> clusters;  // in order of first occurrence
  std::map<int, std::vector<Eigen::Index>> rows;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (rows[labels[i]].empty()) clusters.push_back(labels[i]);
    rows[labels[i]].push_back(static_cast<Eigen::Index>(i));
  }
  std::vector<std::string> notes;
  for (const Eigen::Index place : order) {
    const int cluster = clusters[static_cast<std::size_t>(place)];
    const std::vector<Eigen::Index>& own = rows[cluster];
    std::string text = fmt::format("cluster {}: {} test rows", cluster, own.size());
    for (std::size_t i = 0; i < std::min(own.size(), kShownRows); ++i) {
      const int expert = probabilities.argmax(own[i]);
      text += fmt::format("\nrow {}: expert {} ({:.2g})", own[i], expert, probabilities.at(own[i], expert));
    }
    notes.push_back(text + (own.size() > kShownRows ? "\n…" : ""));
  }
  return notes;
}

/// Adds the mean routing at the recorded steps if "routing_steps" was saved.
void add_frames(const std::filesystem::path& steps_file, const std::filesystem::path& routing_file,
                const std::vector<Eigen::Index>& order, HeatMapPanel& panel) {
  if (!std::filesystem::exists(steps_file) || !std::filesystem::exists(routing_file)) return;
  const std::vector<int> steps = read_cluster_labels(steps_file);
  const RowArray routing = read_rows(routing_file);  // (T · C, E)
  const auto clusters = static_cast<Eigen::Index>(order.size());
  if (routing.rows() != static_cast<Eigen::Index>(steps.size()) * clusters) return;
  for (const std::size_t t : shown_steps(steps.size())) {
    std::vector<double> frame;
    for (const Eigen::Index c : order)
      for (std::int64_t e = 0; e < routing.width(); ++e)
        frame.push_back(routing.at(static_cast<std::int64_t>(t) * clusters + c, e));
    panel.frames.push_back(std::move(frame));
    panel.frame_names.push_back(fmt::format("step {}", steps[t]));
  }
}

std::vector<std::string> numbers(Eigen::Index count) {
  std::vector<std::string> names;
  for (Eigen::Index i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

enum class MapValue { routing, router_rows };

/// A panel shows the first finished seed of an arm at the last sweep point of `where`. Rows are clusters and
/// columns are experts. Rows are sorted by the column of their largest entry, so one expert per cluster forms
/// a staircase. In a stack it shows one layer. Router rows are of layer 0, since only that router reads the
/// inputs. Needs "save": ["routing"], and "weights" for router rows.
struct ClusterMapOptions : FigureCommon, RoutedLayer, AxisLabels {
  MapValue value = MapValue::routing;  ///< E[r_e(x) | c], or cos(w_e, E[x | c])
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    fields.add("value", value, {"routing", "router_rows"},
               "routing, E[r_e(x) | c], or router_rows, cos(w_e, E[x | c]) (needs \"weights\" saved, too)");
    RoutedLayer::bind(fields);
    AxisLabels::bind(fields);
  }
};

/// The width of the router rows; 0 if the router has none.
std::int64_t router_row_width(const Network<float>& network) {
  const std::string name = "router_weight" + network.layer_ending(0);
  for (const NamedArray<float>& array : network.arrays(AlignedVector<float>(network.parameter_size())))
    if (array.name == name) return array.shape.back();
  return 0;
}

void check_cluster_map(const FigureReferences& references, const ClusterMapOptions& options,
                       const std::string& path) {
  check_saved_arrays(references, options, "routing", path);
  if (options.value == MapValue::router_rows) {
    check_saved_arrays(references, options, "weights", path);
    if (options.layer && *options.layer > 0)
      throw UserError(path + ".layer", fmt::format("got {}, needs 0 with value \"router_rows\": the other "
                                                   "routers do not read the inputs",
                                                   *options.layer));
  }
  check_layer(options, references, options, path);
  const std::vector<std::string> arms = own_shown_arms(options.arms, references.table());
  references.check_saved_cells(arms, options.where, [&](const std::string& arm, const MetricSubject& cell) {
    const Layout layout = cell.problem().layout();
    const auto entries = [](const std::vector<std::int64_t>& shape) {
      return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    };
    const std::int64_t labels = entries(layout.label_shape(1)), rows = entries(layout.row_shape(1, 1));
    if (labels != rows) {
      throw UserError(path, fmt::format("shows arm '{}', whose samples have {} labels for {} routed; needs "
                                        "one label for each row",
                                        arm, labels, counted(rows, "row")));
    }
    if (options.value != MapValue::router_rows) return;
    if (router_row_width(cell.network()) != layout.input_shape(1).back()) {
      throw UserError(path + ".value",
                      fmt::format("got 'router_rows', but the router of arm '{}' has no row that meets the "
                                  "inputs; needs a router that is linear in x",
                                  arm));
    }
  });
}

/// Extends all panels to the largest number of rows and columns. Added cells are absent.
void fill_up(const std::vector<std::pair<Eigen::Index, Eigen::Index>>& sizes, HeatMap& map) {
  Eigen::Index rows = 0, columns = 0;
  for (const auto& [own_rows, own_columns] : sizes) {
    rows = std::max(rows, own_rows);
    columns = std::max(columns, own_columns);
  }
  map.x_names = numbers(columns);
  map.y_names = numbers(rows);
  const auto filled = [&](const auto& values, std::size_t panel, auto absent) {
    const auto [own_rows, own_columns] = sizes[panel];
    std::decay_t<decltype(values)> all(static_cast<std::size_t>(rows * columns), absent);
    for (Eigen::Index y = 0; y < own_rows; ++y)
      for (Eigen::Index x = 0; x < own_columns; ++x)
        all[static_cast<std::size_t>(y * columns + x)] =
            values[static_cast<std::size_t>(y * own_columns + x)];
    return all;
  };
  for (std::size_t p = 0; p < map.panels.size(); ++p) {
    HeatMapPanel& panel = map.panels[p];
    panel.values = filled(panel.values, p, std::optional<double>());
    for (std::vector<double>& frame : panel.frames)
      frame = filled(frame, p, std::numeric_limits<double>::quiet_NaN());
  }
}

HeatMap build_cluster_map(const ClusterMapOptions& options, const FigureSource& source) {
  const std::vector<std::string> arms = own_shown_arms(options.arms, source.table);
  const DisplayNames display(source.run);
  const bool is_routing = options.value == MapValue::routing;
  HeatMap map;
  map.compact = true;
  map.id = options.id;
  map.title =
      figure_title(options, source, is_routing ? "routing of each cluster" : "router rows and clusters");
  map.x_label = options.x_label.value_or("expert");
  map.y_label = options.y_label.value_or("cluster, by its expert");
  map.low = is_routing ? 0 : -1;
  std::size_t left_out = 0;
  std::vector<const ResultRow*> shown;
  std::vector<std::optional<int>> layers;
  std::vector<std::pair<Eigen::Index, Eigen::Index>> sizes;  // numbers of clusters and experts
  for (const std::string& arm : arms) {
    const ResultRow* const row = shown_row(source.table, arm, options.where);
    if (row == nullptr) {
      ++left_out;
      continue;
    }
    shown.push_back(row);
    // Only the router of the first layer reads the inputs.
    RoutedLayer chosen = options;
    if (!is_routing) chosen.layer = 0;
    layers.push_back(shown_layer(chosen, source, row->cell, "test_probs"));
    const int layer = layers.back().value_or(0);
    const auto file_of = [&](const char* name) { return source.array(row->cell, name, layer); };
    const SavedRows rows = saved_rows(source, row->cell, layer, !is_routing);
    if (rows.labels.empty()) {
      throw UserError(
          "figures." + map.id,
          fmt::format("arm '{}' has {} labels for {} rows, needs one for each", arm,
                      read_cluster_labels(file_of("test_labels")).size(), rows.probabilities.rows()));
    }
    const Matrix values = is_routing ? cluster_means(rows.probabilities.values(), rows.labels)
                                     : router_cosines(arm, rows.inputs.values(), rows.labels,
                                                      file_of("router_weight"), "figures." + map.id);
    sizes.emplace_back(values.rows(), values.cols());
    HeatMapPanel panel{display.arm(arm), {}, {}};
    const std::vector<Eigen::Index> order = staircase(values);
    for (const Eigen::Index c : order) {
      for (Eigen::Index e = 0; e < values.cols(); ++e) panel.values.emplace_back(values(c, e));
    }
    panel.row_notes = cluster_notes(rows.probabilities, rows.labels, order);
    if (is_routing) add_frames(file_of("recorded_steps"), file_of("cluster_routing_steps"), order, panel);
    map.panels.push_back(std::move(panel));
  }
  fill_up(sizes, map);
  map.caption = scenario_sentences(map.title, source);
  map.value_label = is_routing ? "mean routing" : "cosine";
  map.caption += is_routing ? "Mean routing of the test rows of each cluster"
                            : "Cosine of each expert's row of the router with each cluster's mean";
  map.caption +=
      layers_text(layers, shown, display) + ", first seed; clusters in the order of their first expert.";
  if (std::any_of(sizes.begin(), sizes.end(), [&](const auto& size) { return size != sizes.front(); }))
    map.caption += " Grey: what a panel does not have, where others have more clusters or experts.";
  map.caption += shown_points_text(source.table, shown, options.where, display);
  if (left_out > 0) map.caption += fmt::format(" Panels left out, no cell done: {}.", left_out);
  map.caption += source.footnote;
  return map;
}

}  // namespace

FigureKind cluster_map_kind() {
  return figure_kind(
      "cluster_map",
      "clusters against experts for each arm, of its first seed (needs \"save\": [\"routing\"])",
      check_cluster_map, build_cluster_map);
}

namespace {

/// An expert is dead if it serves less than this share of its fair part, 1/E.
constexpr double kDeadShare = 0.1;
constexpr std::size_t kMostShownSteps = 40;

/// A panel shows the first finished seed of an arm at the last sweep point of `where`. Rows are experts, and
/// columns are at most 40 recorded steps. A map cell is the expert's share of the test rows; it is absent if
/// the expert is dead. In a stack it shows one layer. Needs "save": ["routing_steps"].
struct LoadMapOptions : FigureCommon, RoutedLayer, AxisLabels {
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    RoutedLayer::bind(fields);
    AxisLabels::bind(fields);
  }
};

void check_load_map(const FigureReferences& references, const LoadMapOptions& options,
                    const std::string& path) {
  check_saved_arrays(references, options, "routing_steps", path);
  check_layer(options, references, options, path);
}

/// The loads (T, E) of an arm at its recorded steps.
struct RecordedLoads {
  std::string name;
  std::vector<int> steps;
  RowArray loads;

  /// The last record at or before the step. Unset before the first and after the last record.
  std::optional<Eigen::Index> record_at(int step) const {
    if (steps.empty() || step < steps.front() || step > steps.back()) return std::nullopt;
    return std::upper_bound(steps.begin(), steps.end(), step) - steps.begin() - 1;
  }
};

/// At most kMostShownSteps of the recorded steps of all arms, evenly spaced, including the last.
std::vector<int> shown_columns(const std::vector<RecordedLoads>& arms) {
  std::set<int> all;
  for (const RecordedLoads& arm : arms) all.insert(arm.steps.begin(), arm.steps.end());
  const std::vector<int> steps(all.begin(), all.end());
  const std::size_t stride = (steps.size() + kMostShownSteps - 1) / kMostShownSteps;
  std::vector<int> shown;
  for (std::size_t t = steps.empty() ? 0 : (steps.size() - 1) % stride; t < steps.size(); t += stride)
    shown.push_back(steps[t]);
  return shown;
}

/// The loads at these steps, extended to the largest number of experts. Updates the overall maximum `high`.
HeatMapPanel panel_of(const RecordedLoads& arm, const std::vector<int>& steps, Eigen::Index experts,
                      double& high) {
  HeatMapPanel panel{arm.name, {}};
  for (Eigen::Index e = 0; e < experts; ++e)
    for (const int step : steps) {
      const std::optional<Eigen::Index> record = arm.record_at(step);
      panel.values.emplace_back();
      if (!record || e >= arm.loads.width()) continue;
      const double load = arm.loads.at(*record, e);
      high = std::max(high, load);
      if (load * static_cast<double>(arm.loads.width()) >= kDeadShare) panel.values.back() = load;
    }
  return panel;
}

HeatMap build_load_map(const LoadMapOptions& options, const FigureSource& source) {
  const DisplayNames display(source.run);
  HeatMap map;
  map.compact = true;
  map.id = options.id;
  map.title = figure_title(options, source, "load of the experts over training");
  map.x_label = options.x_label.value_or(display.axis("step"));
  map.y_label = options.y_label.value_or("expert");
  map.value_label = "share of the rows";
  map.high = 0;
  std::size_t left_out = 0;
  std::vector<const ResultRow*> shown;
  std::vector<std::optional<int>> layers;
  std::vector<RecordedLoads> arms;
  Eigen::Index experts = 0;
  for (const std::string& arm : own_shown_arms(options.arms, source.table)) {
    const ResultRow* const row = shown_row(source.table, arm, options.where);
    if (row == nullptr) {
      ++left_out;
      continue;
    }
    shown.push_back(row);
    layers.push_back(shown_layer(options, source, row->cell, "expert_load_steps"));
    const int layer = layers.back().value_or(0);
    arms.push_back({display.arm(arm), read_cluster_labels(source.array(row->cell, "recorded_steps", layer)),
                    read_rows(source.array(row->cell, "expert_load_steps", layer))});
    if (arms.back().steps.empty() ||
        arms.back().loads.rows() != static_cast<std::int64_t>(arms.back().steps.size()))
      throw UserError("figures." + map.id, "arm '" + arm + "' has other numbers of steps and of loads");
    experts = std::max<Eigen::Index>(experts, arms.back().loads.width());
  }
  const std::vector<int> steps = shown_columns(arms);
  for (const int step : steps) map.x_names.push_back(std::to_string(step));
  for (Eigen::Index e = 0; e < experts; ++e) map.y_names.push_back(std::to_string(e));
  bool is_uneven = false;
  for (const RecordedLoads& arm : arms) {
    map.panels.push_back(panel_of(arm, steps, experts, map.high));
    is_uneven = is_uneven || arm.loads.width() != experts || arm.steps.back() != steps.back();
  }
  if (map.high <= 0) map.high = 1;
  map.caption = scenario_sentences(map.title, source) + "Share of the test rows that each expert gets" +
                layers_text(layers, shown, display) +
                " at the recorded steps, first seed; grey: dead, below a tenth of a fair share" +
                (is_uneven ? ", or not there, where others have more experts or steps." : ".") +
                shown_points_text(source.table, shown, options.where, display);
  if (left_out > 0) map.caption += fmt::format(" Panels left out, no cell done: {}.", left_out);
  map.caption += source.footnote;
  return map;
}

}  // namespace

FigureKind load_map_kind() {
  return figure_kind("load_map",
                     "each expert's load over training, for each arm's first seed. Dead experts are grey "
                     "(needs \"save\": [\"routing_steps\"])",
                     check_load_map, build_load_map);
}

}  // namespace moelab
