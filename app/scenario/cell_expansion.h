#pragma once

/// From an arm and the points of a sweep to cells.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "app/scenario/cell_config.h"
#include "app/scenario/cell_identity.h"
#include "app/scenario/override_effects.h"
#include "app/scenario/point_resolver.h"
#include "app/scenario/scenario.h"
#include "app/scenario/sweep.h"
#include "sim/data/file_contents.h"

namespace moelab {

/// Expands a scenario, the points of a large sweep by as many threads as there are processors.
class CellExpansion {
 public:
  /// `base` is the configuration before arms and sweep, not resolved, and `seeds` the resolved field of a
  /// scenario.
  CellExpansion(const Json& base, const Json& seeds);

  /// Appends the cells of an arm at all `points`, of every seed; `point_at` gives the overrides of the i-th,
  /// whose paths are the same at all.
  /// Throws UserError at the override that is wrong, of the first point where one is.
  void add_cells(const Arm& arm, std::size_t points,
                 const std::function<std::vector<Override>(std::size_t)>& point_at, std::vector<Cell>& cells);

 private:
  void add_cells_at(const Arm& arm, PointResolver& resolver, std::vector<Override> point,
                    std::vector<Cell>& cells);

  const Json& base_;
  int seed_count_;
  Seeds seeds_;
  std::shared_ptr<FileContents> contents_;
  SharedParts parts_;
  CellIdentities identities_;
};

}  // namespace moelab
