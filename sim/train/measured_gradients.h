#pragma once

/// How well a population gradient is known.

#include "sim/data/problem.h"
#include "sim/model/model.h"
#include "sim/train/batches.h"

namespace moelab {

struct GradientError {
  double norm = 0;  ///< ‖ḡ‖, ḡ the mean over R independent rules of the gradient in all trained parameters
  double standard_error =
      0;  ///< of a single rule's gradient: √(Σ_j s_j²), s_j² the variance over rules (ddof 1)
};

/// From `kGradientRules` randomisations of the rule that `options` (with gradient "population") describe,
/// drawn for this purpose alone and new at every `moment`.
constexpr int kGradientRules = 8;
template <class Real>
GradientError population_gradient_error(const Model<Real>& model, const Objective<Real>& objective,
                                        const Problem& problem, const TrainOptions& options,
                                        const Seeds& seeds, std::uint64_t moment, Workspace<Real>& workspace);

// Attacks on the inputs of a trained model, see sim/data/contamination.

/// Inputs (n, s·d) that raise the model's loss on `clean`, no entry further than the budget from the clean
/// one. `contamination` is an attack. Gradients are those of the task loss under the training gating, a
/// router's own statistics held fixed; samples are attacked in blocks, the same at every call.
template <class Real>
Matrix attacked_inputs(const ContaminationOptions& contamination, const Model<Real>& model,
                       const TaskLoss<Real>& loss, const Dataset& clean, const Seeds& seeds,
                       Workspace<Real>& workspace);

}  // namespace moelab
