#include "app/figures/saved_arrays.h"

#include "analysis/metrics/sparsity.h"
#include "app/scenario/sweep_values.h"
#include "sim/data/npy/npy_reader.h"

namespace moelab {

const ResultRow* shown_row(const ResultTable& table, const std::string& arm, const Json& where) {
  const SweepPoint place = read_point(where);
  const ResultRow* shown = nullptr;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm || row.state != "done" || !row.is_at(place)) continue;
    // Of each later sweep point again the first seed.
    if (!shown || row.point != shown->point) shown = &row;
  }
  return shown;
}

Matrix read_rows(const std::filesystem::path& file) {
  const NpyReader array(file, file.string());
  Matrix values = array.read_finite(0, array.rows());
  values.resize(values.size() / array.shape().back(), array.shape().back());
  return values;
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
