#pragma once

/// A user's arrays as routed rows: what `moelab analyze` measures.

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/metrics/layer_rows.h"
#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/sparsity.h"
#include "app/cli/analyze.h"
#include "app/dump/layer_routing.h"
#include "sim/base/random.h"
#include "sim/data/npy.h"

namespace moelab {

/// The opened arrays of `analyze`, whose shapes fit each other.
struct ArrayFiles {
  RouterDump routing;
  std::optional<NpyReader> inputs, embeddings, expert_outputs;  ///< of one layer's rows
  std::optional<Matrix> router;                                 ///< (E, d)
  int neighbours = 10;
  const std::atomic<bool>* stop = nullptr;

  /// Throws AnalysisStopped once `stop` is true. Every block of rows asks.
  void check_stop() const {
    if (stop && *stop) throw AnalysisStopped();
  }

  /// Rows that count.
  std::int64_t rows() const { return routing.rows->kept; }
  /// Where distances are taken: embeddings, or else inputs; null when neither is given.
  const NpyReader* space() const;
  GivenArrays given(const LayerRouting& layer) const;
};

/// Opens the files and checks their shapes. Throws UserError at the option ("--labels") with the shape found,
/// the shape needed and the shape of --probs.
ArrayFiles open_arrays(const AnalyzedArrays& arrays);

/// Sums over the rows of a layer that are taken in the pass of its ArrayRows.
class RowSums {
 public:
  virtual ~RowSums() = default;
  virtual void add(const RoutedBlock& block) = 0;
  virtual std::optional<double> co_activation() const = 0;
};

/// The rows of one record: the routing that is analysed, or an earlier one. Reads the arrays in blocks. The
/// first pass over the rows counts what follows the chosen experts, so that most metrics need no other.
/// Memory is O(n) for experts and labels. Where a later pass is to come, probabilities are kept if they take
/// at most half a gigabyte.
class ArrayRows final : public LayerRows {
 public:
  /// `routing` is a layer of `files`, now or earlier. The first pass adds all rows to `sums`, unless it is
  /// null. All references outlive the object.
  ArrayRows(const ArrayFiles& files, const LayerRouting& routing, std::int64_t step, LayerRows* before,
            RowSums* sums = nullptr);

  /// Makes the first pass if no metric has made it.
  void look();
  std::int64_t step() const override { return step_; }
  int layer() const override { return 0; }
  int experts() const override { return files_.routing.experts; }
  Eigen::Index rows() const override { return files_.rows(); }
  /// The earlier record stands for the layer before, too.
  LayerRows* before() override { return before_; }

  void visit(const std::function<void(const RowBlock&)>& visit) override;
  std::span<const int> serving() override;
  std::span<const unsigned char> selected() override;
  std::vector<std::int64_t> loads() override;
  std::optional<double> co_activation() override;
  std::vector<int> likeliest(int k) override;

  const std::vector<ClusterLabels>& clusters() override { return clusters_; }
  bool has_points(Space space) const override { return space == Space::inputs && files_.space(); }
  void visit_points(Space space, const PointBlock& visit) override;
  /// All rows; of more than kMaxAllRows rows, `most` random ones.
  std::vector<std::int64_t> compared_rows(std::int64_t most) override;

  Matrix router_weight() override { return files_.router.value_or(Matrix()); }
  bool has_shuffles() const override { return files_.router && files_.inputs; }
  Eigen::Ref<const Matrix> shuffled(const RowBlock& block, int s) override;
  void visit_expert_outputs(const PointBlock& visit) override;

  /// How many permutations of the router were evaluated.
  int shuffles() const { return shuffles_; }
  /// The largest |softmax(W x) − r(x)| of the rows whose routers were shuffled.
  double router_difference() const { return router_difference_; }

 private:
  void look(const std::function<void(const RowBlock&)>& visit);
  std::int64_t tokens() const { return LayerRouting::positions(routing_.pieces.front()); }
  /// Calls visit(first sample, samples) for blocks of an array beside the routing.
  template <class Visit>
  void visit_samples(const NpyReader& array, const Visit& visit) const;

  const ArrayFiles& files_;
  const LayerRouting& routing_;
  std::int64_t step_;
  LayerRows* before_;
  RowSums* sums_;
  bool has_looked_ = false;
  std::vector<ClusterLabels> clusters_;
  Matrix probabilities_;  // (n, E), where they are kept
  struct KeptBlock {
    Eigen::Index first, rows;
    bool is_last;
  };
  std::vector<KeptBlock> blocks_;    // of the kept probabilities
  std::vector<std::int64_t> loads_;  // (E)
  std::vector<int> serving_;         // (n), or empty
  std::vector<int> sets_;            // (n · K) where an earlier record is compared, or empty
  std::vector<unsigned char> selected_;
  std::optional<ShuffledRouter> router_;
  Matrix inputs_;  // of the block that begins at inputs_first_
  Eigen::Index inputs_first_ = -1;
  int shuffles_ = 0;
  double router_difference_ = 0;
};

}  // namespace moelab
