#pragma once

/// The rows that a layer routed, in double: what every metric of routing is taken of. A trained model fills
/// the view with its test rows (ModelRows, measured_data.h); `moelab analyze` fills it with a user's arrays
/// (ArrayRows, app/cli/array_rows.h).

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "sim/base/arrays.h"
#include "sim/data/layout.h"

namespace moelab {

/// Labels that assign rows to clusters. With several labels to a row, the row counts in each of its clusters.
struct ClusterLabels {
  std::string suffix;                    ///< ends the metrics' names
  std::vector<std::vector<int>> labels;  ///< each (n)
};

/// The ways to cut rows into clusters. A row with one label is in the label's cluster; the label of a token
/// is its component. For samples made of several parts there are three ways. Without a suffix, a cluster is a
/// set of parts. With `_per_atom`, a cluster is one part, and each sample is in the clusters of all its
/// parts. With `_overall`, one cluster holds all samples.
std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels);

/// Consecutive rows with their routing probabilities.
struct RowBlock {
  Eigen::Index first = 0;    ///< the block's first row
  MatrixView probabilities;  ///< r (rows of the block, E)
  bool is_last = true;
  std::span<const double> entropies = {};  ///< H(r) of each row, where known
};

/// The part of a field of all rows, (n), that belongs to a block.
template <class Value>
std::span<const Value> part_of(std::span<const Value> all, const RowBlock& block) {
  return all.subspan(size(block.first), size(block.probabilities.rows()));
}

/// The rows that one layer routed at one recorded step. A field that is absent is empty; metrics that need it
/// do not apply (Need, metric_groups.h).
class LayerRows {
 public:
  virtual ~LayerRows() = default;

  virtual std::int64_t step() const = 0;
  virtual int layer() const = 0;
  virtual int experts() const = 0;        ///< E
  virtual Eigen::Index rows() const = 0;  ///< n, a token a row
  /// The layer before; null for the first.
  virtual LayerRows* before() { return nullptr; }

  // Routing.

  /// Visits the probabilities of all rows, block by block and in order; no block where they are unknown. Sums
  /// over rows are added up block by block, so that they do not depend on how the rows are held. A model's
  /// rows are one block.
  virtual void visit(const std::function<void(const RowBlock&)>& visit) = 0;
  /// r before tokens mixed it (n, E); absent where tokens do not mix.
  virtual MatrixView base_probabilities() { return {nullptr, 0, 0}; }
  /// The serving expert of each row (n), −1 where no expert serves it.
  virtual std::span<const int> serving() = 0;
  /// Whether each expert is selected (n · E), 1 or 0.
  virtual std::span<const unsigned char> selected() = 0;
  /// The rows to which each expert is selected (E). Under a gating that activates every expert, the argmax
  /// expert of each row counts.
  virtual std::vector<std::int64_t> loads() = 0;
  /// co_activation() of the selected experts (routing.h).
  virtual std::optional<double> co_activation();
  /// The k experts of largest probability of each row, (n · k), as topk_assignment() orders them.
  virtual std::vector<int> likeliest(int k);

  // Data of the rows.

  /// Absent where rows have no labels.
  virtual const std::vector<ClusterLabels>& clusters() = 0;
  /// The id of each token (n), where rows are ids.
  virtual std::vector<int> token_ids() { return {}; }

  /// Where distances between rows are taken: inputs or embeddings, or what the layer reads of the rows.
  enum class Space { inputs, layer };
  virtual bool has_points(Space space) const = 0;
  /// Visits the points of all rows, (rows of a block, d), with the first row of each block, in order.
  using PointBlock = std::function<void(Eigen::Index first, const Eigen::Ref<const Matrix>& points)>;
  virtual void visit_points(Space space, const PointBlock& visit) = 0;
  /// The served rows that are compared with all others, ascending. `most` bounds the cost.
  virtual std::vector<std::int64_t> compared_rows(std::int64_t most) = 0;

  // The router and the experts.

  /// W (E, d) of a linear router.
  virtual Matrix router_weight() { return {}; }
  /// The weights of features (E, d) of an adaptive clustering router.
  virtual MatrixView feature_weights() { return {nullptr, 0, 0}; }
  /// Whether the router can be evaluated with permuted columns.
  virtual bool has_shuffles() const = 0;
  /// r of the block's rows by the router with permuted columns, until the next call. The permutation of
  /// shuffle s is drawn from the stream (shuffles, s).
  virtual Eigen::Ref<const Matrix> shuffled(const RowBlock& block, int s) = 0;
  /// Visits the outputs of every expert on all rows, expert after expert: (rows of a block, E · w) with w ≥
  /// o. Columns beyond the first o of an expert are padding.
  virtual void visit_expert_outputs(const PointBlock& visit) = 0;
  /// g = ∂(loss of a row)/∂f (n, o), f the model's output under the training gating.
  virtual Matrix error_gradients() { return {}; }
};

/// The metrics of a layer, by their names without the layer's ending.
struct LayerMetrics {
  MetricValues values;
  /// Metrics that are the mean of a value of each compared row. The values allow an interval.
  std::map<std::string, std::vector<double>> of_rows;
};

}  // namespace moelab
