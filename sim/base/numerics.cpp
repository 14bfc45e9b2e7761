#include "sim/base/numerics.h"

#include <fmt/core.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "sim/base/error.h"

namespace moelab {

SymmetricEigen symmetric_eigen(const Matrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Vector symmetric_eigenvalues(const Matrix& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

QrFactors qr_factors(const Matrix& a) {
  MOELAB_EXPECT(a.rows() >= a.cols());
  const Eigen::HouseholderQR<Matrix> qr(a);
  QrFactors factors{{}, qr.matrixQR().diagonal()};
  if (a.rows() == a.cols()) {
    factors.q = qr.householderQ();
  } else {
    factors.q = qr.householderQ() * Matrix::Identity(a.rows(), a.cols());
  }
  return factors;
}

Vector least_norm_solution(const Matrix& a, const Vector& b) {
  return Eigen::CompleteOrthogonalDecomposition<Matrix>(a).solve(b);
}

Matrix inverse(const Matrix& a) {
  return a.inverse();
}

Matrix log_softmax(const Eigen::Ref<const Matrix>& scores) {
  const Matrix shifted = scores.colwise() - scores.rowwise().maxCoeff();
  const Vector log_sums = shifted.array().exp().rowwise().sum().log();
  return shifted.colwise() - log_sums;
}

Matrix softmax(const Eigen::Ref<const Matrix>& scores) {
  const Matrix shifted = scores.colwise() - scores.rowwise().maxCoeff();
  // Eigen's own exponential of −∞ is not zero.
  Matrix values = shifted.unaryExpr([](double value) { return std::exp(value); });
  values.array().colwise() /= values.rowwise().sum().array();
  return values;
}

std::vector<Eigen::Index> descending_order(const Vector& values) {
  std::vector<Eigen::Index> order(size(values.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return values[a] > values[b]; });
  return order;
}

namespace {

/// The share of the largest dispersion below which a dispersion is rounding.
constexpr double kNoDispersion = 1e-12;

/// Whether there are weights to compute. If not, all become NaN (or there are none).
bool has_weights(std::span<const double> dispersion, std::span<double> weights) {
  MOELAB_EXPECT(weights.size() == dispersion.size());
  for (const double s : dispersion) {
    if (s < 0) throw InvalidOption("dispersion", fmt::format("{} is negative", s));
  }
  if (all_finite(dispersion)) return !dispersion.empty();
  std::fill(weights.begin(), weights.end(), std::numeric_limits<double>::quiet_NaN());
  return false;
}

double weight_sum(std::span<const double> excess, double shift) {
  double sum = 0;
  for (const double e : excess) sum += 1 / (e + shift);
  return sum;
}

/// u ≥ 1 with Σ_q 1/(e_q + u) = 1, for d values e_q ≥ 0 with the smallest at 0. The sum is at least 1 at u =
/// 1 and at most 1 at u = d for any e_q.
double shift_of_sum_one(std::span<const double> excess) {
  const double low = 1, high = static_cast<double>(excess.size());
  const auto beyond_one = [&](double shift) { return weight_sum(excess, shift) - 1; };
  const double at_low = beyond_one(low), at_high = beyond_one(high);
  if (at_low <= 0) return low;
  if (at_high >= 0) return high;
  constexpr int kDigits = std::numeric_limits<double>::digits - 1;
  std::uintmax_t iterations = 200;
  const auto [below, above] = boost::math::tools::toms748_solve(
      beyond_one, low, high, at_low, at_high, boost::math::tools::eps_tolerance<double>(kDigits), iterations);
  return (below + above) / 2;
}

}  // namespace

std::vector<double> inverse_dispersion_weights(std::span<const double> dispersion) {
  std::vector<double> weights(dispersion.size());
  inverse_dispersion_weights(dispersion, weights);
  return weights;
}

void inverse_dispersion_weights(std::span<const double> dispersion, std::span<double> weights) {
  if (!has_weights(dispersion, weights)) return;
  const double smallest_counted = kNoDispersion * *std::max_element(dispersion.begin(), dispersion.end());
  const auto counts = [&](double s) { return s > smallest_counted; };
  double tightest = std::numeric_limits<double>::infinity();
  for (const double s : dispersion) {
    if (counts(s)) tightest = std::min(tightest, s);
  }
  // Quotients relative to the tightest feature do not overflow.
  double sum = 0, counted = 0;
  for (const double s : dispersion) {
    if (!counts(s)) continue;
    sum += tightest / s;
    ++counted;
  }
  for (std::size_t q = 0; q < weights.size(); ++q) {
    weights[q] = counts(dispersion[q]) ? tightest / dispersion[q] * (counted / sum) : 1.0;
  }
}

std::vector<double> optimal_feature_weights(std::span<const double> dispersion, double lambda) {
  std::vector<double> weights(dispersion.size());
  optimal_feature_weights(dispersion, lambda, weights);
  return weights;
}

void optimal_feature_weights(std::span<const double> dispersion, double lambda, std::span<double> weights) {
  if (!(lambda > 0)) throw InvalidOption("lambda", fmt::format("{} is not positive", lambda));
  if (!has_weights(dispersion, weights)) return;
  // With e_q = (s_q − min s) d/λ and u = (α + min s) d/λ the weights are 1/(e_q + u). Every λ and every scale
  // of s then have the same bracket 1 ≤ u ≤ d.
  const double dim = static_cast<double>(dispersion.size());
  const double tightest = *std::min_element(dispersion.begin(), dispersion.end());
  for (std::size_t q = 0; q < weights.size(); ++q) weights[q] = (dispersion[q] - tightest) / lambda * dim;
  const double shift = shift_of_sum_one(weights);
  const double sum = weight_sum(weights, shift);
  for (double& weight : weights) weight = 1 / (weight + shift) / sum;
}

}  // namespace moelab
