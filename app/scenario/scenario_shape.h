#pragma once

/// The part of a scenario's shape that a cell's configuration holds.

#include "app/json/schema.h"

namespace moelab {

/// {"data", "model", "loss", "train", "metrics", "save", "evaluations"}: what arms and sweeps may change.
const Shape& config_shape();
/// Of "data", and of what evaluations measure on.
const Shape& data_shape();

}  // namespace moelab
