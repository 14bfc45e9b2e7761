#pragma once

/// The parts of check(TrainOptions), between which an experiment checks what concerns its data and model.

#include "sim/train/train_options.h"

namespace moelab {

/// Fits have no rate and no batches, and work in double; optimizers have a rate and no start.
void check_rule(const TrainOptions& options);

/// Sample gradients have batches, population gradients a rule. Messages name the gradient by gradient_name().
void check_batches(const TrainOptions& options);
void check_epochs(const TrainOptions& options);

/// Steps or epochs.
void check_length(const TrainOptions& options);

/// `"sample"` or `"population"`, quoted.
const char* gradient_name(const TrainOptions& options);

}  // namespace moelab
