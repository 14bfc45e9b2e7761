#pragma once

/// How undecided a router is about single rows (Nguyen et al. 2025, section 4). Uses `probabilities`.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// H(r(x_i)) in nats for each row of routing probabilities (n, E); (n).
Vector routing_entropies(const Eigen::Ref<const Matrix>& probabilities);

/// Mean over rows of H(r(x)): 0 for one-hot routing, ln E for uniform routing. The entropy of a cluster's
/// mean routing (sparsity.h) is never below the mean of these over its rows. Throws InvalidOption without
/// rows.
double routing_entropy(const Eigen::Ref<const Matrix>& probabilities);

/// The largest probability less the second largest, for each row of (n, E); (n). Throws InvalidOption for
/// less than two experts.
Vector router_margins(const Eigen::Ref<const Matrix>& probabilities);

/// Mean over rows of the margin: 1 for one-hot routing, 0 for ties. None for one expert. Throws InvalidOption
/// without rows.
std::optional<double> router_margin(const Eigen::Ref<const Matrix>& probabilities);

// Variances of routing scores (Guo et al. 2025). Uses `probabilities`. The paper calls two different things
// by one name; each has its own here.

/// One pass over rows of routing scores s (n, E), in blocks. Sums are taken about the first row, so that
/// constant scores have variance exactly 0.
class ScoreVariance {
 public:
  /// Throws InvalidOption when the number of experts is not that of the blocks before.
  void add(const Eigen::Ref<const Matrix>& scores);

  /// Eq. 42: (1/E) Σ_j (mean_i s_ij − 1/E)². It measures how uneven the *mean* gate is, 0 under balance,
  /// though the text reads higher as more specialised. This and those below throw InvalidOption without rows.
  double routing_variance_eq42() const;
  /// (1/E) Σ_j Var_i(s_ij), ddof 0: what the variance loss L_v raises (L_v = −n times this).
  double score_variance() const;
  /// Mean over rows of Var_j(s_ij), ddof 0: 0 for uniform rows, (E − 1)/E² for one-hot rows.
  double score_row_variance() const;

 private:
  Vector mean_shift() const;  // (E)

  std::int64_t rows_ = 0;
  Vector origin_, sums_, squares_;  // (E): the first row, Σ_i (s_ij − origin_j), Σ_i (s_ij − origin_j)²
  double row_variances_ = 0;
};

// Which experts are selected together. Uses `selected`.

/// One pass over rows, each with the experts that it is sent to.
class CoActivation {
 public:
  explicit CoActivation(int experts) : experts_(experts) {}

  /// The experts of the next row, distinct, 0 … E − 1.
  void add(std::span<const int> experts);

  /// Mean over the experts i with rows of max_{j ≠ i} n_ij / n_i, n_ij rows that are sent to both i and j,
  /// n_i those that are sent to i (the matrix n_ij / n_i is that of Muennighoff et al. 2024): 1 when every
  /// expert has a partner on all of its rows, (K − 1)/(E − 1) when the other K − 1 experts of a row are drawn
  /// at random, up to the scatter of the largest. None without rows or for one expert.
  std::optional<double> value() const;

 private:
  int experts_;
  std::vector<int> of_rows_;           // the rows' experts, one row after another
  std::vector<std::size_t> row_ends_;  // (n)
};

}  // namespace moelab
