#pragma once

/// The shapes of a scenario's `model`, `loss` and `train`, built from the tables of routers, experts,
/// gatings, losses, optimizers and schedules.

#include "sim/base/schema.h"

namespace moelab {

const Shape& model_shape();
const Shape& loss_shape();
const Shape& train_shape();

}  // namespace moelab
