#pragma once

#include <vector>

#include "analysis/metrics/query_points.h"
#include "app/commands/array_files.h"
#include "sim/base/random.h"

namespace moelab {

/// The rows that overlap and silhouette are taken over, with their points in `space` and their likeliest
/// experts among those of all rows: all of them or, beyond kMaxAllRows, kQueryRows that are drawn.
QueryPoints query_points(const ArrayFiles& arrays, const NpyReader& space, const std::vector<int>& top1,
                         const Seeds& seeds);

}  // namespace moelab
