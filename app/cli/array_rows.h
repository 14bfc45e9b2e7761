#pragma once

/// A user's arrays as routed rows: what `moelab analyze` measures.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/metrics/layer_rows.h"
#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/sparsity.h"
#include "app/cli/analyze.h"
#include "sim/base/random.h"
#include "sim/data/npy.h"

namespace moelab {

/// The opened arrays of `analyze`, whose shapes fit each other.
struct ArrayFiles {
  NpyReader probs;
  std::optional<NpyReader> labels, inputs, embeddings, expert_outputs, previous_probs, previous_assignments;
  std::optional<Matrix> router;  ///< (E, d)
  int experts = 0;               ///< E
  int tokens = 1;                ///< s, rows of one sample
  int top_k = 1;
  int neighbours = 10;

  /// Rows of all arrays, n · s.
  std::int64_t rows() const { return probs.rows() * tokens; }
  /// Where distances are taken: embeddings, or else inputs; null when neither is given.
  const NpyReader* space() const;
  GivenArrays given() const;
};

/// Opens the files and checks their shapes. Throws UserError at the option ("--labels") with the shape found,
/// the shape needed and the shape of --probs.
ArrayFiles open_arrays(const AnalyzedArrays& arrays);

/// The rows of one record: the routing that is analysed, or an earlier one. Reads the arrays in blocks.
/// Memory is O(n) for experts and labels; probabilities are kept where they take at most half a gigabyte, and
/// are read again otherwise.
class ArrayRows final : public LayerRows {
 public:
  /// `routing` holds probabilities, logits or assignments of `files`. All references outlive the object.
  ArrayRows(const ArrayFiles& files, const NpyReader& routing, std::int64_t step, LayerRows* before);

  std::int64_t step() const override { return step_; }
  int layer() const override { return 0; }
  int experts() const override { return files_.experts; }
  Eigen::Index rows() const override { return files_.rows(); }
  /// The earlier record stands for the layer before, too.
  LayerRows* before() override { return before_; }

  void visit(const std::function<void(const RowBlock&)>& visit) override;
  std::span<const int> serving() override;
  std::span<const unsigned char> selected() override;
  std::vector<std::int64_t> loads() override;
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
  bool has_assignments() const {
    return files_.previous_assignments && &routing_ == &*files_.previous_assignments;
  }
  /// Calls visit(first sample, samples) for the blocks of the routing.
  template <class Visit>
  void visit_samples(const NpyReader& array, const Visit& visit) const;
  /// Probabilities of samples first … first + count − 1, (count · s, E): the softmax of logits. Throws
  /// UserError for entries that are not finite, except logits of −∞ next to others, and for probabilities
  /// that are negative or do not sum to one.
  Matrix read_probabilities(std::int64_t first, std::int64_t count) const;

  const ArrayFiles& files_;
  const NpyReader& routing_;
  std::int64_t step_;
  LayerRows* before_;
  std::vector<ClusterLabels> clusters_;
  Matrix probabilities_;      // (n, E), where they are kept
  bool is_kept_ = false;      // all of them
  std::vector<int> serving_;  // (n), or empty
  std::vector<int> sets_;     // (n · set_size_), or empty
  int set_size_ = 0;
  std::vector<unsigned char> selected_;
  std::optional<ShuffledRouter> router_;
  Matrix inputs_;  // of the block that begins at inputs_first_
  Eigen::Index inputs_first_ = -1;
  int shuffles_ = 0;
  double router_difference_ = 0;
};

}  // namespace moelab
