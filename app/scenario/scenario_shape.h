#pragma once

/// The part of a scenario's shape that a cell's configuration holds.

#include "sim/base/schema.h"

namespace moelab {

/// {"data", "model", "loss", "train", "metrics", "save", "evaluations"}: what arms and sweeps may change.
const Shape& config_shape();

}  // namespace moelab
