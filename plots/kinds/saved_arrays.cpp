#include "plots/kinds/saved_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/sparsity.h"
#include "sim/base/error.h"
#include "sim/data/npy.h"

namespace moelab {

void RoutedLayer::bind(Fields& fields) {
  fields.add("layer", layer, between(0, 63), "number of the mixture layer, from 0 (default: the last one)");
}

std::optional<int> shown_layer(const RoutedLayer& chosen, const FigureSource& source, const std::string& cell,
                               const std::string& array) {
  const auto has_layer = [&](int layer) { return std::filesystem::exists(source.array(cell, array, layer)); };
  // All numbers give the same file for a single layer.
  if (source.array(cell, array, 0) == source.array(cell, array, 1) || !has_layer(0)) return std::nullopt;
  if (chosen.layer) return chosen.layer;
  int last = 0;
  while (has_layer(last + 1)) ++last;
  return last;
}

std::string layers_text(const std::vector<std::optional<int>>& layers,
                        const std::vector<const ResultRow*>& shown, const DisplayNames& names) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i]) parts.push_back(fmt::format("{} ({})", *layers[i], names.arm(shown[i]->arm)));
  if (parts.empty()) return "";
  if (std::equal(layers.begin() + 1, layers.end(), layers.begin()))
    return fmt::format(" in layer {}", *layers.front());
  return fmt::format(" in layer {}", fmt::join(parts, ", "));
}

void check_layer(const RoutedLayer& chosen, const FigureReferences& references, const FigureCommon& figure,
                 const std::string& path) {
  if (!chosen.layer) return;
  references.check_saved_cells(own_shown_arms(figure.arms, references.table()), figure.where,
                               [&](const std::string& arm, const MetricSubject& cell) {
                                 const int layers = cell.network().layers();
                                 if (*chosen.layer < layers) return;
                                 throw UserError(
                                     path + ".layer",
                                     fmt::format("got {}, but arm '{}' has {}; needs 0 to {}", *chosen.layer,
                                                 arm, counted(layers, "mixture layer"), layers - 1));
                               });
}

const ResultRow* shown_row(const ResultTable& table, const std::string& arm, const SweepPoint& where) {
  const ResultRow* shown = nullptr;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm || row.state != "done" || !row.is_at(where)) continue;
    // Take the first seed of each later sweep point.
    if (!shown || row.point != shown->point) shown = &row;
  }
  return shown;
}

std::string shown_points_text(const ResultTable& table, const std::vector<const ResultRow*>& shown,
                              const SweepPoint& where, const DisplayNames& names) {
  const SweepPoint* first = nullptr;
  bool is_settled = true;
  for (const ResultRow& row : table.rows) {
    if (!row.is_at(where)) continue;
    if (!first) first = &row.point;
    is_settled = is_settled && row.point == *first;
  }
  if (is_settled || shown.empty()) return "";
  const bool is_common = std::all_of(
      shown.begin(), shown.end(), [&](const ResultRow* row) { return row->point == shown.front()->point; });
  if (is_common) return fmt::format(" Shown: {}.", names.point(shown.front()->point));
  std::vector<std::string> parts;
  for (const ResultRow* row : shown)
    parts.push_back(fmt::format("{}: {}", names.arm(row->arm), names.point(row->point)));
  return fmt::format(" Shown: {}.", fmt::join(parts, "; "));
}

namespace {

/// Converts token ids (n, s) to rows (id, position).
RowArray token_rows(const NpyReader& ids) {
  const std::int64_t tokens = ids.shape().back();
  const Matrix values = ids.read_finite(0, ids.rows());
  Matrix rows(values.size(), 2);
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    rows(i, 0) = values(i / tokens, i % tokens);
    rows(i, 1) = static_cast<double>(i % tokens);
  }
  return {std::move(rows), tokens};
}

}  // namespace

SavedRows saved_rows(const FigureSource& source, const std::string& cell, int layer, bool with_inputs) {
  const std::filesystem::path file = source.array(cell, "test_probs", layer);
  const NpyReader probabilities(file, file.string());
  ArrayAxes axes;
  axes.add(probabilities, row_axes(probabilities, ArrayAxis::experts));
  SavedRows rows;
  rows.probabilities = RowArray::read(probabilities);
  if (with_inputs) {
    const std::filesystem::path input_file = source.array(cell, "test_inputs", layer);
    const NpyReader inputs(input_file, input_file.string());
    rows.has_ids = axes.has(ArrayAxis::tokens) && inputs.shape().size() == 2;
    axes.add(inputs, rows.has_ids ? std::vector{ArrayAxis::samples, ArrayAxis::tokens}
                                  : row_axes(inputs, ArrayAxis::width));
    rows.inputs = rows.has_ids ? token_rows(inputs) : RowArray::read(inputs);
  }
  if (const std::filesystem::path labels = source.array(cell, "test_labels", layer);
      std::filesystem::exists(labels))
    rows.labels = read_cluster_labels(labels);
  if (static_cast<std::int64_t>(rows.labels.size()) != axes.rows()) rows.labels.clear();
  return rows;
}

RowArray read_rows(const std::filesystem::path& file) {
  return RowArray::read(NpyReader(file, file.string()));
}

std::vector<int> read_cluster_labels(const std::filesystem::path& file) {
  const NpyReader array(file, file.string());
  return read_labels(array, 0, array.rows(), kLabelLimit);
}

std::vector<std::size_t> shown_steps(std::size_t count) {
  constexpr std::size_t kMostSteps = 24;
  std::vector<std::size_t> shown;
  if (count == 0) return shown;
  const std::size_t stride = (count + kMostSteps - 1) / kMostSteps;
  for (std::size_t t = (count - 1) % stride; t < count; t += stride) shown.push_back(t);
  return shown;
}

Matrix cluster_means(const Matrix& rows, const std::vector<int>& labels) {
  return ClusterRouting(rows, labels).mean_routing();
}

}  // namespace moelab
