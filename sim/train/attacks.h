#pragma once

/// Attacks on the inputs of a trained model, see sim/data/contamination.

#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {

/// Inputs (n, s·d) that raise the model's loss on `clean`, no entry further than the budget from the clean
/// one. `contamination` is an attack. Gradients are those of the task loss under the training gating, a
/// router's own statistics held fixed; samples are attacked in blocks, the same at every call.
template <class Real>
Matrix attacked_inputs(const ContaminationOptions& contamination, const Model<Real>& model,
                       const TaskLoss<Real>& loss, const Dataset& clean, const Seeds& seeds,
                       Workspace<Real>& workspace);

}  // namespace moelab
