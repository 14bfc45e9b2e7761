#pragma once

/// How far two runs' curves of a metric over training are apart.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"

namespace moelab {

/// √((1/T) Σ_t (m_t − m'_t)²) over the T recorded steps (Guo et al. 2025, Eq. 43), the start included. None
/// where the runs recorded different steps or none, or one lacks the metric at a step.
std::optional<double> curve_rmse(const std::vector<TraceEntry>& left, const std::vector<TraceEntry>& right,
                                 const std::string& metric);

}  // namespace moelab
