#pragma once

/// How concentrated the routing of each latent cluster is (Dikkala et al. 2023, "sparsity", Figs. 2c, 3b,
/// 4b). Uses `probabilities` for the entropies, `serving` for what is called top-1 (vocabulary of
/// sim/model/gating/routing.h).
///
/// For cluster c the mean routing is r̄_c = E_{x∈c} r(x) ∈ Δ^{E−1}. The paper defines S = E_c H(r̄_c) but
/// prints effective numbers of experts, exp H; both are given here. Means over clusters are unweighted and
/// take clusters that have rows. For sequences a row is a token and its label the token's mixture component.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

/// H(p) = −Σ_i p_i ln p_i in nats, with 0·ln 0 = 0.
double entropy(std::span<const double> distribution);

/// One pass over rows of routing probabilities with their cluster labels; O(clusters × E) memory.
/// Blocks may be added one after the other; the same rows give the same sums however they are cut.
class ClusterRouting {
 public:
  explicit ClusterRouting(Eigen::Index experts);
  ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels);
  ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
                 std::span<const int> labels);

  /// Adds rows r(x), (n, E), with the experts that serve them, (n), each 0 … E − 1 or −1 for none, and their
  /// labels, (n): any integers, each the name of a cluster. Throws InvalidOption when the shapes do not fit.
  void add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
           std::span<const int> labels);
  /// The same where the likeliest expert serves: the largest entry, the lowest index among equals.
  void add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels);

  std::int64_t rows() const { return rows_; }
  /// Rows that an expert serves.
  std::int64_t served_rows() const { return served_rows_; }
  /// Number of clusters that have rows.
  Eigen::Index clusters() const { return static_cast<Eigen::Index>(clusters_.size()); }
  /// r̄_c, (clusters, E), in the order in which the clusters were first seen.
  Matrix mean_routing() const;

  /// E_c[H(r̄_c)] in nats, over all rows. This and the metrics below throw InvalidOption when no row was
  /// added; those named top1 are taken over served rows, and none when there are none.
  double cluster_entropy() const;
  /// E_c[exp H(r̄_c)] ∈ [1, E].
  double effective_experts() const;
  /// Σ_e max_c n_ec / n, with n_ec the rows of cluster c that expert e serves, n their sum.
  std::optional<double> top1_cluster_purity() const;
  /// E_c[max_e n_ec / n_c]. A router that sends everything to one expert scores 1: read it beside the purity.
  std::optional<double> top1_cluster_concentration() const;
  /// n_ce, (clusters with served rows, E): rows of each cluster by the expert that serves them.
  ContingencyTable top1_table() const;

 private:
  struct Cluster {
    std::int64_t rows = 0;
    std::int64_t served_rows = 0;
    Vector probability_sum;                    ///< (E)
    std::vector<std::int64_t> serving_counts;  ///< (E)
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

// The baseline of sparsity: the same linear router with its columns shuffled (Dikkala et al. 2023). Gives
// `probabilities`.

/// A linear router W (E, d) and copies of it whose columns are permuted, by the same permutation for every
/// expert. The permutation of shuffle s is drawn from the stream (shuffles, s) of `seeds`, as in a run.
class ShuffledRouter {
 public:
  ShuffledRouter(const Eigen::Ref<const Matrix>& weight, const Seeds& seeds, int shuffles);

  int shuffles() const { return static_cast<int>(weights_.size()) - 1; }

  /// Rows of probabilities, (n, E), until the next call.
  using Probabilities = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  /// softmax(W x) for each row of inputs (n, d).
  Probabilities route(const Matrix& inputs) { return route(weights_.front(), inputs); }
  /// The same with the columns of shuffle s, 0 … shuffles − 1.
  Probabilities route_shuffled(int s, const Matrix& inputs) {
    return route(weights_.at(static_cast<std::size_t>(s) + 1), inputs);
  }

 private:
  Probabilities route(const AlignedVector<double>& weight, const Matrix& inputs);

  int experts_, width_, stride_;
  std::vector<AlignedVector<double>> weights_;  // W^T, (d, stride): as given, then every shuffle
  AlignedVector<double> probabilities_;
};

}  // namespace moelab
