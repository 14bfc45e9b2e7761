#include "analysis/theory/dikkala2023/two_component_descent.h"

#include <cmath>

namespace moelab {
namespace {

constexpr int kReferenceDim = 10;
/// Runge-Kutta steps of the flow; twice as many change α by less than 1e-10.
constexpr int kFlowSteps = 400;

/// −dL*/dα at w = α z, u = u*(w): −4 (‖u‖² E[x₁ q q'] − vᵀu E[x₁ q']), x₁ = 1 + t.
double flow_speed(const TwoComponentPopulation& population, double alpha) {
  const RouterMoments m = population.moments(alpha, alpha);
  const double share = m.q / m.q_q;
  const double squared = population.problem().value.squaredNorm();
  return -4 * squared * share * (share * (m.q_dq + m.t_q_dq) - (m.dq + m.t_dq));
}

}  // namespace

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

TwoComponentState draw_start(Engine& engine, const TwoComponentProblem& problem, double scale, int side) {
  TwoComponentState state{Vector(problem.mean.size()), Vector(problem.value.size())};
  fill_normal(engine, scale, state.w.data(), static_cast<std::size_t>(state.w.size()));
  fill_normal(engine, scale, state.u.data(), static_cast<std::size_t>(state.u.size()));
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

}  // namespace moelab
