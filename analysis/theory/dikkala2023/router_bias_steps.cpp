#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>

#include "analysis/theory/dikkala2023/biased_mixture.h"
#include "analysis/theory/dikkala2023/router_bias.h"
#include "sim/base/numerics.h"

namespace moelab::router_bias {
namespace {

constexpr int kStepMixtures = 12;
/// Of a Gauss rule in panels of length 2, and of the tail beyond them.
constexpr double kPanelError = 1e-7;
/// Of sums of a few terms of order one.
constexpr double kStepRounding = 1e-12;

/// Random mixtures with targets of their own at a few places of x₁, each with the law of x₂ given.
struct StepProblem {
  std::vector<Sample<double>> samples;
  Point<double> theta;
};

/// Values of x₂ with their masses.
std::vector<std::pair<double, double>> law_values(IrrelevantLaw law) {
  if (law == IrrelevantLaw::two_point) return {{-1, 0.5}, {1, 0.5}};
  using Rule = boost::math::quadrature::gauss<double, 20>;
  std::vector<std::pair<double, double>> values;
  for (int panel = 0; panel < 10; ++panel) {
    for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
      for (const double side : {-1.0, 1.0}) {
        const double x = 2 * panel + 1 + side * Rule::abscissa()[i];
        const double mass = Rule::weights()[i] * std::exp(-x) / 2;
        values.insert(values.end(), {{x, mass}, {-x, mass}});
      }
    }
  }
  return values;
}

StepProblem draw_step_problem(Engine& engine, IrrelevantLaw law) {
  constexpr int kPlaces = 4;
  const Matrix places = draw_normals(engine, kPlaces, 2, 2),
               targets = draw_normals(engine, kPlaces, kOutputs, 2);
  StepProblem problem;
  for (int p = 0; p < kPlaces; ++p)
    for (const auto& [x2, mass] : law_values(law))
      problem.samples.push_back(
          {{places(p, 0), places(p, 1), x2}, {targets(p, 0), targets(p, 1)}, mass / kPlaces});
  const Matrix theta = draw_normals(engine, 1, kAll);
  std::copy_n(theta.data(), theta.size(), problem.theta.begin());
  return problem;
}

/// θ with W₂ → a W₂ and b → b + c W₂.
Point<double> stepped(Point<double> theta, double a, double c) {
  for (int e = 0; e < kRouted; ++e) {
    double& weight = theta[size(e * kInputs + kInputs - 1)];
    theta[size(kFree + e)] += c * weight;
    weight *= a;
  }
  return theta;
}

/// Newton's steps in b alone, as long as the loss falls: what a step then gains, it gains by W₂.
void descend_in_bias(StepProblem& problem) {
  Local<double> local = local_loss(problem.samples, problem.theta, true);
  for (int step = 0; step < 12; ++step) {
    Matrix hessian(kRouted, kRouted);
    Vector gradient(kRouted);
    for (int e = 0; e < kRouted; ++e) {
      gradient[e] = local.gradient[size(kFree + e)];
      for (int f = 0; f < kRouted; ++f) hessian(e, f) = local.hessian[size(kFree + e)][size(kFree + f)];
    }
    const SymmetricEigen eigen = symmetric_eigen(hessian);
    const Vector lengths = eigen.values.cwiseAbs().cwiseMax(1e-3);
    const Vector change = eigen.vectors * (eigen.vectors.transpose() * gradient).cwiseQuotient(lengths);
    Point<double> next = problem.theta;
    for (int e = 0; e < kRouted; ++e) next[size(kFree + e)] -= change[e];
    Local<double> moved = local_loss(problem.samples, next, true);
    if (!(moved.value < local.value)) return;
    problem.theta = next;
    local = moved;
  }
}

double irrelevant_square(const Point<double>& theta) {
  double square = 0;
  for (int e = 0; e < kRouted; ++e) square += std::pow(theta[size(e * kInputs + kInputs - 1)], 2);
  return square;
}

/// The loss at (a W₂, b + c W₂).
double loss_at(const StepProblem& problem, double a, double c) {
  return local_loss(problem.samples, stepped(problem.theta, a, c), false).value;
}

}  // namespace

CheckFinding check_global_step(const CheckEffort& effort, IrrelevantLaw law, bool shift) {
  double smallest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kStepMixtures * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "dikkala2023.theorem1.global", i);
    StepProblem problem = draw_step_problem(engine, law);
    descend_in_bias(problem);
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [value, mass] : law_values(law)) {
      if (mass < 1e-6) continue;  // fewer candidates can only understate the decrease
      best = std::min(best, loss_at(problem, 0, shift ? value : 0));
    }
    const double decrease = loss_at(problem, 1, 0) - best;
    smallest = std::min(smallest, decrease - kPenalty * irrelevant_square(problem.theta));
  }
  CheckFinding finding;
  finding.relation = Relation::at_least;
  finding.measured = smallest;
  finding.error_bound = law == IrrelevantLaw::two_point ? kStepRounding : kPanelError;
  finding.error_origin = law == IrrelevantLaw::two_point ? "rounding" : "the rule for x2";
  return finding;
}

CheckFinding check_local_step(const CheckEffort& effort, bool shift) {
  double smallest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kStepMixtures * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "dikkala2023.theorem1.self_decomposable", i);
    StepProblem problem = draw_step_problem(engine, IrrelevantLaw::laplace);
    descend_in_bias(problem);
    const double before = loss_at(problem, 1, 0);
    for (const double a : {0.99, 0.9}) {
      double best = loss_at(problem, a, 0);
      for (double z = -6; shift && z <= 6; z += 0.25) best = std::min(best, loss_at(problem, a, z));
      smallest =
          std::min(smallest, (before - best) / (kPenalty * (1 - a * a) * irrelevant_square(problem.theta)));
    }
  }
  CheckFinding finding;
  finding.relation = Relation::at_least;
  finding.predicted = 1;
  finding.measured = smallest;
  finding.error_bound = kPanelError / (kPenalty * 0.02);
  finding.error_origin = "the rule for x2";
  return finding;
}

}  // namespace moelab::router_bias
