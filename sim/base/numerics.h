#pragma once

/// The decompositions in use, compiled once: every source that names one of Eigen's own costs 10 s to
/// compile.

#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// A = V diag(λ) Vᵀ of a symmetric matrix (d, d), of which the lower triangle is read.
struct SymmetricEigen {
  Vector values;   ///< λ (d), ascending
  Matrix vectors;  ///< V (d, d), orthonormal columns
};

SymmetricEigen symmetric_eigen(const Matrix& symmetric);

/// The eigenvalues alone, ascending.
Vector symmetric_eigenvalues(const Matrix& symmetric);

/// A = Q R of a matrix (n, m), n ≥ m, by Householder reflections.
struct QrFactors {
  Matrix q;         ///< (n, m), orthonormal columns
  Vector diagonal;  ///< of R (m); its signs are not fixed
};

QrFactors qr_factors(const Matrix& a);

/// The x (m) of least norm among those of least ‖A x − b‖, A (n, m) of any rank, b (n).
Vector least_norm_solution(const Matrix& a, const Vector& b);

/// A⁻¹ (d, d), by LU with partial pivoting.
Matrix inverse(const Matrix& a);

// The softmax in double, for metrics and theory; training has its own in sim/base/kernels.

/// log softmax of every row of `scores` (n, E), finite for all finite scores.
Matrix log_softmax(const Eigen::Ref<const Matrix>& scores);

/// softmax of every row of `scores` (n, E); −∞ has no mass.
Matrix softmax(const Eigen::Ref<const Matrix>& scores);

/// Whether no value is NaN or infinite.
template <class Real>
bool all_finite(std::span<const Real> values) {
  // Without a branch, so that it is done at the speed of memory.
  unsigned others = 0;
  for (const Real value : values)
    others |= static_cast<unsigned>(!(std::abs(value) <= std::numeric_limits<Real>::max()));
  return others == 0;
}

// Whole numbers in the texts of options.

/// The numbers of "3/20" or "5..9": digits alone, `separator` between them; empty where the text is anything
/// else, or a number is too large.
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
