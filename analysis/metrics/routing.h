#pragma once

/// How a router spreads rows over experts, how decided it is, and how long its weights are. The functions say
/// which routing they use: `probabilities` r(x) (n, E), the `serving` expert of each row (n), or the experts
/// that are `selected` for it (sim/model/gating/routing.h).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

// Assignments, from `probabilities`.

/// The argmax expert of each row of r(x) (n, E), the lowest index among equals; (n). It serves the row unless
/// the selection has a bias. Throws InvalidOption when there are no experts.
std::vector<int> top1_assignment(const Eigen::Ref<const Matrix>& probabilities);

/// The k experts of largest probability of each row, in descending order, lower indices first among equals;
/// (n · k). Throws InvalidOption when k is not in 1 … E.
std::vector<int> topk_assignment(const Eigen::Ref<const Matrix>& probabilities, int k);

// Load. An assignment names the serving or the selected experts.

/// n_e (E): how many entries of `assignment` name expert e; entries −1 name none. Throws InvalidOption for an
/// entry outside −1 … E − 1.
std::vector<std::int64_t> expert_loads(std::span<const int> assignment, int experts);

/// The share of rows that no expert serves, from `serving` (n) with −1 for these. None without rows.
std::optional<double> unserved_share(std::span<const int> serving);

/// The share of experts that serve less than a tenth of an even share, n_e < n / (10 E), from `serving` (n).
/// Rows that no expert serves, −1, count in n. None without rows. Throws InvalidOption as above.
std::optional<double> dead_experts(std::span<const int> serving, int experts);

/// The share of experts with less than a tenth of an even share of all assignments, n_e < Σn / (10 E), from
/// `loads` (E) of K experts a row. None without assignments.
std::optional<double> dead_experts_of(std::span<const std::int64_t> loads);

/// (max_e n_e − mean_e n_e) / mean_e n_e: 0 when balanced, E − 1 when one expert takes all rows. None without
/// rows.
std::optional<double> expert_load_max_violation(std::span<const std::int64_t> loads);

/// max_e |n_e − mean_e n_e| / mean_e n_e: an idle expert counts like one with twice an even share (MaxVio in
/// the released code of Guo et al. 2025). None without rows.
std::optional<double> expert_load_max_deviation(std::span<const std::int64_t> loads);

/// The standard deviation over experts (ddof 0) of the percentage of assignments, 100 · n_e / Σn (Nielsen et
/// al. 2025). None without rows.
std::optional<double> expert_load_std_percent(std::span<const std::int64_t> loads);

/// Mean over the experts i with rows of max_{j ≠ i} n_ij / n_i, where n_ij rows select both i and j, and n_i
/// rows select i (Muennighoff et al. 2024 show the matrix n_ij / n_i). `selected` (n · E) is not 0 where a
/// row selects an expert. The mean is 1 when every expert has a partner on all of its rows. It is about (K −
/// 1)/(E − 1), up to the scatter of the largest, when the other K − 1 experts of a row are random. None
/// without rows or for one expert.
std::optional<double> co_activation(std::span<const unsigned char> selected, int experts);

// How decided the router is about single rows (Nguyen et al. 2025, section 4). Uses `probabilities`.

/// H(p) = −Σ_i p_i ln p_i in nats, with 0 · ln 0 = 0.
double entropy(std::span<const double> distribution);

/// H(r(x_i)) in nats for each row of routing probabilities (n, E); (n).
Vector routing_entropies(const Eigen::Ref<const Matrix>& probabilities);

/// Mean over rows of H(r(x)): 0 for one-hot routing, ln E for uniform routing. The entropy of a cluster's
/// mean routing (sparsity.h) is never below this mean over the cluster's rows. Throws InvalidOption without
/// rows.
double routing_entropy(const Eigen::Ref<const Matrix>& probabilities);

/// The largest minus the second largest probability of each row of (n, E); (n). Throws InvalidOption for less
/// than two experts.
Vector router_margins(const Eigen::Ref<const Matrix>& probabilities);
/// ln r_(1) − ln r_(2) of each row of (n, E): under softmax the difference of the two largest scores; (n).
/// Throws InvalidOption for less than two experts.
Vector score_gaps(const Eigen::Ref<const Matrix>& probabilities);

/// Mean over rows of the margin: 1 for one-hot routing, 0 for ties. None for one expert. Throws InvalidOption
/// without rows.
std::optional<double> router_margin(const Eigen::Ref<const Matrix>& probabilities);

/// Variances of routing scores s (n, E) (Guo et al. 2025). One pass over rows, in blocks. Sums are taken
/// about the first row, so constant scores have variance exactly 0. The paper uses one name for two different
/// quantities; here each has its own name.
class ScoreVariance {
 public:
  /// Throws InvalidOption when the number of experts differs from earlier blocks.
  void add(const Eigen::Ref<const Matrix>& scores);

  /// Eq. 42: (1/E) Σ_j (mean_i s_ij − 1/E)². It measures how uneven the *mean* gate is: 0 under balance. The
  /// paper reads higher values as more specialised. All three throw InvalidOption without rows.
  double routing_variance_eq42() const;
  /// (1/E) Σ_j Var_i(s_ij), ddof 0. The variance loss L_v raises it (L_v = −n times this).
  double score_variance() const;
  /// Mean over rows of Var_j(s_ij), ddof 0: 0 for uniform rows, (E − 1)/E² for one-hot rows.
  double score_row_variance() const;

 private:
  Vector mean_shift() const;  // (E)

  std::int64_t rows_ = 0;
  Vector origin_, sums_, squares_;  // (E): the first row, Σ_i (s_ij − origin_j), Σ_i (s_ij − origin_j)²
  double row_variances_ = 0;
};

// Weights of routers. Uses no routing, except where said.

/// E_i‖M_i‖² / (E_i‖M_i‖)² of a linear router's weights W (E, d), row M_i into expert i (Dikkala et al. 2023,
/// Fig. 3): 1 when all rows are equally long, E when one row holds everything. None when W is zero or empty.
std::optional<double> router_norm_ratio(const Eigen::Ref<const Matrix>& weight);

/// ‖W B‖²_F / ‖W‖²_F for an orthonormal basis B (d, s) of the signal subspace: s/d for random rows, 1 when
/// every row lies in the subspace. None when W is zero or empty. Throws InvalidOption when B has not d rows.
std::optional<double> router_signal_fraction(const Eigen::Ref<const Matrix>& weight,
                                             const Eigen::Ref<const Matrix>& basis);

/// How far the feature weights M (E, d) of an adaptive clustering router are from the identity, with which it
/// is a plain router (Nielsen et al. 2025). Mean over rows of the coefficient of variation over features,
/// √(mean_q (m_q/m̄ − 1)²), of the weights m = M_k of the row's cluster k; 0 for M = I. Uses `serving` for
/// `clusters` (n); rows with −1 are skipped. None without rows. Throws InvalidOption for a cluster outside
/// −1 … E − 1.
std::optional<double> weight_variation(const Eigen::Ref<const Matrix>& weights,
                                       std::span<const int> clusters);

}  // namespace moelab
