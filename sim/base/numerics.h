#pragma once

/// Numerics in double: decompositions, softmax and feature weights. Eigen's decompositions are compiled once
/// here, because every source that names one takes 10 s longer to compile.

#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// A = V diag(λ) Vᵀ of a symmetric matrix (d, d). Only the lower triangle is read.
struct SymmetricEigen {
  Vector values;   ///< λ (d), ascending
  Matrix vectors;  ///< V (d, d), orthonormal columns
};

SymmetricEigen symmetric_eigen(const Matrix& symmetric);

/// λ (d) without V, ascending.
Vector symmetric_eigenvalues(const Matrix& symmetric);

/// A = Q R of a matrix (n, m), n ≥ m, by Householder reflections.
struct QrFactors {
  Matrix q;         ///< (n, m), orthonormal columns
  Vector diagonal;  ///< of R (m), with any signs
};

QrFactors qr_factors(const Matrix& a);

/// The x (m) that minimises ‖A x − b‖, and among several the one of least norm. A (n, m) has any rank, b (n).
Vector least_norm_solution(const Matrix& a, const Vector& b);

/// A⁻¹ (d, d), by LU with partial pivoting.
Matrix inverse(const Matrix& a);

// Softmax, for metrics and theory. Training uses sim/base/kernels.

/// log softmax of every row of `scores` (n, E), finite for all finite scores.
Matrix log_softmax(const Eigen::Ref<const Matrix>& scores);

/// softmax of every row of `scores` (n, E). A score of −∞ gives 0.
Matrix softmax(const Eigen::Ref<const Matrix>& scores);

/// The places of the values in descending order. Equal values keep their order.
std::vector<Eigen::Index> descending_order(const Vector& values);

/// Whether no value is NaN or infinite.
template <class Real>
bool all_finite(std::span<const Real> values) {
  // Without a branch, so that it runs at the speed of memory.
  unsigned others = 0;
  for (const Real value : values)
    others |= static_cast<unsigned>(!(std::abs(value) <= std::numeric_limits<Real>::max()));
  return others == 0;
}

// Weights of features (Nielsen et al. 2025) from the dispersions s_q ≥ 0, q = 1 … d, of one cluster. The
// tighter the cluster is on a feature, the more the feature counts. If a dispersion is not finite, all
// weights are NaN, so that a diverging run shows it.

/// Definition 1 with Eq. 21: m_q ∝ 1/s_q with mean 1 over the features. A feature with s_q ≤ 1e-12 of the
/// largest has only rounding for a dispersion. It gets weight 1, and the other features have mean 1 among
/// themselves. So an empty cluster, or one of a single point, has M = I. Throws InvalidOption for a negative
/// dispersion.
std::vector<double> inverse_dispersion_weights(std::span<const double> dispersion);
/// The same into `weights` (d).
void inverse_dispersion_weights(std::span<const double> dispersion, std::span<double> weights);

/// Theorem 1: the minimiser w_q = (λ/d)/(s_q + α) of Σ_q w_q s_q + λ KL(uniform ‖ w) over the simplex. α is
/// the largest root of Σ_q 1/(s_q + α) = d/λ, in (−min s, ∞). The other roots give negative weights. λ → ∞
/// gives uniform weights, λ → 0 equal weights on the smallest s, and λ = d/Σ_q(1/s_q) weights proportional to
/// 1/s. Throws InvalidOption for λ ≤ 0 or a negative dispersion.
std::vector<double> optimal_feature_weights(std::span<const double> dispersion, double lambda);
void optimal_feature_weights(std::span<const double> dispersion, double lambda, std::span<double> weights);

// Texts of options

/// The whole numbers of "3/20" or "5..9", which `separator` separates. Empty for any other text and for a
/// number that is too large.
inline std::vector<int> whole_numbers(std::string_view text, std::string_view separator) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end && *at >= '0' && *at <= '9') {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc()) return {};
    if (next == end) return numbers;
    if (!std::string_view(next, static_cast<std::size_t>(end - next)).starts_with(separator)) return {};
    at = next + separator.size();
  }
  return {};
}

}  // namespace moelab
