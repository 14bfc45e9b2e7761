#pragma once

/// The routing of one layer over the tokens that count. The file may hold logits, probabilities, scores,
/// gates or experts.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/data/npy.h"

namespace moelab {

enum class RoutingKind { probabilities, logits, scores, gates, experts, counts };

/// How a layer turns scores into K experts of E.
struct SelectionRule {
  enum class Score { softmax, sigmoid, selected };
  Score score = Score::softmax;     ///< how logits become scores
  int experts = 0, top_k = 1;       ///< E, K
  int groups = 1, kept_groups = 1;  ///< experts are chosen within the best groups
  bool groups_by_largest = false;   ///< a group's score is its largest; otherwise the sum of its two largest
};

/// Which rows of the files count. Shared by all layers.
struct KeptRows {
  std::vector<unsigned char> flags;  ///< of all rows of the files; empty where all count
  std::int64_t all = 0, kept = 0;
  bool is_kept(std::int64_t row) const { return flags.empty() || flags[static_cast<std::size_t>(row)] != 0; }
};

/// Consecutive kept rows. What a block shows stays until the next block.
struct RoutedBlock {
  Eigen::Index first = 0;    ///< the block's first row among the kept ones
  Eigen::Index rows = 0;     ///< n of the block
  MatrixView probabilities;  ///< r (n, E); empty where they are unknown
  /// What the K largest of are selected (n, E), −∞ outside the kept groups; empty for ids and without sets.
  MatrixView selection;
  std::span<const int> sets;  ///< (n · K) by falling selection score, −1 for none
  std::span<const int> next;  ///< (n) the first that is not selected, or −1; empty where ids are given
  std::span<const double> entropies;  ///< H(r) of each row; empty without sets
  bool is_last = true;
};

/// The routing of one layer.
class LayerRouting {
 public:
  RoutingKind kind = RoutingKind::probabilities;
  SelectionRule rule;
  int layer = 0;
  std::string name;               ///< "router_logits.1"
  std::vector<NpyReader> pieces;  ///< (rows, width) or (samples, positions, width): one for each batch
  std::vector<NpyReader> ids;     ///< experts beside the scores, likewise; they win
  std::shared_ptr<const KeptRows> rows;
  Vector bias;                          ///< of the selection (E); empty for none
  std::vector<int> logical;             ///< the expert of each physical id; empty where ids are experts
  std::vector<unsigned char> unserved;  ///< of all rows: dropped tokens; empty for none
  bool is_closed_by_infinity = false;   ///< gates are scores, and −∞ where an expert is not chosen
  bool is_ordered = true;               ///< whether sets come by score
  bool is_renormalised = false;         ///< rows of probabilities are divided by their sums
  double sum_tolerance = 1e-3;          ///< of sums of probabilities
  bool is_finite = false;               ///< all values that count are known to be finite
  bool is_only_layer = false;           ///< of the dump, which promises the digits of former versions

  bool has_probabilities() const;
  /// Whether the first choice of a row is known.
  bool has_first_choice() const { return is_ordered || rule.top_k == 1; }

  /// Visits all kept rows in order. Blocks end at the ends of samples. `wants_sets` computes the sets, the
  /// selection scores and the entropies, too. Throws UserError for values that are no routing.
  void visit(bool wants_sets, const std::function<void(const RoutedBlock&)>& visit) const;
  /// The experts of all kept rows (n · K).
  std::vector<int> sets() const;

  /// Reads ids of samples first … of a piece, whose first row is `row` among all rows; −1 where no expert is,
  /// and in rows that do not count. Throws UserError for ids outside 0 … E − 1.
  std::vector<int> read_ids(const NpyReader& piece, std::int64_t first, std::int64_t count,
                            std::int64_t row) const;

  /// Calls visit(piece, first sample, samples, first row of all) for the blocks of the pieces.
  static void visit_blocks(
      const std::vector<NpyReader>& pieces,
      const std::function<void(const NpyReader&, std::int64_t, std::int64_t, std::int64_t)>& visit);
  /// Rows of one sample of a piece.
  static std::int64_t positions(const NpyReader& piece);

 private:
  void check_probabilities(const NpyReader& piece, std::int64_t first, Matrix& values) const;
  void check_logits(const NpyReader& piece, std::int64_t first, const Matrix& values) const;
  void keep_chosen_alone(std::span<const int> sets, Matrix& probabilities) const;
};

}  // namespace moelab
