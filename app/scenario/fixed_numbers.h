#pragma once

/// Numbers of a scenario that expressions of its claims and figures may name though they are not swept, such
/// as data.clusters in "model.experts / data.clusters".

#include <map>
#include <string>

#include "app/scenario/scenario.h"

namespace moelab {

/// The paths that expressions name and at which every cell has the same number, with that number.
std::map<std::string, double> fixed_numbers(const Scenario& scenario);

}  // namespace moelab
