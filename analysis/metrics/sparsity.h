#pragma once

/// How experts and latent clusters correspond (Dikkala et al. 2023): how few experts serve a cluster
/// ("sparsity", Figs. 2c, 3b, 4b), the baseline of a shuffled router, and which clusters have an expert of
/// their own (Theorem 2). Entropies use `probabilities`; numbers named top1 use `serving`
/// (sim/model/gating/routing.h). For sequences a row is a token, and its label is the token's component.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

/// Sums over the rows of each cluster c. The mean routing of a cluster is r̄_c = E_{x∈c} r(x) ∈ Δ^{E−1}. The
/// paper defines S = E_c H(r̄_c) but prints effective numbers of experts, exp H; both are here. Means over
/// clusters are unweighted, over the clusters that have rows. One pass over rows, in blocks; how the rows are
/// cut does not change the sums. Memory O(clusters × E).
class ClusterRouting {
 public:
  explicit ClusterRouting(Eigen::Index experts);
  ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels);
  ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
                 std::span<const int> labels);

  /// Adds rows r(x) (n, E) with their serving experts (n), each 0 … E − 1 or −1 for none, and labels (n), any
  /// integers that name clusters. An empty `serving` means that no row is served: entropies do not need it.
  /// Throws InvalidOption when the shapes do not fit.
  void add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
           std::span<const int> labels);
  /// The same with the argmax expert serving each row, the lowest index among equals.
  void add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels);

  std::int64_t rows() const { return rows_; }
  std::int64_t served_rows() const { return served_rows_; }
  /// The clusters that have rows.
  Eigen::Index clusters() const { return static_cast<Eigen::Index>(clusters_.size()); }
  /// r̄_c (clusters, E), in the order in which the clusters first occurred.
  Matrix mean_routing() const;

  /// E_c[H(r̄_c)] in nats, over all rows. This and the metrics below throw InvalidOption without rows. Numbers
  /// named top1 are taken over served rows; they are none without served rows.
  double cluster_entropy() const;
  /// E_c[exp H(r̄_c)] ∈ [1, E].
  double effective_experts() const;
  /// Σ_e max_c n_ec / n, with n_ec the rows of cluster c that expert e serves and n their sum.
  std::optional<double> top1_cluster_purity() const;
  /// E_c[max_e n_ec / n_c]. A router that sends every row to one expert scores 1: read the purity, too.
  std::optional<double> top1_cluster_concentration() const;
  /// n_ce (clusters with served rows, E): rows of each cluster by serving expert.
  ContingencyTable top1_table() const;

 private:
  struct Cluster {
    std::int64_t rows = 0;
    std::int64_t served_rows = 0;
    Vector probability_sum;                    // (E)
    std::vector<std::int64_t> serving_counts;  // (E)
  };
  Cluster& cluster_of(int label);
  Vector cluster_entropies() const;
  void require_columns(const Eigen::Ref<const Matrix>& probabilities) const;
  void require_rows() const;

  Eigen::Index experts_;
  std::int64_t rows_ = 0, served_rows_ = 0;
  std::vector<Cluster> clusters_;
  std::unordered_map<int, std::size_t> index_of_label_;
};

/// A linear router W (E, d) and copies of it with permuted columns, the same permutation for every expert:
/// the baseline of sparsity. The permutation of shuffle s is drawn from the stream (shuffles, s) of `seeds`,
/// as in a run.
class ShuffledRouter {
 public:
  ShuffledRouter(const Eigen::Ref<const Matrix>& weight, const Seeds& seeds);

  /// Rows of probabilities (n, E), until the next call.
  using Probabilities = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  /// softmax(W x) for each row of inputs (n, d).
  Probabilities route(const Matrix& inputs) { return route(weight_, inputs); }
  /// The same with the columns of shuffle s ≥ 0.
  Probabilities route_shuffled(int s, const Matrix& inputs);

 private:
  AlignedVector<double> with_columns(const std::vector<int>& columns) const;
  Probabilities route(const AlignedVector<double>& transposed, const Matrix& inputs);

  Matrix given_;
  Seeds seeds_;
  int experts_, width_, stride_;
  AlignedVector<double> weight_;                 // W^T (d, stride)
  std::vector<AlignedVector<double>> shuffled_;  // of the shuffles that were asked for
  AlignedVector<double> probabilities_;
};

/// Returns for each cluster whether it has an expert of its own. Let n_ce be the rows of cluster c that
/// expert e serves, and e(c) = argmax_e n_ce the expert that serves most rows of c. Cluster c has its own
/// expert if c = argmax_c' n_c'e(c). Otherwise c is merged into another cluster. The lowest number wins ties.
/// `clusters` and `serving` have n entries, −1 for no expert. Clusters without a served row are left out.
/// Throws InvalidOption if the lengths differ.
std::map<int, bool> own_experts(std::span<const int> clusters, std::span<const int> serving);

/// Coupon collector: Σ_c (1 − p_c)^E, the expected number of clusters without a row among E independent rows,
/// from shares p (k) with sum 1.
double expected_unsampled_clusters(const Eigen::Ref<const Vector>& shares, double experts);

}  // namespace moelab
