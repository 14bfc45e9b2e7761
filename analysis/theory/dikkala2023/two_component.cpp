#include <fmt/format.h>

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "analysis/theory/dikkala2023.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Beyond this many σ a Gaussian holds less than 1e-16 of its mass.
constexpr double kTail = 8.5;

/// P(χ²_freedom ≤ value). Without degrees of freedom χ² is 0.
double chi_squared_cdf(int freedom, double value) {
  if (freedom == 0 || std::isinf(value)) return 1;
  return boost::math::cdf(boost::math::chi_squared(freedom), std::max(value, 0.0));
}

void require(bool holds, const char* path, double given, const char* allowed) {
  if (!holds) throw InvalidOption(path, fmt::format("got {}: {}", given, allowed));
}

constexpr int kReferenceDim = 10;
/// Runge-Kutta steps of the flow. Twice as many steps change α by less than 1e-10.
constexpr int kFlowSteps = 400;

/// −dL*/dα at w = α z, u = u*(w): −4 (‖u‖² E[x₁ q q'] − vᵀu E[x₁ q']), x₁ = 1 + t.
double flow_speed(const TwoComponentPopulation& population, double alpha) {
  const RouterMoments m = population.moments(alpha, alpha);
  const double share = m.q / m.q_q;
  const double squared = population.problem().value.squaredNorm();
  return -4 * squared * share * (share * (m.q_dq + m.t_q_dq) - (m.dq + m.t_dq));
}

constexpr int kGradientDraws = 100000;
constexpr std::initializer_list<double> kNorms = {0.1, 1.0, 4.0};  // of w at the compared points

/// A point with ‖w‖ = norm in a random direction and u ~ N(0, I).
TwoComponentState draw_point(Engine& engine, const TwoComponentProblem& problem, double norm) {
  TwoComponentState point = draw_start(engine, problem, 1.0, 0);
  point.w *= norm / point.w.norm();
  return point;
}

/// ∂/∂(w, u) of ‖(2p − 1)u − y‖² at one input, y = ±v: a vector (d + o).
Vector sample_gradient(const TwoComponentState& point, const Vector& x, const Vector& y) {
  const double p = 1 / (1 + std::exp(-point.w.dot(x)));
  const Vector residual = (2 * p - 1) * point.u - y;
  Vector gradient(point.w.size() + point.u.size());
  gradient << 2 * residual.dot(point.u) * 2 * p * (1 - p) * x, 2 * (2 * p - 1) * residual;
  return gradient;
}

