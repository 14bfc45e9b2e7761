#include "analysis/theory/dikkala2023/theorem4_gradient.h"

#include <cmath>
#include <initializer_list>

#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr int kGradientDraws = 100000;
constexpr double kGradientDifferenceStep = 1e-4;
constexpr double kGradientDifferenceTolerance = 1e-7;
constexpr std::initializer_list<double> kNorms = {0.1, 1.0, 4.0};  // of w at the points of comparison

/// A point with ‖w‖ = norm in a random direction and u ~ N(0, I).
TwoComponentState draw_point(Engine& engine, const TwoComponentProblem& problem, double norm) {
  TwoComponentState point = draw_start(engine, problem, 1.0, 0);
  point.w *= norm / point.w.norm();
  return point;
}

/// z + g or −(z + g). The ball of the reference problem holds 98 % of the Gaussian.
Vector draw_input(Engine& engine, const TwoComponentProblem& problem, int side) {
  Vector g(problem.mean.size());
  do {
    fill_normal(engine, problem.noise_std, g.data(), static_cast<std::size_t>(g.size()));
  } while (g.norm() > problem.radius);
  return side * (problem.mean + g);
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

CheckFinding check_gradient_by_sampling(const CheckEffort& effort, const TwoComponentRule& rule) {
  Engine engine = check_stream(effort, "dikkala2023.theorem4.gradient.monte_carlo", 0);
  const TwoComponentProblem problem = reference_problem(engine);
  const TwoComponentPopulation population(problem);
  // More seeds are more draws, not more comparisons: the largest of many would pass any number of errors.
  const int draws = kGradientDraws * effort.seeds;
  double largest = 0;
  for (const double norm : kNorms) {
    const TwoComponentState point = draw_point(engine, problem, norm);
    const Vector exact = joined(rule(population, point));
    Vector sum = Vector::Zero(exact.size()), squares = sum;
    for (int i = 0; i < draws; ++i) {
      // One draw of each component: L is the sum over the two.
      const Vector gradient = sample_gradient(point, draw_input(engine, problem, 1), problem.value) +
                              sample_gradient(point, draw_input(engine, problem, -1), -problem.value) - exact;
      sum += gradient;
      squares += gradient.cwiseAbs2();
    }
    const Vector mean = sum / draws;
    const Vector variance = squares / draws - mean.cwiseAbs2();
    const Vector errors = (mean.array() / (variance.array() / draws).sqrt()).abs();
    largest = larger(largest, errors.maxCoeff<Eigen::PropagateNaN>());
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kStandardErrors;
  finding.error_origin = "4 standard errors";
  finding.details = {{"draws of each component", draws}};
  return finding;
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
        const double kept = coordinate;
        coordinate = kept + kGradientDifferenceStep;
        const double above = population.loss(point.w, point.u);
        coordinate = kept - kGradientDifferenceStep;
        const double below = population.loss(point.w, point.u);
        coordinate = kept;
        largest = larger(largest, std::abs((above - below) / (2 * kGradientDifferenceStep) - derivative));
      };
      for (Eigen::Index i = 0; i < point.w.size(); ++i) compare(point.w[i], exact.router[i]);
      for (Eigen::Index i = 0; i < point.u.size(); ++i) compare(point.u[i], exact.expert[i]);
    }
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kGradientDifferenceTolerance;
  finding.error_origin = "central differences of step 1e-4: curvature about 1e-9, rounding 1e-11";
  return finding;
}

std::vector<Check> dikkala2023_theorem4_gradient_checks() {
  const std::string prefix = "dikkala2023.theorem4.gradient.", source = "Dikkala et al. 2023, appendix F";
  const std::string formula =
      "dL/du = 4(E[q^2] u - E[q] v), dL/dw = 4 E[q'(q |u|^2 - v.u)(z + t w/|w|)] by quadrature ";
  return {{prefix + "monte_carlo", source, formula + "is the mean of sampled gradients (in standard errors)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_gradient_by_sampling(effort); }},
          {prefix + "central_difference", source,
           formula + "is the derivative of the quadrature of L (largest deviation)", CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_gradient_by_differences(effort); }}};
}

}  // namespace moelab
