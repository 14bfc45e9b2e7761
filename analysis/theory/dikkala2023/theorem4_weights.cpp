#include <cmath>

#include "analysis/theory/dikkala2023/theorem4.h"
#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr int kWeightDraws = 20, kWeightRows = 2000;
/// The weight of the component at z; the other one has the rest.
constexpr double kWeightsAtMean[] = {0.01, 0.2, 0.9};

/// The term of one component in the loss E‖q u − y‖², and its gradient (w, then u).
struct ComponentTerm {
  double loss = 0;
  Vector gradient;
};

/// Over x = sign (z + g), y = sign v, for the rows g of `noise`; q = tanh((wᵀx + bias) / 2).
ComponentTerm component_term(const TwoComponentProblem& problem, const TwoComponentState& at, double bias,
                             const Matrix& noise, double sign) {
  const Eigen::Index d = at.w.size(), o = at.u.size();
  ComponentTerm term{0, Vector::Zero(d + o)};
  for (Eigen::Index i = 0; i < noise.rows(); ++i) {
    const Vector x = sign * (problem.mean + noise.row(i).transpose());
    const double q = std::tanh((at.w.dot(x) + bias) / 2);
    const Vector residual = q * at.u - sign * problem.value;
    term.loss += residual.squaredNorm();
    term.gradient.head(d) += residual.dot(at.u) * (1 - q * q) * x;
    term.gradient.tail(o) += 2 * q * residual;
  }
  return term;
}

/// Rows of g ~ N(0, σ² I) given ‖g‖ ≤ ρ.
Matrix truncated_noise(const TwoComponentProblem& problem, Engine& engine) {
  Matrix noise(kWeightRows, problem.mean.size());
  for (Eigen::Index i = 0; i < noise.rows(); ++i) {
    do noise.row(i) = draw_normals(engine, 1, static_cast<int>(noise.cols()), problem.noise_std);
    while (noise.row(i).norm() > problem.radius);
  }
  return noise;
}

}  // namespace

CheckFinding check_weights(const CheckEffort& effort, double bias) {
  double loss = 0, gradient = 0;
  for (int i = 0; i < kWeightDraws * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "dikkala2023.theorem4.weights", i);
    const TwoComponentProblem problem = reference_problem(engine);
    const TwoComponentState at = draw_start(engine, problem, 1, 0);
    const Matrix noise = truncated_noise(problem, engine);
    const ComponentTerm here = component_term(problem, at, bias, noise, 1);
    const ComponentTerm there = component_term(problem, at, bias, noise, -1);
    const double even = (here.loss + there.loss) / 2;
    const Vector even_gradient = (here.gradient + there.gradient) / 2;
    for (const double weight : kWeightsAtMean) {
      loss = larger(loss, std::abs(weight * here.loss + (1 - weight) * there.loss - even) / even);
      gradient =
          larger(gradient, (weight * here.gradient + (1 - weight) * there.gradient - even_gradient).norm() /
                               even_gradient.norm());
    }
  }
  CheckFinding finding;
  finding.measured = larger(loss, gradient);
  finding.error_bound = 1e-12;
  finding.error_origin = "rounding of sums over 2000 rows";
  finding.details = {{"largest relative difference of losses", loss},
                     {"largest relative difference of gradients", gradient}};
  return finding;
}

}  // namespace moelab
