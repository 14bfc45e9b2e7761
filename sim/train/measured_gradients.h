#pragma once

/// The accuracy of population gradients, and attacks that use gradients in the inputs.

#include "sim/data/problem.h"
#include "sim/model/model.h"
#include "sim/train/batches.h"

namespace moelab {

/// Randomised rules of a measurement, R.
constexpr int kGradientRules = 8;

struct GradientError {
  /// ‖ḡ‖, where ḡ (P) is the mean over R rules of the gradient in all P trained parameters. On average ‖ḡ‖²
  /// exceeds the square of the exact norm by standard_error² / R.
  double norm = 0;
  double standard_error = 0;  ///< of one rule's gradient: √(Σ_j s_j²), s_j² the variance over rules (ddof 1)
};

/// Measures the error of the population gradient from R = `kGradientRules` independent randomisations of the
/// rule. `options` (with gradient "population") describe the rule. Training does not use these
/// randomisations, and every `moment` draws new ones.
template <class Real>
GradientError population_gradient_error(const Model<Real>& model, const Objective<Real>& objective,
                                        const Problem& problem, const TrainOptions& options,
                                        const Seeds& seeds, std::uint64_t moment, Workspace<Real>& workspace);

// Attacks on the inputs of a trained model; see sim/data/contamination.

/// Inputs (n, s·d) that raise the model's loss on `clean`. No entry differs from the clean entry by more than
/// the budget.
///
/// `contamination` must be an attack. The attack follows the gradient of the task loss under the training
/// gating. It holds a router's own statistics fixed. It works on blocks of samples, which are the same at
/// every call.
template <class Real>
Matrix attacked_inputs(const ContaminationOptions& contamination, const Model<Real>& model,
                       const TaskLoss<Real>& loss, const Dataset& clean, const Seeds& seeds,
                       Workspace<Real>& workspace);

}  // namespace moelab
