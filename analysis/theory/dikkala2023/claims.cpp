#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023.h"

namespace moelab {
namespace {

constexpr int kClaimInstances = 200;
/// The quadrature's error, 1e-13, relative to the smallest moments of an instance, which are above 1e-5.
constexpr double kQuadratureError = 1e-8;
/// Largest ‖w‖, and largest ‖w‖ min(ρ, 8.5 σ), up to which the quadrature states its error.
constexpr double kLargestNorm = 15, kLargestReach = 20;

/// A random problem, and a random w through its w·z and norm.
struct ClaimInstance {
  TwoComponentProblem problem;
  double signal = 0;
  double norm = 0;
};

/// d uniform on 2 … 20, σ on (0.1, 0.5), ρ on (0.3, 0.95), ‖w‖ log-uniform from 0.1 on, cos(w, z) uniform on
/// (0.01, 1). Infinite radius takes σ on (0.1, 1.5).
ClaimInstance draw_instance(const CheckEffort& effort, std::string_view id, int repetition, double radius) {
  Engine engine = check_stream(effort, id, repetition);
  ClaimInstance instance;
  const int dim = 2 + draw_index(engine, 19);
  const double width = std::isinf(radius) ? 1.4 : 0.4;
  instance.problem.mean = Vector::Unit(dim, 0);
  instance.problem.value = Vector::Ones(1);
  instance.problem.noise_std = 0.1 + width * draw_uniform(engine);
  instance.problem.radius = std::isinf(radius) ? radius : 0.3 + 0.65 * draw_uniform(engine);
  const double reach = std::min(instance.problem.radius, 8.5 * instance.problem.noise_std);
  const double largest = std::min(kLargestNorm, kLargestReach / reach);
  instance.norm = 0.1 * std::pow(largest / 0.1, draw_uniform(engine));
  instance.signal = instance.norm * (0.01 + 0.99 * draw_uniform(engine));
  return instance;
}

/// Counts how often `margin(instance)`, a relative margin, is clear of the quadrature's error.
CheckFinding share_of_instances(const CheckEffort& effort, std::string_view id, double radius,
                                const std::function<double(const ClaimInstance&)>& margin) {
  const int instances = kClaimInstances * effort.seeds;
  int strict = 0;
  double smallest = std::numeric_limits<double>::infinity(), largest_radius = 0;
  for (int i = 0; i < instances; ++i) {
    const ClaimInstance instance = draw_instance(effort, id, i, radius);
    const double found = margin(instance);
    smallest = smaller(smallest, found);
    largest_radius = std::max(largest_radius, instance.problem.radius);
    if (found > kQuadratureError) ++strict;
  }
  CheckFinding finding;
  finding.hypotheses = {{"|z| / rho > 1 (smallest, |z| = 1)", 1 / largest_radius, largest_radius < 1}};
  finding.predicted = 1;
  finding.measured = static_cast<double>(strict) / instances;
  finding.error_origin = "none: each instance is judged beyond the quadrature's error";
  finding.details = {{"instances", instances}, {"smallest relative margin", smallest}};
  return finding;
}

/// (right − left) as a share of the larger.
double relative_margin(double left, double right) {
  return (right - left) / std::max(std::abs(left), std::abs(right));
}

}  // namespace

double routing_function_as_printed(double score) {
  return 1 - 2 / (1 + std::exp(-score));
}

double routing_function(double score) {
  return 2 / (1 + std::exp(-score)) - 1;
}

RouterMoments exact_moments(const TwoComponentPopulation& population, double signal, double norm) {
  return population.moments(signal, norm);
}

RouterMoments moments_as_printed(const TwoComponentPopulation& population, double signal, double norm) {
  RouterMoments moments = population.moments(signal, norm);
  moments.q = -moments.q;
  moments.dq = -moments.dq;
  moments.t_dq = -moments.t_dq;
  return moments;
}

CheckFinding check_routing_derivative(const RoutingFunction& h) {
  constexpr double kStep = 1e-5;
  double largest = 0;
  for (int i = -40; i <= 40; ++i) {
    const double score = 0.25 * i;
    const double slope = (h(score + kStep) - h(score - kStep)) / (2 * kStep);
    largest = larger(largest, std::abs(slope - (1 - h(score) * h(score)) / 2));
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = 1e-9;
  finding.error_origin =
      "central differences of step 1e-5: rounding 2e-11 and curvature 1e-11, with a margin";
  return finding;
}

CheckFinding check_claim1(const CheckEffort& effort, const MomentRule& moments) {
  return share_of_instances(effort, "dikkala2023.claim1", 0, [&](const ClaimInstance& instance) {
    const RouterMoments m = moments(TwoComponentPopulation(instance.problem), instance.signal, instance.norm);
    return m.q / std::sqrt(m.q_q);
  });
}

CheckFinding check_claim2(const CheckEffort& effort, const MomentRule& moments) {
  return share_of_instances(effort, "dikkala2023.claim2", 0, [&](const ClaimInstance& instance) {
    const RouterMoments m = moments(TwoComponentPopulation(instance.problem), instance.signal, instance.norm);
    return relative_margin(m.q_dq * m.q, m.q_q * m.dq);
  });
}

CheckFinding check_claim3(const CheckEffort& effort, double radius, const MomentRule& moments) {
  return share_of_instances(effort, "dikkala2023.claim3", radius, [&](const ClaimInstance& instance) {
    const RouterMoments m = moments(TwoComponentPopulation(instance.problem), instance.norm, instance.norm);
    // x₁ = 1 + t.
    return relative_margin((m.q_dq + m.t_q_dq) * m.q, m.q_q * (m.dq + m.t_dq));
  });
}

std::vector<Check> dikkala2023_claim_checks() {
  const std::string source = "Dikkala et al. 2023, appendix F, ";
  return {
      {"dikkala2023.theorem4.derivative.as_printed", source + "proof of Claim 2",
       "q = 1 - 2 sigmoid(s) has the derivative (1 - q^2)/2 (largest deviation)", CheckVerdict::fails,
       [](const CheckEffort&) { return check_routing_derivative(routing_function_as_printed); }},
      {"dikkala2023.theorem4.derivative.corrected", source + "proof of Claim 2",
       "q = 2 sigmoid(s) - 1 has the derivative (1 - q^2)/2 (largest deviation)", CheckVerdict::holds,
       [](const CheckEffort&) { return check_routing_derivative(routing_function); }},
      {"dikkala2023.claim1.as_printed", source + "proof of Claim 1",
       "w.z > 0 implies E[q] > 0 for q = 1 - 2 sigmoid(w.x): share of random problems and w",
       CheckVerdict::fails,
       [](const CheckEffort& effort) { return check_claim1(effort, moments_as_printed); }},
      {"dikkala2023.claim1.corrected", source + "Claim 1",
       "w.z > 0 implies E[q] > 0 for q = 2 sigmoid(w.x) - 1: share of random problems and w",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_claim1(effort); }},
      {"dikkala2023.claim2", source + "Claim 2",
       "E[q' q] E[q] < E[q^2] E[q'] for q = 2 sigmoid(w.x) - 1: share of random problems and w",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_claim2(effort); }},
      {"dikkala2023.claim3", source + "Claim 3",
       "w = alpha z, alpha > 0 implies E[x1 q' q] E[q] < E[q^2] E[x1 q'], x1 = x.z: share of random problems "
       "and alpha",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_claim3(effort); }},
      {"dikkala2023.claim3_untruncated", source + "Claim 3",
       "Claim 3 for Gaussians that are not truncated: share of random problems and alpha",
       CheckVerdict::hypotheses_not_met, [](const CheckEffort& effort) {
         return check_claim3(effort, std::numeric_limits<double>::infinity());
       }}};
}

}  // namespace moelab
