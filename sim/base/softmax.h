#pragma once

/// The softmax in double, for metrics and theory; training has its own in sim/base/kernels.

#include "sim/base/types.h"

namespace moelab {

/// log softmax of every row of `scores` (n, E), finite for all finite scores.
Matrix log_softmax(const Eigen::Ref<const Matrix>& scores);

/// softmax of every row of `scores` (n, E); −∞ has no mass.
Matrix softmax(const Eigen::Ref<const Matrix>& scores);

}  // namespace moelab
