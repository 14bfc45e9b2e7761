#pragma once

/// Rows of a table found by arm, sweep point and seed.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/stats/result_table.h"

namespace moelab {

/// A text that equal points share, and no others.
std::string point_key(const SweepPoint& point);

/// Claims ask for as many rows as the table has: each is found in the same time, however many there are.
class RowIndex {
 public:
  /// `table` outlives the object.
  explicit RowIndex(const ResultTable& table);
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  const ResultTable& table() const { return table_; }
  /// The distinct points, in the order of the table; those along a searched path together, ascending.
  const std::vector<SweepPoint>& points() const { return points_; }
  /// Those that have every coordinate of `wanted`, in that order; all for no coordinates.
  std::vector<const SweepPoint*> points_at(const SweepPoint& wanted) const;
  /// Those of other paths that move with a path: at all points they have one value for each of its values, as
  /// the paths of a zip whose values differ. With `value` of the path, those that go with it.
  SweepPoint followers(const std::string& path, const SweepValue& value) const;
  bool has_point(const SweepPoint& point) const { return known_points_.contains(point_key(point)); }
  /// The rows of an arm at a point by their seeds, ascending; of equal seeds the first row counts.
  const std::vector<std::pair<int, const ResultRow*>>& rows(const std::string& arm,
                                                            const SweepPoint& point) const;
  /// The distinct values of a swept path, in the order of the table, of a searched path ascending; none for a
  /// path that is not swept.
  const std::vector<SweepValue>& values(const std::string& path) const;
  /// The seeds of an arm's rows, ascending; none for an arm that there is not.
  const std::vector<int>& seeds(const std::string& arm) const;

 private:
  struct SweptPath {
    std::vector<SweepValue> values;
    std::unordered_map<std::string, std::vector<const SweepPoint*>> points;  ///< by the canonical value
  };

  const ResultTable& table_;
  std::vector<SweepPoint> points_;
  std::unordered_set<std::string> known_points_;
  std::unordered_map<std::string, std::vector<std::pair<int, const ResultRow*>>> rows_;  ///< by arm and point
  std::unordered_map<std::string, std::vector<int>> seeds_;                              ///< by arm
  std::unordered_map<std::string, SweptPath> paths_;
};

}  // namespace moelab
