#pragma once

/// What cannot be told before a problem is drawn: the shape of its rows, maps from uniform variables.

#include <string>

#include "app/json/json.h"
#include "sim/train/experiment.h"

namespace moelab {

/// A model that reads rows of `data` can read those of `other`, of an evaluation or a phase: small problems
/// are drawn of both, unless they differ in what has no part in the shape alone. Throws UserError at `place`.
void check_same_rows(const Json& data, const Json& other, const std::string& place);

/// A quasi-random rule has a generator with a map from uniform variables, the best of several starts targets
/// of one number. `data` are those of the configuration. Throws InvalidOption at "train.…".
void check_training_on(const Json& data, const TrainOptions& train);

}  // namespace moelab
