#pragma once

/// Problems of Theorem 1 (formally Theorem 3) of Dikkala et al. 2023: x = Q₁ x₁ + Q₂ x₂ with an orthogonal
/// (Q₁, Q₂), a target y(x₁) that depends only on the part of x in V = span Q₁, and x₂ ~ N(0, I) independent
/// of x₁. The model is a softmax mixture of 3 constant experts with biases; d = 4, d' = 2, o = 3, λ₁ = λ₂ =
/// 0.01.
///
/// The theorem asks nothing of x₁. Its distribution is that of a few points, and x₂ is integrated out by a
/// Gauss-Hermite rule, so that each problem is an instance of the theorem and its expectations are exact up
/// to that rule.

#include "analysis/theory/dikkala2023/soft_mixture_population.h"
#include "sim/base/random.h"

namespace moelab {

struct SubspaceProblem {
  SoftMixturePopulation population;
  Matrix relevant;    ///< Q₁ (d, d'), a basis of V
  Matrix irrelevant;  ///< Q₂ (d, d − d')
};

/// λ₁ and λ₂.
constexpr double kSubspacePenalty = 0.01;
/// Problems that a check draws, times its seeds.
constexpr int kSubspaceRepetitions = 8;
/// The norm below which a gradient counts as 0.
constexpr double kStationary = 1e-9;
/// Uniforms from which one x is computed: the component of x₁, its normals, and those of x₂.
constexpr int kSubspaceUniforms = 5;

/// Components of a mixture in V, and the values that y takes on the cells of their centres.
struct SignalMixture {
  Matrix centres;  ///< (k, d')
  Matrix values;   ///< (k, o)
};
SignalMixture draw_signal_mixture(Engine& engine);

/// Axes as bases, or a random rotation of them; the population is left empty.
SubspaceProblem draw_subspaces(Engine& engine, bool rotated);

/// x₁ at quasi-random points of a random mixture, y the value of the nearest centre; x₂ integrated out.
SubspaceProblem draw_subspace_problem(Engine& engine, bool rotated);

/// The population as plain points of equal weight, from uniforms (n, kSubspaceUniforms).
void set_points(SubspaceProblem& problem, const SignalMixture& mixture, const Matrix& uniforms);

/// Entries N(0, 1), and N(0, 1/9) in W₂, for which the rule for x₂ is good to 1e-3.
Vector draw_parameters(Engine& engine, const SubspaceProblem& problem);

/// A stationary point with W₂ ≠ 0: θ is drawn, and targets y(x₁) are solved for, ∂L/∂θ being linear in them.
struct Saddle {
  SubspaceProblem problem;
  Vector theta;
};
Saddle draw_saddle(Engine& engine);

/// W₂ = W Q₂ (E, d − d').
Matrix irrelevant_part(const SubspaceProblem& problem, const Vector& theta);
/// ‖W₂‖ / ‖W‖.
double irrelevant_share(const SubspaceProblem& problem, const Vector& theta);
/// The nodes of the rule for x₂ (q, d − d'), and their weights (q), of sum 1.
struct NormalRule {
  Matrix points;
  Vector weight;
};
const NormalRule& irrelevant_rule();

}  // namespace moelab
