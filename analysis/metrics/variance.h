#pragma once

/// Variances of routing scores (Guo et al. 2025). Uses `probabilities`. The paper calls two different things
/// by one name; each has its own here.

#include <cstdint>

#include "sim/base/types.h"

namespace moelab {

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

}  // namespace moelab
