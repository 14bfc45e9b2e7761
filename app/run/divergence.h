#pragma once

/// What to try when training diverged in every cell.

#include <string>

#include "analysis/stats/result_table.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// "every cell diverged; try a smaller learning rate: the largest is train.lr.router = 10; …" for a run whose
/// cells are all diverged. The labels' variance is that of the largest among the cells, from the losses of
/// their first step; where `table` holds none, nothing is said of it.
std::string divergence_hint(const Scenario& scenario, const ResultTable& table);

}  // namespace moelab
