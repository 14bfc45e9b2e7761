#pragma once

/// Li, Lin, Duan, Liang, Shroff 2025, Theory on mixture-of-experts in continual learning: the closed forms of
/// linear tasks in sequence on isotropic data, against moelab's own training. Each check takes the law that
/// it tests, so that tests can pass a wrong one.
///
/// A sample of round t has s rows x ~ N(0, I_d), s < d, of a task w_n drawn uniformly from N. The round's
/// expert moves to the nearest interpolant, w ← w + X (X^T X)⁺ (y − X^T w), from w = 0. A step projects onto
/// a uniformly random subspace, so with r = 1 − s/d, E‖w_t − v‖² = r ‖w_{t−1} − v‖² + (1 − r) ‖w_{n_t} − v‖²
/// for every v. The propositions as printed were not found: these laws are derived.

#include <functional>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/data/task_pool.h"

namespace moelab {

/// W = mean_n ‖w_n‖² and D = N^{-2} Σ_{n,n'} ‖w_n − w_n'‖².
struct TaskMoments {
  double size = 0, spread = 0;
};
TaskMoments moments_of(const TaskPool& pool);

/// A law of round τ at time t ≥ τ.
using RoundLaw = std::function<double(const TaskMoments&, double r, int t, int tau)>;

/// E e_τ(w_t) = r^t W + D[(1 − r^t) − (1 − r) r^{t−τ}], e_τ(w) = ‖w − w_{n_τ}‖².
double single_expert_error(const TaskMoments& moments, double r, int t, int tau);
/// E[e_τ(w_t) − e_τ(w_τ)] = (r^t − r^τ) W + D (1 − r^{t−τ})(1 − r + r^τ).
double single_expert_forgetting(const TaskMoments& moments, double r, int t, int tau);

/// The largest deviation over τ of a single expert from the law, in standard errors.
CheckFinding check_single_expert(const CheckEffort& effort, const RoundLaw& law = single_expert_error);
CheckFinding check_single_expert_forgetting(const CheckEffort& effort,
                                            const RoundLaw& law = single_expert_forgetting);

/// A law of E‖w^m − w_n‖² given the tasks n_1 … n_L that expert m has had.
using SentTasksLaw = std::function<double(const TaskPool&, double r, const std::vector<int>& sent, int task)>;

/// r^L ‖w_n‖² + Σ_l (1 − r) r^{L−l} ‖w_{n_l} − w_n‖².
double sent_tasks_error(const TaskPool& pool, double r, const std::vector<int>& sent, int task);

/// The largest deviation over experts of a mixture whose router is noise alone, in standard errors.
CheckFinding check_sent_tasks(const CheckEffort& effort, const SentTasksLaw& law = sent_tasks_error);

/// The largest of |X^T w − y| after a round, and of the part of Δw that is orthogonal to the rows of the
/// round. `rate` scales the step.
CheckFinding check_interpolation(const CheckEffort& effort, double rate = 1);

}  // namespace moelab
