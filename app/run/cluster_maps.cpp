#include "app/run/cluster_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/metrics/sparsity.h"
#include "app/run/saved_arrays.h"
#include "app/scenario/figure_values.h"
#include "sim/base/error.h"
#include "sim/data/npy/npy_reader.h"

namespace moelab {
namespace {

std::vector<int> labels_of(const std::filesystem::path& file) {
  const NpyReader array(file, file.string());
  return read_labels(array, 0, array.rows(), kLabelLimit);
}

/// E[row | cluster] for clusters in the order in which they are first seen.
Matrix cluster_means(const Matrix& rows, const std::vector<int>& labels) {
  return ClusterRouting(rows, labels).mean_routing();
}

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

std::vector<std::string> numbers(Eigen::Index count) {
  std::vector<std::string> names;
  for (Eigen::Index i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

HeatMap build_cluster_map(const Json& description, const RunResults& results,
                          const std::filesystem::path& directory) {
  const Json where = description.value("where", Json::object());
  const std::vector<std::string> arms = description.contains("arms")
                                            ? description.at("arms").get<std::vector<std::string>>()
                                            : results.table.arms;
  const bool is_routing = description.value("value", kMeanRouting) == kMeanRouting;
  HeatMap map;
  map.compact = true;
  map.id = description.at("id");
  map.title = description.value("title", results.plan.value("title", ""));
  map.x_label = description.value("x_label", "expert");
  map.y_label = description.value("y_label", "cluster");
  map.low = is_routing ? 0 : -1;
  std::size_t left_out = 0;
  for (const std::string& arm : arms) {
    const ResultRow* const row = shown_row(results.table, arm, where);
    if (row == nullptr) {
      ++left_out;
      continue;
    }
    const auto file_of = [&](const char* name) { return saved_file(results, directory, row->cell, name); };
    const auto saved = [&](const char* name) { return read_rows(file_of(name)); };
    const std::vector<int> labels = labels_of(file_of("test_labels"));
    const Matrix values = is_routing
                              ? cluster_means(saved("test_probs"), labels)
                              : cosines(cluster_means(saved("test_inputs"), labels), saved("router_weight"));
    if (!map.panels.empty() && values.size() != static_cast<Eigen::Index>(map.panels[0].values.size()))
      throw UserError("figures." + map.id, "arm '" + arm + "' has another number of clusters or experts");
    HeatMapPanel panel{arm, {}};
    for (const Eigen::Index c : staircase(values)) {
      for (Eigen::Index e = 0; e < values.cols(); ++e) panel.values.emplace_back(values(c, e));
    }
    map.x_names = numbers(values.cols());
    map.y_names = numbers(values.rows());
    map.panels.push_back(std::move(panel));
  }
  if (const std::string source = results.plan.value("source", ""); !source.empty())
    map.caption = source + ". ";
  map.caption += is_routing ? "Mean routing of the test rows of each cluster"
                            : "Cosine of each expert's row of the router with each cluster's mean";
  map.caption += ", first seed; clusters in the order of their first expert.";
  if (left_out > 0) map.caption += fmt::format(" Panels left out, no cell done: {}.", left_out);
  return map;
}

}  // namespace moelab
