#include "analysis/theory/dikkala2023/two_component.h"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Beyond this many σ a Gaussian holds less than 1e-16 of its mass.
constexpr double kTail = 8.5;

/// P(χ²_freedom ≤ value); with no degrees of freedom χ² is 0.
double chi_squared_cdf(int freedom, double value) {
  if (freedom == 0 || std::isinf(value)) return 1;
  return boost::math::cdf(boost::math::chi_squared(freedom), std::max(value, 0.0));
}

void require(bool holds, const char* path, double given, const char* allowed) {
  if (!holds) throw InvalidOption(path, fmt::format("got {}: {}", given, allowed));
}

}  // namespace

TwoComponentPopulation::TwoComponentPopulation(TwoComponentProblem problem) : problem_(std::move(problem)) {
  const double sigma = problem_.noise_std, radius = problem_.radius;
  require(problem_.mean.size() > 0, "mean", 0, "at least one dimension");
  require(problem_.value.size() > 0, "value", 0, "at least one output");
  require(std::isfinite(sigma) && sigma > 0, "noise_std", sigma, "a positive number");
  require(radius > 0, "radius", radius, "a positive number or infinity");
  const int across = static_cast<int>(problem_.mean.size()) - 1;
  const double reach = std::min(radius, kTail * sigma);
  using Rule = boost::math::quadrature::gauss<double, kNodes>;
  for (int i = 0; i < kNodes; ++i) {
    const std::size_t place = static_cast<std::size_t>(i / 2);
    const double side = i % 2 == 0 ? 1 : -1;
    const double theta = side * boost::math::constants::half_pi<double>() * Rule::abscissa()[place];
    t_[i] = reach * std::sin(theta);
    const double across_limit = (radius - t_[i]) * (radius + t_[i]) / (sigma * sigma);
    weight_[i] = Rule::weights()[place] * std::cos(theta) * std::exp(-t_[i] * t_[i] / (2 * sigma * sigma)) *
                 chi_squared_cdf(across, across_limit);
  }
  const double mass = weight_.sum();
  require(std::isnormal(mass), "radius", radius, "the ball must hold more of the Gaussian");
  weight_ /= mass;
}

RouterMoments TwoComponentPopulation::moments(double signal, double norm) const {
  const NodeArray score = signal + norm * t_;
  // With e = exp(−|s|): |q| = (1 − e)/(1 + e) and q' = 2 e/(1 + e)², which keep their digits for large |s|.
  const NodeArray e = (-score.abs()).exp();
  const NodeArray q = score.sign() * (1 - e) / (1 + e);
  const NodeArray weighted_dq = weight_ * 2 * e / (1 + e).square();
  RouterMoments moments;
  moments.q = (weight_ * q).sum();
  moments.q_q = (weight_ * q.square()).sum();
  moments.dq = weighted_dq.sum();
  moments.q_dq = (weighted_dq * q).sum();
  moments.t_dq = (weighted_dq * t_).sum();
  moments.t_q_dq = (weighted_dq * q * t_).sum();
  return moments;
}

double TwoComponentPopulation::loss(const Vector& w, const Vector& u) const {
  const RouterMoments m = moments(w);
  return 2 * (m.q_q * u.squaredNorm() - 2 * m.q * problem_.value.dot(u) + problem_.value.squaredNorm());
}

TwoComponentGradient TwoComponentPopulation::gradient(const Vector& w, const Vector& u) const {
  const RouterMoments m = moments(w);
  const double norm = w.norm(), squared = u.squaredNorm(), agreement = problem_.value.dot(u);
  const double along_mean = squared * m.q_dq - agreement * m.dq;
  const double along_router = squared * m.t_q_dq - agreement * m.t_dq;
  TwoComponentGradient gradient;
  gradient.expert = 4 * (m.q_q * u - m.q * problem_.value);
  gradient.router = 4 * along_mean * problem_.mean;
  // At w = 0 both moments with t vanish.
  if (norm > 0) gradient.router += 4 * along_router / norm * w;
  return gradient;
}

Vector TwoComponentPopulation::best_expert(const Vector& w) const {
  const RouterMoments m = moments(w);
  return problem_.value * (m.q / m.q_q);
}

}  // namespace moelab
