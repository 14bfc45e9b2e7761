#pragma once

/// Population gradient descent on the two-component problem (Dikkala et al. 2023, appendix F).

#include <functional>
#include <vector>

#include "analysis/theory/dikkala2023/two_component.h"
#include "sim/base/random.h"

namespace moelab {

struct TwoComponentState {
  Vector w;  ///< router (d)
  Vector u;  ///< expert (o)
};

struct DescentRates {
  double router = 0.05;  ///< η_w
  double expert = 0.5;   ///< η_u
};

/// The gradient that the descent follows: exact, or deliberately wrong.
using TwoComponentRule =
    std::function<TwoComponentGradient(const TwoComponentPopulation&, const TwoComponentState&)>;

TwoComponentGradient exact_gradient(const TwoComponentPopulation& population, const TwoComponentState& state);

/// Simultaneous updates w ← w − η_w ∂L/∂w, u ← u − η_u ∂L/∂u from `start`. Returns the states after
/// record[0] < record[1] < … steps.
std::vector<TwoComponentState> descend(const TwoComponentPopulation& population,
                                       const TwoComponentState& start, const DescentRates& rates,
                                       const std::vector<int>& record,
                                       const TwoComponentRule& rule = exact_gradient);

/// The problem of the reference trajectory: z a random unit vector in d = 10, σ = 0.15, v = (1, −2), ρ = 0.7.
TwoComponentProblem reference_problem(Engine& engine);

/// Entries of w and u drawn N(0, scale²). `side` +1 or −1 then turns w to wᵀz > 0 or < 0; 0 leaves it.
TwoComponentState draw_start(Engine& engine, const TwoComponentProblem& problem, double scale, int side);

/// cos(w, z).
double alignment(const TwoComponentProblem& problem, const TwoComponentState& state);

/// ‖u − sign(wᵀz) v‖ / ‖v‖.
double expert_distance(const TwoComponentProblem& problem, const TwoComponentState& state);

/// ‖w‖ after `steps` of the flow that the proof of Theorem 4 reduces the descent to, w = α z and u = u*(α z):
///   dα/ds = −η_w dL*/dα, L*(α) = 2 ‖v‖² (1 − E[q]²/E[q²]),
/// from α = `norm` at step `first`, by the classical Runge-Kutta method in log s. Holds for ‖z‖ = 1.
double reduced_flow(const TwoComponentPopulation& population, double router_rate, double norm, double first,
                    double steps);

}  // namespace moelab
