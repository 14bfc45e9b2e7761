#pragma once

#include "analysis/metrics/voronoi.h"
#include "sim/data/mixing_measure.h"

namespace moelab {

/// What voronoi_errors() compares of a measure.
inline MixtureComponents components_of(const MixingMeasure& measure) {
  return {effective_directions(measure), gates_at_zero(measure), measure.slope, measure.intercept,
          shifted_columns(measure.form, static_cast<int>(measure.gate.cols()))};
}

}  // namespace moelab
