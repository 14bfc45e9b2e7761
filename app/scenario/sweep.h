#pragma once

/// The sweep: from {path: values} to the points of the grid.

#include <string>
#include <vector>

#include "app/json/json.h"
#include "app/scenario/overrides.h"

namespace moelab {

/// Coordinates that vary together: one path, or the paths of a "zip". Step i sets steps[i].
struct SweepAxis {
  std::vector<std::string> paths;
  std::vector<std::vector<Override>> steps;
  Json crossing = {};  ///< of an axis whose values are searched, whose steps are the ends; null otherwise
};

/// Throws UserError where the "zip" in the sweep of a scenario, an object, is no map of paths to lists. The
/// shape of a sweep takes more, which other entries may be.
void check_zip(const Json& document);

/// The axes of a resolved "sweep" in the order of the file, one whose values are searched last. Throws
/// UserError for values that repeat, ranges that are not powers of two apart, lists of unequal length, a path
/// swept twice and two searches.
std::vector<SweepAxis> read_sweep(const Json& sweep);

/// The number of grid points; stops counting beyond `limit`.
std::size_t count_points(const std::vector<SweepAxis>& axes, std::size_t limit);

/// The override that sets the path of a search to a value.
Override searched_override(const SweepAxis& axis, Json value);

/// The overrides of grid point `index`; the first axis varies slowest.
std::vector<Override> sweep_point(const std::vector<SweepAxis>& axes, std::size_t index);

}  // namespace moelab
