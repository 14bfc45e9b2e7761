#pragma once

/// `sweep: {"path": {"crossing": {…}}}`: points that a bisection places where a metric's mean crosses a
/// level, or that of another arm.

#include <optional>
#include <string>
#include <vector>

#include "app/json/json.h"
#include "app/json/schema.h"

namespace moelab {

/// The fields of "crossing".
Shape crossing_shape();

/// Of each arm and point of the other swept paths (a column), by bisection of [low, high].
struct CrossingSearch {
  std::string path;    ///< whose values are placed
  std::string metric;  ///< a metric, or an expression
  std::optional<double> level;
  std::string against;  ///< the arm whose metric is in place of the level; empty with a level
  std::string arm;      ///< whose curve places the points of all arms; empty: every arm's own
  double low = 0, high = 0;
  bool is_log = false;    ///< brackets are halved, and lines drawn, over the logarithm
  bool is_whole = false;  ///< the path is a whole number
  double resolution = 0;  ///< share of the range at or below which a bracket is not halved
  /// The values at each column, ascending, in the order of the cells; empty for the ends alone. A pure
  /// function of the results that were recorded (app/run/crossing_run.h).
  std::vector<std::vector<Json>> placed;

  /// `given` is a resolved "crossing" of the sweep of `path`, `document` the scenario before arms and sweep.
  /// Throws UserError below sweep.<path>.crossing.
  static CrossingSearch read(const std::string& path, const Json& given, const Json& document);
  /// Of a plan, as to_json() writes it; nothing for null.
  static std::optional<CrossingSearch> of_plan(const Json& crossing);
  Json to_json() const;

  /// The search has a curve of that arm.
  bool searches(const std::string& searched) const;
  /// Where lines are straight: the value or its logarithm.
  double scaled(double value) const;
  double unscaled(double place) const;
  /// The value that halves a bracket, to as few digits as keep it within 1/64 of the middle; none where the
  /// bracket is as narrow as was asked for, or holds no whole number inside.
  std::optional<double> middle(double low, double high) const;
  /// The most values that bisection can still place in a bracket.
  int most_within(double low, double high) const;
  /// A value as a scenario would write it: whole numbers without a point.
  static Json value(double number);
  /// At an end of the range, where every run of the search has cells.
  bool is_end(double number) const { return number <= low || number >= high; }
};

}  // namespace moelab
