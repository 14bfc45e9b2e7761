#pragma once

/// One cell of a scenario, and the data that it draws: shared by `sample` and the Python package.

#include <optional>
#include <string>
#include <vector>

#include "app/scenario/scenario.h"
#include "sim/data/problem.h"

namespace moelab {

/// A cell by its id, or by arm, seed and sweep point. Each of the latter that is left out is the first.
struct CellChoice {
  std::string cell, arm, seed;
  std::vector<std::string> at;  ///< "path=value"
};

/// The scenario's cell. Throws UserError at the option of `moelab sample` that fits no cell: --cell, --arm,
/// --seed, --at.
const Cell& chosen_cell(const Scenario& scenario, const CellChoice& choice);

/// The data of a cell that a phase trains and tests on.
struct SampledSets {
  std::string prefix;  ///< "<phase>." of a phase before the last; empty otherwise, as for metrics
  Layout layout;
  std::optional<Dataset> train;  ///< none where every step draws fresh points
  Dataset test;                  ///< contaminated as data.contamination says, unless by an attack
  std::string attack;            ///< the contamination that needs the trained model; empty for none
};

/// The sets of every phase, the last phase at the end. A cell without phases has one entry.
std::vector<SampledSets> sampled_sets(const Cell& cell);
/// The sets of the last phase.
SampledSets last_sampled_sets(const Cell& cell);

}  // namespace moelab
