#include "analysis/theory/dikkala2023/router_bias.h"

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "analysis/theory/dikkala2023/biased_mixture.h"
#include "sim/base/numerics.h"

namespace moelab::router_bias {
namespace {

using Digits = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_50::backend_type,
                                             boost::multiprecision::et_off>;

/// Of sums of thousands of terms of order one.
constexpr double kSumRounding = 1e-12;
/// The counterexample's law, x₂ by the trapezoidal rule with step 1/`nodes` on [−14, 14].
std::vector<Sample<Digits>> counterexample(int nodes) {
  const Digits half = Digits(1) / 2, height = 2 * sqrt(Digits(3));
  const std::array<std::array<Digits, 2>, 4> places = {
      {{Digits(0), Digits(0)}, {Digits(4), Digits(0)}, {Digits(-2), height}, {Digits(-2), -height}}};
  const std::array<std::array<int, 2>, 4> targets = {{{0, 0}, {0, 1}, {0, -1}, {6, 0}}};
  const Digits density = 1 / (sqrt(2 * boost::math::constants::pi<Digits>()) * nodes);
  std::vector<Sample<Digits>> samples;
  for (std::size_t p = 0; p < places.size(); ++p) {
    for (int i = -14 * nodes; i <= 14 * nodes; ++i) {
      const Digits x2 = Digits(i) / nodes;
      const Digits mass = (p == 0 ? Digits(2) : Digits(1)) / 5 * density * exp(-half * x2 * x2);
      samples.push_back(
          {{places[p][0], places[p][1], x2}, {Digits(targets[p][0]), Digits(targets[p][1])}, mass});
    }
  }
  return samples;
}

/// δ of H δ = g over the entries without biases, by elimination with the largest pivots.
std::array<Digits, kFree> newton_step(Local<Digits> local) {
  auto& h = local.hessian;
  auto& g = local.gradient;
  for (std::size_t column = 0; column < kFree; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < kFree; ++row)
      if (abs(h[row][column]) > abs(h[pivot][column])) pivot = row;
    std::swap(h[pivot], h[column]);
    std::swap(g[pivot], g[column]);
    for (std::size_t row = column + 1; row < kFree; ++row) {
      const Digits factor = h[row][column] / h[column][column];
      for (std::size_t k = column; k < kFree; ++k) h[row][k] -= factor * h[column][k];
      g[row] -= factor * g[column];
    }
  }
  std::array<Digits, kFree> step;
  for (std::size_t row = kFree; row-- > 0;) {
    step[row] = g[row];
    for (std::size_t k = row + 1; k < kFree; ++k) step[row] -= h[row][k] * step[k];
    step[row] /= h[row][row];
  }
  return step;
}

double gradient_norm(const Point<Digits>& gradient) {
  Digits sum = 0;
  for (std::size_t i = 0; i < kFree; ++i) sum += gradient[i] * gradient[i];
  return static_cast<double>(Digits(sqrt(sum)));
}

double least_eigenvalue(const Local<Digits>& local, int entries) {
  Matrix hessian(entries, entries);
  for (int i = 0; i < entries; ++i)
    for (int j = 0; j < entries; ++j) hessian(i, j) = static_cast<double>(local.hessian[size(i)][size(j)]);
  return symmetric_eigenvalues(hessian)[0];
}

/// K: |d³ loss / dt³| along unit directions, at parameters within 1 of θ. With X = ‖x‖, B = 1 + max ‖u_e‖ and
/// D = max ‖y‖ + B, the outputs' derivatives are at most 2XB + 1, 8X²B + 4X and 48X³B + 24X².
double third_derivative_bound(const std::vector<Sample<Digits>>& samples, const Point<Digits>& theta) {
  double unit = 0;
  for (std::size_t i = kWeights; i < kFree; i += kOutputs)
    unit = std::max(unit, std::hypot(static_cast<double>(theta[i]), static_cast<double>(theta[i + 1])));
  const double b = 1 + unit, d = 6 + b;
  double bound = 0;
  for (const Sample<Digits>& sample : samples) {
    double square = 0;
    for (const Digits& entry : sample.x) square += static_cast<double>(entry * entry);
    const double x = std::sqrt(square);
    bound += static_cast<double>(sample.mass) *
             (2 * d * (48 * x * square * b + 24 * square) + 6 * (2 * x * b + 1) * (8 * square * b + 4 * x));
  }
  return bound;
}

}  // namespace

