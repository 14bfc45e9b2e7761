#pragma once

/// Overrides: dotted paths whose values replace what stands there (profiles, --set, arms, sweep points).

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {

struct Override {
  std::string path;     ///< what is replaced: "model.router.trainable"
  Json value;           ///< by what; null takes the value back to its default
  std::string place;    ///< where the override is written: "arms.frozen.model.router.trainable"
  std::string element;  ///< which element of the list at `place` the value is: "[2]", or empty
};

/// The overrides of {path: value, …} written at `place`.
std::vector<Override> read_overrides(const Json& object, const std::string& place);

/// The overrides of texts "path=value" given with this option; a value that is not JSON is taken as a string.
std::vector<Override> read_settings(const std::vector<std::string>& settings,
                                    const std::string& option = "--set");

/// The same overrides. Throws UserError at the place of one that a later one of them replaces, so that it
/// would be without effect ("model.router.trainable" before "model.router"); one below an earlier one adds to
/// it.
std::vector<Override> kept(std::vector<Override> overrides);

/// Applies overrides in their order. A number in a path is the index of an entry where it meets a list
/// ("figures.0.y"). A name that stands for an object ("soft", one learning rate for both
/// groups) becomes that object where a path leads into it. train.steps and train.epochs replace each other.
/// Paths that do not exist are left for resolve to refuse. Throws UserError at the place of an override that
/// leads into a value without fields, or to an entry that a list does not have.
void apply_overrides(const Shape& shape, std::span<const Override> overrides, Json& document);

/// Whether `path` is `ancestor` or lies below it.
bool is_within(const std::string& path, const std::string& ancestor);

/// Whether nothing is left of a value at `path` when one at `by` is set after it: `path` is `by`, lies below
/// it, or is what it takes the place of (train.steps and train.epochs).
bool is_replaced(const std::string& path, const std::string& by);

/// What the user is told of an error: at the place of the override that wrote the refused value, or where it
/// stands when none did.
UserError at_override(const InvalidOption& error, const Shape& shape, std::span<const Override> overrides,
                      const Json& document);

// The sweep: from {path: values} to the points of the grid.

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

// Swept values between JSON and the tables of results.

SweepValue read_sweep_value(const Json& value);
Json to_json(const SweepValue& value);

/// A swept value as a scenario writes it, names without their quotes.
std::string value_text(const SweepValue& value);

/// What a person wrote for a swept value: JSON, else a number as C++ reads it (.5, +0.5, 1.), else a text.
Json read_written_value(const std::string& text);
/// The same of a value that was read as JSON or else a text, as --at does.
Json read_written_value(const Json& value);

/// A finite number as C++ reads it, with a sign + as well; none of any other text.
std::optional<double> read_written_number(const std::string& text);

/// From {"path": value, …}.
SweepPoint read_point(const Json& object);
/// From the point of a scenario's cell.
SweepPoint read_point(const std::vector<std::pair<std::string, Json>>& coordinates);
/// {"path": value, …}.
Json point_json(const SweepPoint& point);
Json point_json(const std::vector<std::pair<std::string, Json>>& coordinates);

// `sweep: {"path": {"crossing": {…}}}`: points that a bisection places where a metric's mean crosses a
// level, or that of another arm.

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
  /// function of the results that were recorded (app/run/search.h).
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

// `tune` of a scenario: what `moelab tune` chooses for each arm.

/// Values of the field at `path` between `low` and `high`.
struct TuneRange {
  std::string path;
  double low = 0;
  double high = 0;
  bool is_log = true;
  bool is_whole = false;  ///< the field is a whole number

  /// The value at a share of the range in [0, 1], to so many digits and within the range; a whole number
  /// where the field is one.
  Json at(double share, int digits = 3) const;
  /// The share at which a value lies.
  double share_of(const Json& value) const;
};

/// Whether the field at `path` of the configuration `base` takes whole numbers alone. Throws UserError at
/// `place` where it takes no numbers, or is none.
bool is_whole_field(const Json& base, const std::string& path, const std::string& place);

/// The ranges of a scenario's "tune" in its order; none without it. Throws UserError below "tune" for fields
/// that are no numbers of the configuration `base`, ranges that are empty or whose ends the field does not
/// take, paths that the sweep sets, and paths above or below one that an arm of "arms" in `base` sets.
std::vector<TuneRange> read_tune_ranges(const Json& tune, const Json& base, std::span<const SweepAxis> axes);

}  // namespace moelab