Vector joined(const TwoComponentGradient& gradient) {
  Vector all(gradient.router.size() + gradient.expert.size());
  all << gradient.router, gradient.expert;
  return all;
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
    const std::size_t place = size(i / 2);
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
  // With e = exp(−|s|), |q| = (1 − e)/(1 + e) and q' = 2 e/(1 + e)² are accurate for large |s|.
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

TwoComponentGradient exact_gradient(const TwoComponentPopulation& population,
                                    const TwoComponentState& state) {
  return population.gradient(state.w, state.u);
}

std::vector<TwoComponentState> descend(const TwoComponentPopulation& population,
                                       const TwoComponentState& start, const DescentRates& rates,
                                       const std::vector<int>& record, const TwoComponentRule& rule) {
  std::vector<TwoComponentState> states;
  TwoComponentState state = start;
  int step = 0;
  for (const int next : record) {
    for (; step < next; ++step) {
      const TwoComponentGradient gradient = rule(population, state);
      state.w -= rates.router * gradient.router;
      state.u -= rates.expert * gradient.expert;
    }
    states.push_back(state);
  }
  return states;
}

TwoComponentProblem reference_problem(Engine& engine) {
  TwoComponentProblem problem;
  problem.mean.resize(kReferenceDim);
  fill_normal(engine, 1.0, problem.mean.data(), kReferenceDim);
  problem.mean.normalize();
  problem.value = Vector{{1.0, -2.0}};
  problem.noise_std = 0.15;
  problem.radius = 0.7;
  return problem;
}

Vector draw_noise(Engine& engine, const TwoComponentProblem& problem) {
  Vector g(problem.mean.size());
  // The ball of the reference problem holds 98 % of the Gaussian.
  do {
    fill_normal(engine, problem.noise_std, g);
  } while (g.norm() > problem.radius);
  return g;
}

TwoComponentState draw_start(Engine& engine, const TwoComponentProblem& problem, double scale, int side) {
  TwoComponentState state{Vector(problem.mean.size()), Vector(problem.value.size())};
  fill_normal(engine, scale, state.w);
  fill_normal(engine, scale, state.u);
  if (side * state.w.dot(problem.mean) < 0) state.w = -state.w;
  return state;
}

double alignment(const TwoComponentProblem& problem, const TwoComponentState& state) {
  return state.w.dot(problem.mean) / (state.w.norm() * problem.mean.norm());
}

double expert_distance(const TwoComponentProblem& problem, const TwoComponentState& state) {
  const double sign = state.w.dot(problem.mean) < 0 ? -1 : 1;
  return (state.u - sign * problem.value).norm() / problem.value.norm();
}

double reduced_flow(const TwoComponentPopulation& population, double router_rate, double norm, double first,
                    double steps) {
  const double width = std::log(steps / first) / kFlowSteps;
  double alpha = norm;
  for (int i = 0; i < kFlowSteps; ++i) {
    const double time = first * std::exp(width * i);
    // dα/d log s = s dα/ds.
    const auto slope = [&](double share, double at) {
      return router_rate * time * std::exp(share * width) * flow_speed(population, at);
    };
    const double k1 = slope(0, alpha);
    const double k2 = slope(0.5, alpha + width / 2 * k1);
    const double k3 = slope(0.5, alpha + width / 2 * k2);
    const double k4 = slope(1, alpha + width * k3);
    alpha += width / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return alpha;
}

CheckFinding check_gradient_by_sampling(const CheckEffort& effort, const TwoComponentRule& rule) {
  Engine engine = check_stream(effort, "dikkala2023.theorem4.gradient.monte_carlo", 0);
  const TwoComponentProblem problem = reference_problem(engine);
  const TwoComponentPopulation population(problem);
  // More seeds give more draws and the same number of comparisons: the largest of many would exceed any
  // bound.
  const int draws = kGradientDraws * effort.seeds;
  double largest = 0;
  for (const double norm : kNorms) {
    const TwoComponentState point = draw_point(engine, problem, norm);
    const Vector exact = joined(rule(population, point));
    MeanOfZero mean(exact.size());
    for (int i = 0; i < draws; ++i) {
      // One draw of each component, because L is the sum over the two.
      const Vector at_other = -(problem.mean + draw_noise(engine, problem));
      const Vector at = problem.mean + draw_noise(engine, problem);
      mean.add(sample_gradient(point, at, problem.value) + sample_gradient(point, at_other, -problem.value) -
               exact);
    }
    largest = larger(largest, mean.largest_deviation());
  }
  return in_standard_errors(largest, {{"draws of each component", draws}});
}

CheckFinding check_gradient_by_differences(const CheckEffort& effort, const TwoComponentRule& rule) {
  double largest = 0;
  for (int repetition = 0; repetition < effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, "dikkala2023.theorem4.gradient.central_difference", repetition);
    const TwoComponentProblem problem = reference_problem(engine);
    const TwoComponentPopulation population(problem);
    for (const double norm : kNorms) {
      TwoComponentState point = draw_point(engine, problem, norm);
      const TwoComponentGradient exact = rule(population, point);
      const auto compare = [&](double& coordinate, double derivative) {
        const double slope =
            central_difference(coordinate, 1e-4, [&] { return population.loss(point.w, point.u); });
        largest = larger(largest, std::abs(slope - derivative));
      };
      for (Eigen::Index i = 0; i < point.w.size(); ++i) compare(point.w[i], exact.router[i]);
      for (Eigen::Index i = 0; i < point.u.size(); ++i) compare(point.u[i], exact.expert[i]);
    }
  }
  return expected_zero(largest, 1e-7,
                       "central differences of step 1e-4: curvature about 1e-9, rounding 1e-11");
}

std::vector<Check> dikkala2023_theorem4_gradient_checks() {
  const std::string prefix = "dikkala2023.theorem4.gradient.", source = "Dikkala et al. 2023, appendix F";
  const std::string formula =
      "dL/du = 4(E[q^2] u - E[q] v), dL/dw = 4 E[q'(q |u|^2 - v.u)(z + t w/|w|)] by quadrature ";
  return {{prefix + "monte_carlo", source, formula + "is the mean of sampled gradients (in standard errors)",
           CheckVerdict::holds, [](Effort effort) { return check_gradient_by_sampling(effort); }},
          {prefix + "central_difference", source,
           formula + "is the derivative of the quadrature of L (largest deviation)", CheckVerdict::holds,
           [](Effort effort) { return check_gradient_by_differences(effort); }}};
}

}  // namespace moelab