CheckFinding check_without_bias(const CheckEffort&) {
  // To three digits; Newton's steps give the others.
  const std::array<double, kFree> near = {-0.971, -1.682, 0, 2.313,  -0.214, -3.113, -1.342, 1.896,
                                          3.113,  5.632,  0, -0.333, 0.600,  -0.333, -0.600};
  const std::vector<Sample<Digits>> samples = counterexample(32);
  Point<Digits> theta{};
  std::copy(near.begin(), near.end(), theta.begin());
  Local<Digits> local = local_loss(samples, theta, true);
  for (int step = 0; step < 6; ++step) {
    const std::array<Digits, kFree> change = newton_step(local);
    for (std::size_t i = 0; i < kFree; ++i) theta[i] -= change[i];
    local = local_loss(samples, theta, true);
  }
  const Local<Digits> finer = local_loss(counterexample(64), theta, true);
  const double gradient = std::max(gradient_norm(local.gradient), gradient_norm(finer.gradient));
  const double least = least_eigenvalue(finer, kFree), bound = third_derivative_bound(samples, theta);
  Digits irrelevant = 0, whole = 0;
  for (int i = 0; i < kWeights; ++i) {
    whole += theta[size(i)] * theta[size(i)];
    if (i % kInputs == kInputs - 1) irrelevant += theta[size(i)] * theta[size(i)];
  }
  CheckFinding finding;
  finding.hypotheses = {{"the Hessian is positive (least eigenvalue > 1e-6)", least, least > 1e-6},
                        {"a minimum is certified (2 K |gradient| / eigenvalue^2 < 1)",
                         2 * bound * gradient / (least * least), 2 * bound * gradient < least * least}};
  finding.measured = static_cast<double>(Digits(sqrt(irrelevant / whole)));
  finding.error_bound = kSumRounding + 2 * gradient / least;
  finding.error_origin = "distance of the minimum, certified in 50 digits";
  finding.details = {{"loss", static_cast<double>(local.value)},
                     {"norm of the gradient", gradient},
                     {"least eigenvalue with a free bias", least_eigenvalue(finer, kAll)}};
  return finding;
}

CheckFinding check_two_points(const CheckEffort&) {
  const Digits penalty = Digits(3) / 1000;
  const Digits gap = cbrt(Digits(penalty / 4)), square = 1 - gap, weight = sqrt(square);
  // Of (s² − 1)⁴ at s = ±W₂: first and second derivatives.
  const Digits slope = 8 * weight * (square - 1) * (square - 1) * (square - 1);
  const Digits bend = 8 * pow(square - 1, 3) + 48 * square * (square - 1) * (square - 1);
  const double gradient = static_cast<double>(Digits(abs(slope + 2 * penalty * weight)));
  // By symmetry the mixed derivative is 0, and b sees the same bend without the penalty.
  const double curvature = static_cast<double>(bend);
  CheckFinding finding;
  finding.hypotheses = {{"the gradient vanishes (norm <= 1e-45)", gradient, gradient <= 1e-45},
                        {"a strict minimum in (W2, b) (least curvature > 0)", curvature, curvature > 0}};
  finding.measured = static_cast<double>(weight);
  finding.error_bound = kSumRounding;
  finding.error_origin = "rounding";
  return finding;
}

}  // namespace moelab::router_bias

namespace moelab {

std::vector<Check> dikkala2023_router_bias_checks() {
  using namespace router_bias;
  const std::string source = "Dikkala et al. 2023, Theorem 1 (3)", id = "dikkala2023.theorem1.";
  return {{id + "no_bias", source,
           "routing by W x without the bias that Theorem 1 has, as in section 2, a local minimum has "
           "|W2|/|W| = 0 (at one that is certified)",
           CheckVerdict::fails, check_without_bias},
          {id + "two_point", source,
           "for any law of x2, a local minimum has W2 = 0 (x2 = +-1, y = 0, router g(s) = (s^2 - 1)^2 with a "
           "bias)",
           CheckVerdict::fails, check_two_points},
          {id + "global", source,
           "for any law of x2, W2 -> 0 with the best bias lowers L by at least lambda1 |W2|^2: a global "
           "minimum has "
           "W2 = 0 (smallest excess, x2 = +-1)",
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_global_step(effort, IrrelevantLaw::two_point); }},
          {id + "self_decomposable", source,
           "for a self-decomposable x2, W2 -> a W2 with the best bias lowers L by at least lambda1 (1 - a^2) "
           "|W2|^2 "
           "(smallest ratio, Laplace x2)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_local_step(effort); }}};
}

}  // namespace moelab
