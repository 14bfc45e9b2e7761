#pragma once

/// What the cells save that a figure of arrays shows, as much as is known of it before anything is trained.

#include <functional>
#include <string>
#include <vector>

#include "app/metrics/metric_needs.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// Calls `check` with each of these arms and, for each different model on different data that it has at the
/// sweep points of the figure's "where", the test set of which arrays are saved: that of the last phase.
void check_saved_cells(const Scenario& scenario, const std::vector<std::string>& arms, const Json& figure,
                       const std::function<void(const std::string& arm, const MetricSubject&)>& check);

}  // namespace moelab
