#include "plots/kinds/saved_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/metrics/sparsity.h"
#include "sim/data/npy.h"

namespace moelab {

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

SavedRows saved_rows(const FigureSource& source, const std::string& cell, bool with_inputs) {
  const std::filesystem::path file = source.array(cell, "test_probs");
  const NpyReader probabilities(file, file.string());
  ArrayAxes axes;
  axes.add(probabilities, row_axes(probabilities, ArrayAxis::experts));
  SavedRows rows;
  rows.probabilities = RowArray::read(probabilities);
  if (with_inputs) {
    const std::filesystem::path input_file = source.array(cell, "test_inputs");
    const NpyReader inputs(input_file, input_file.string());
    rows.has_ids = axes.has(ArrayAxis::tokens) && inputs.shape().size() == 2;
    axes.add(inputs, rows.has_ids ? std::vector{ArrayAxis::samples, ArrayAxis::tokens}
                                  : row_axes(inputs, ArrayAxis::width));
    rows.inputs = rows.has_ids ? token_rows(inputs) : RowArray::read(inputs);
  }
  if (const std::filesystem::path labels = source.array(cell, "test_labels"); std::filesystem::exists(labels))
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
