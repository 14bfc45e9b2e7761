#pragma once

/// How a caller names a cell of a scenario.

#include <optional>
#include <string>
#include <vector>

#include "app/scenario/scenario.h"
#include "sim/data/problem.h"

namespace moelab {

/// By its id, or by arm, seed and sweep point, the first of each that is left out.
struct CellChoice {
  std::string cell, arm, seed;
  std::vector<std::string> at;  ///< "path=value"
};

/// The scenario's cell. Throws UserError at the option of `moelab sample` that fits none: --cell, --arm,
/// --seed, --at.
const Cell& chosen_cell(const Scenario& scenario, const CellChoice& choice);

/// The data of a cell: what a phase trains and tests on.
struct SampledSets {
  std::string prefix;  ///< "<phase>." of a phase before the last; empty as for metrics
  Layout layout;
  std::optional<Dataset> train;  ///< none of fresh points at every step
  Dataset test;                  ///< contaminated as data.contamination says, unless by an attack
  std::string attack;            ///< that needs the trained model; empty for none
};

/// Those of every phase, the last at the end; of a cell without phases its own.
std::vector<SampledSets> sampled_sets(const Cell& cell);
/// Those of the last phase alone.
SampledSets last_sampled_sets(const Cell& cell);

}  // namespace moelab
