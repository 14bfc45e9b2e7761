#pragma once

/// The tidy table of results: one row per cell. Claims and figures are pure functions of it.

#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/stats/sweep_value.h"

namespace moelab {

/// Metrics by name; absent where a metric does not apply. Flat, since 10^5 cells have 10^5 of them.
using MetricValues = boost::container::flat_map<std::string, double>;

/// The metrics of one cell at one recorded step.
struct TraceEntry {
  std::int64_t step = 0;
  MetricValues metrics;
};

struct ResultRow {
  std::string cell;  ///< content hash
  std::string arm;   ///< name of the arm
  int seed = 0;      ///< seed index
  SweepPoint point;
  std::string state;              ///< done, diverged, failed or missing
  MetricValues metrics;           ///< at the last step
  std::vector<TraceEntry> trace;  ///< at every recorded step, the last included

  /// The value of a swept path; null where the path is not swept.
  const SweepValue* coordinate(const std::string& path) const { return coordinate_of(point, path); }
  /// Whether the row has every coordinate of `where`.
  bool is_at(const SweepPoint& where) const { return has_coordinates(point, where); }
};

struct ResultTable {
  std::vector<std::string> arms;         ///< in the scenario's order
  std::vector<std::string> sweep_paths;  ///< in the scenario's order
  /// Numbers that all cells have at paths which are not swept, as far as expressions name them.
  std::map<std::string, double> fixed = {};
  std::vector<ResultRow> rows;  ///< arm-major, then sweep point, then seed
  /// The swept path, of numbers, whose values a search has placed: other ones at each arm and point of the
  /// other paths, its ends at all. Empty where arms and points form a grid.
  std::string searched_path = {};
  /// Seeds were added while claims were open: arms and points have as many as these asked for, and only
  /// confidence sequences (sequences.h) hold at the number that it came to.
  bool is_decided = false;
};

}  // namespace moelab
