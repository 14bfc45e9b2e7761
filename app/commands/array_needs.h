#pragma once

#include "app/commands/array_analysis.h"
#include "app/commands/array_files.h"

namespace moelab {

/// Names, among the metrics that are left out, those that can be taken of arrays (metrics whose needs all
/// have an argument, app/metrics/metric_needs.h) and lack some, with the arguments that are missing.
void skip_not_given(const ArrayFiles& arrays, int top_k, ArrayAnalysis& analysis);

}  // namespace moelab
