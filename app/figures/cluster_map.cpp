#include "app/figures/cluster_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "app/figures/display_names.h"
#include "app/figures/saved_arrays.h"
#include "app/figures/shown_arms.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// What the cells of a cluster map hold.
constexpr const char* kMeanRouting = "routing";       // E[r_e(x) | c]
constexpr const char* kRouterCosine = "router_rows";  // cos(w_e, E[x | c])

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

/// The rows by the column of their largest entry, of equal ones the larger entry first.
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

/// For each cluster, in `order` of those in which they are first seen, its first rows.
std::vector<std::string> cluster_notes(const Matrix& probabilities, const std::vector<int>& labels,
                                       const std::vector<Eigen::Index>& order) {
  constexpr std::size_t kShownRows = 10;
  std::vector<int> clusters;  // by their first rows
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
      Eigen::Index expert = 0;
      const double most = probabilities.row(own[i]).maxCoeff(&expert);
      text += fmt::format("\nrow {}: expert {} ({:.2g})", own[i], expert, most);
    }
    notes.push_back(text + (own.size() > kShownRows ? "\n…" : ""));
  }
  return notes;
}

/// The mean routing at the recorded steps, where "routing_steps" was saved.
void add_frames(const std::filesystem::path& steps_file, const std::filesystem::path& routing_file,
                const std::vector<Eigen::Index>& order, HeatMapPanel& panel, HeatMap& map) {
  if (!std::filesystem::exists(steps_file) || !std::filesystem::exists(routing_file)) return;
  const std::vector<int> steps = read_cluster_labels(steps_file);
  const Matrix routing = read_rows(routing_file);  // (T · C, E)
  const auto clusters = static_cast<Eigen::Index>(order.size());
  if (routing.rows() != static_cast<Eigen::Index>(steps.size()) * clusters) return;
  map.frame_names.clear();
  for (const std::size_t t : shown_steps(steps.size())) {
    std::vector<double> frame;
    for (const Eigen::Index c : order)
      for (Eigen::Index e = 0; e < routing.cols(); ++e)
        frame.push_back(routing(static_cast<Eigen::Index>(t) * clusters + c, e));
    panel.frames.push_back(std::move(frame));
    map.frame_names.push_back(fmt::format("step {}", steps[t]));
  }
}

std::vector<std::string> numbers(Eigen::Index count) {
  std::vector<std::string> names;
  for (Eigen::Index i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

void check_cluster_map(const References& references, const Json& figure, const std::string& path) {
  check_saved_arrays(references, figure, "routing", path);
  if (figure.at("value") == kRouterCosine) check_saved_arrays(references, figure, "weights", path);
}

Drawing draw_cluster_map(const Json& figure, const FigureSource& source) {
  return drawing_of(build_cluster_map(figure, source));
}

}  // namespace

FigureKind cluster_map_kind() {
  return {"cluster_map",
          "clusters against experts for each arm, of its first seed (needs \"save\": [\"routing\"])",
          {{"value", Shape::choice({kMeanRouting, kRouterCosine}),
            "routing, E[r_e(x) | c], or router_rows, cos(w_e, E[x | c]) (needs \"weights\" saved, too)",
            kMeanRouting},
           {"x_label", Shape::text(), "label of the x axis", kOptional},
           {"y_label", Shape::text(), "label of the y axis", kOptional}},
          check_cluster_map,
          draw_cluster_map};
}

HeatMap build_cluster_map(const Json& description, const FigureSource& source) {
  const Json where = description.value("where", Json::object());
  const std::vector<std::string> arms = own_shown_arms(description, source.table);
  const DisplayNames display(source.plan);
  const bool is_routing = description.value("value", kMeanRouting) == kMeanRouting;
  HeatMap map;
  map.compact = true;
  map.id = description.at("id");
  map.title =
      figure_title(description, source, is_routing ? "routing of each cluster" : "router rows and clusters");
  map.x_label = description.value("x_label", "expert");
  map.y_label = description.value("y_label", "cluster, by its expert");
  map.low = is_routing ? 0 : -1;
  std::size_t left_out = 0;
  std::vector<const ResultRow*> shown;
  for (const std::string& arm : arms) {
    const ResultRow* const row = shown_row(source.table, arm, where);
    if (row == nullptr) {
      ++left_out;
      continue;
    }
    shown.push_back(row);
    const auto file_of = [&](const char* name) { return source.array(row->cell, name); };
    const std::vector<int> labels = read_cluster_labels(file_of("test_labels"));
    const auto saved = [&](const char* name) { return read_rows(file_of(name)); };
    const Matrix values = is_routing
                              ? cluster_means(saved("test_probs"), labels)
                              : cosines(cluster_means(saved("test_inputs"), labels), saved("router_weight"));
    if (!map.panels.empty() && values.size() != static_cast<Eigen::Index>(map.panels[0].values.size()))
      throw UserError("figures." + map.id, "arm '" + arm + "' has another number of clusters or experts");
    HeatMapPanel panel{display.arm(arm), {}, {}};
    const std::vector<Eigen::Index> order = staircase(values);
    for (const Eigen::Index c : order) {
      for (Eigen::Index e = 0; e < values.cols(); ++e) panel.values.emplace_back(values(c, e));
    }
    panel.row_notes = cluster_notes(saved("test_probs"), labels, order);
    if (is_routing)
      add_frames(file_of("recorded_steps"), file_of("cluster_routing_steps"), order, panel, map);
    map.x_names = numbers(values.cols());
    map.y_names = numbers(values.rows());
    map.panels.push_back(std::move(panel));
  }
  map.caption = scenario_sentences(map.title, source);
  map.value_label = is_routing ? "mean routing" : "cosine";
  map.caption += is_routing ? "Mean routing of the test rows of each cluster"
                            : "Cosine of each expert's row of the router with each cluster's mean";
  map.caption += ", first seed; clusters in the order of their first expert.";
  map.caption += shown_points_text(source.table, shown, where, display);
  if (left_out > 0) map.caption += fmt::format(" Panels left out, no cell done: {}.", left_out);
  map.caption += source.footnote;
  return map;
}

}  // namespace moelab
