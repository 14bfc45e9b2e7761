#pragma once

/// Figures of an analysis.

#include <cstddef>
#include <vector>

#include "app/cli/analyze.h"
#include "plots/painters/gnuplot.h"

namespace moelab {

/// Figures of loads and of metrics over layers. Heat maps show domains with experts and pairs of experts.
/// They also show pairs of layers. The analysis must have the data. With many layers, a figure shows evenly
/// spaced ones and its caption says so.
std::vector<Drawing> analysis_drawings(const ArrayAnalysis& analysis);

/// At most `most` evenly spaced places below `count`. The first and the last place are among them.
std::vector<std::size_t> spread_places(std::size_t count, std::size_t most);

}  // namespace moelab
