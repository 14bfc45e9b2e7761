#pragma once

/// How a caller names a cell of a scenario.

#include <string>
#include <vector>

#include "app/scenario/scenario.h"

namespace moelab {

/// By its id, or by arm, seed and sweep point, the first of each that is left out.
struct CellChoice {
  std::string cell, arm, seed;
  std::vector<std::string> at;  ///< "path=value"
};

/// The scenario's cell. Throws UserError at the option of `moelab sample` that fits none: --cell, --arm,
/// --seed, --at.
const Cell& chosen_cell(const Scenario& scenario, const CellChoice& choice);

}  // namespace moelab
