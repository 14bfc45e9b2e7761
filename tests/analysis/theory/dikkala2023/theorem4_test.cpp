#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/dikkala2023.h"

namespace moelab::theorem4_test {
namespace {

const CheckEffort kEffort;

/// |w| and |u - v|/|v| that reference.py prints after 100, 1000 and 10000 steps.
constexpr double kReferenceNorms[] = {1.498912, 3.337681, 5.393375};
constexpr double kReferenceDistances[] = {5.723809e-01, 8.097195e-02, 1.238096e-02};
/// Starts differ; they shift the trajectory by a few steps, which weigh less the later it is.
constexpr double kStartEffects[] = {0.05, 0.01, 0.001};

/// The exact gradient changed by `change`.
template <class Change>
TwoComponentRule wrong(Change change) {
  return [change](const TwoComponentPopulation& population, const TwoComponentState& state) {
    TwoComponentGradient gradient = exact_gradient(population, state);
    change(population.problem(), state, gradient);
    return gradient;
  };
}

const auto kMeanInsteadOfSum =
    wrong([](const TwoComponentProblem&, const TwoComponentState&, TwoComponentGradient& gradient) {
      gradient.router /= 2;
      gradient.expert /= 2;
    });
/// Turned by 0.01 rad towards the first axis, or so.
const auto kTilted =
    wrong([](const TwoComponentProblem&, const TwoComponentState&, TwoComponentGradient& gradient) {
      gradient.router[0] += 0.01 * gradient.router.norm();
    });
const auto kWeightDecay = wrong([](const TwoComponentProblem&, const TwoComponentState& state,
                                   TwoComponentGradient& gradient) { gradient.router += 0.05 * state.w; });
const auto kOtherTarget = wrong(
    [](const TwoComponentProblem& problem, const TwoComponentState& state, TwoComponentGradient& gradient) {
      gradient.expert -= (state.w.dot(problem.mean) < 0 ? -0.02 : 0.02) * problem.value;
    });
/// The second term of ∂L/∂w left out.
const TwoComponentRule kOnlyAlongMean = [](const TwoComponentPopulation& population,
                                           const TwoComponentState& state) {
  const RouterMoments m = population.moments(state.w);
  TwoComponentGradient gradient = exact_gradient(population, state);
  gradient.router = 4 * (state.u.squaredNorm() * m.q_dq - population.problem().value.dot(state.u) * m.dq) *
                    population.problem().mean;
  return gradient;
};

}  // namespace

TEST_CASE("theorem 4: the trajectory of the independent simulation") {
  Engine engine(4);
  const TwoComponentProblem problem = reference_problem(engine);
  const TwoComponentPopulation population(problem);
  const TwoComponentState start = draw_start(engine, problem, 1e-3, 1);
  const std::vector<TwoComponentState> states = descend(population, start, {}, {100, 1000, 10000});
  for (std::size_t i = 0; i < states.size(); ++i) {
    CHECK(states[i].w.norm() == doctest::Approx(kReferenceNorms[i]).epsilon(kStartEffects[i]));
    CHECK(expert_distance(problem, states[i]) ==
          doctest::Approx(kReferenceDistances[i]).epsilon(kStartEffects[i]));
  }
  const TwoComponentState slower = descend(population, start, {}, {10000}, kMeanInsteadOfSum).front();
  CHECK_FALSE(slower.w.norm() == doctest::Approx(kReferenceNorms[2]).epsilon(kStartEffects[2]));
}

TEST_CASE("theorem 4: a descent recorded on the way is the same descent") {
  Engine engine(6);
  const TwoComponentProblem problem = reference_problem(engine);
  const TwoComponentPopulation population(problem);
  const TwoComponentState start = draw_start(engine, problem, 1e-3, -1);
  CHECK(start.w.dot(problem.mean) < 0);
  const std::vector<TwoComponentState> states = descend(population, start, {}, {0, 1, 50});
  CHECK(states[0].w == start.w);
  CHECK(states[1].u == start.u - 0.5 * exact_gradient(population, start).expert);
  CHECK(states[2].w == descend(population, start, {}, {50}).front().w);
}

TEST_CASE("theorem 4: alignment from both sides; with a tilted gradient it fails") {
  for (const int side : {1, -1}) {
    CHECK(verdict_of(check_alignment(kEffort, side)) == CheckVerdict::holds);
    CHECK(verdict_of(check_alignment(kEffort, side, kTilted)) == CheckVerdict::fails);
  }
}

TEST_CASE("theorem 4: norm and its growth; halved gradients and weight decay fail") {
  CHECK(verdict_of(check_norm(kEffort, 10000, 5.39)) == CheckVerdict::regression);
  CHECK(verdict_of(check_norm(kEffort, 100000, 7.24)) == CheckVerdict::regression);
  CHECK(verdict_of(check_norm(kEffort, 10000, 5.39, kMeanInsteadOfSum)) == CheckVerdict::fails);
  CHECK(verdict_of(check_norm(kEffort, 100000, 7.24, kMeanInsteadOfSum)) == CheckVerdict::fails);
  CHECK(verdict_of(check_growth(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_growth(kEffort, kMeanInsteadOfSum)) == CheckVerdict::fails);
  CHECK(verdict_of(check_log_rate(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_log_rate(kEffort, kWeightDecay)) == CheckVerdict::fails);
  CHECK(verdict_of(check_log_rate(kEffort, kMeanInsteadOfSum)) == CheckVerdict::fails);
}

TEST_CASE("theorem 4: experts tend to the targets; pulled elsewhere they fail") {
  CHECK(verdict_of(check_experts(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_experts(kEffort, kOtherTarget)) == CheckVerdict::fails);
}

TEST_CASE("theorem 4: weights of the components do not matter; behind a biased router they do") {
  CHECK(verdict_of(check_weights(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_weights(kEffort, 0.01)) == CheckVerdict::fails);
}

TEST_CASE("theorem 4: the share that changes side; with other rates in the descent it fails") {
  CHECK(verdict_of(check_side(kEffort, {})) == CheckVerdict::holds);
  // The prediction is for η_u/η_w = 10, the descent has 1/10 of that.
  const auto slow = wrong([](const TwoComponentProblem&, const TwoComponentState&,
                             TwoComponentGradient& gradient) { gradient.expert /= 10; });
  CHECK(verdict_of(check_side(kEffort, {}, slow)) == CheckVerdict::fails);
}

TEST_CASE("theorem 4 without its hypotheses: what then happens") {
  const CheckFinding slow = check_side(kEffort, {0.5, 0.005});
  CHECK(verdict_of(slow) == CheckVerdict::hypotheses_not_met);
  CHECK(std::abs(slow.measured - slow.predicted) < slow.error_bound);
  CHECK(slow.measured > 0.4);
  const CheckFinding whole = check_untruncated(kEffort);
  CHECK(verdict_of(whole) == CheckVerdict::hypotheses_not_met);
  CHECK(std::abs(whole.measured - whole.predicted) < whole.error_bound);
  const CheckFinding decayed = check_untruncated(kEffort, kWeightDecay);
  CHECK_FALSE(std::abs(decayed.measured - decayed.predicted) < decayed.error_bound);
}

TEST_CASE("theorem 4: the gradient against sampling and differences; a term left out or a factor fails") {
  CHECK(verdict_of(check_gradient_by_sampling(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_gradient_by_differences(kEffort)) == CheckVerdict::holds);
  for (const TwoComponentRule& rule : {kOnlyAlongMean, TwoComponentRule(kMeanInsteadOfSum)}) {
    CHECK(verdict_of(check_gradient_by_sampling(kEffort, rule)) == CheckVerdict::fails);
    CHECK(verdict_of(check_gradient_by_differences(kEffort, rule)) == CheckVerdict::fails);
  }
}

TEST_CASE("theorem 4: a descent that breaks down gives no verdict") {
  const auto broken =
      wrong([](const TwoComponentProblem&, const TwoComponentState&, TwoComponentGradient& gradient) {
        gradient.router.setConstant(std::nan(""));
      });
  CHECK(verdict_of(check_growth(kEffort, broken)) == CheckVerdict::inconclusive);
  CHECK(verdict_of(check_norm(kEffort, 1000, 3.3, broken)) == CheckVerdict::inconclusive);
  CHECK(verdict_of(check_alignment(kEffort, 1, broken)) == CheckVerdict::inconclusive);
  CHECK(verdict_of(check_gradient_by_sampling(kEffort, broken)) == CheckVerdict::inconclusive);
  CHECK(verdict_of(check_gradient_by_differences(kEffort, broken)) == CheckVerdict::inconclusive);
}

}  // namespace moelab::theorem4_test
