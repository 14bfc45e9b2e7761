#pragma once

/// Overrides: values for dotted paths of a document, from profiles, --set, arms and sweep points.

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/crossing.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/scenario/scenario_options.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {

struct Override {
  std::string path;     ///< the field to replace: "model.router.trainable"
  Json value;           ///< the new value; null restores the default
  std::string place;    ///< where the override is written: "arms.frozen.model.router.trainable"
  std::string element;  ///< index in the list at `place`: "[2]"; empty if there is no list
};

/// Reads the overrides of an object {path: value, …} at `place`.
std::vector<Override> read_overrides(const Json& object, const std::string& place);

/// Reads overrides from "path=value" texts of this option. A value that is not JSON is a string.
std::vector<Override> read_settings(const std::vector<std::string>& settings,
                                    const std::string& option = "--set");

/// Returns the overrides unchanged if each has an effect. An override below an earlier one adds to it.
/// Throws UserError at the place of an override that a later one replaces ("model.router.trainable" before
/// "model.router").
std::vector<Override> kept(std::vector<Override> overrides);

/// Applies overrides in order. In a list, a number in a path is an index ("figures.0.y").
/// A short form ("soft", one learning rate for both groups) becomes its object if a path leads into it.
/// train.steps and train.epochs replace each other. resolve() rejects unknown paths later. Throws UserError
/// at the place of an override that leads into a value without fields or to a missing list entry.
void apply_overrides(const Shape& shape, std::span<const Override> overrides, Json& document);

/// Whether a later override at `by` completely replaces a value at `path`. This holds if `path` equals `by`,
/// lies below it, or is its alternative (train.steps and train.epochs).
bool is_replaced(const std::string& path, const std::string& by);

/// The error for the user, at the place of the override that wrote the rejected value. If no override wrote
/// it, the error keeps its own path.
UserError at_override(const InvalidOption& error, const Shape& shape, std::span<const Override> overrides,
                      const Json& document);

// Sweep

/// Coordinates that vary together: one path, or the paths of a "zip". Step i applies steps[i].
struct SweepAxis {
  std::vector<std::string> paths;
  std::vector<std::vector<Override>> steps;
  Json crossing = {};  ///< the search of an axis whose `steps` are only the range ends; null for other axes
  Json arms = {};      ///< the arms that sweep it, names or patterns; null for all arms
};

/// The axes that an arm sweeps. The arms of the axes are names (matching_arms()).
std::vector<SweepAxis> axes_of_arm(const std::vector<SweepAxis>& axes, const std::string& arm);

/// Checks that "zip" in the sweep is an object of paths and lists. The shape of a sweep is wider, because
/// other entries allow more. Throws UserError.
void check_zip(const Json& document);

/// Reads the axes of a resolved "sweep" in file order; a searched axis comes last.
/// Throws UserError for repeated values, ranges whose ends are not a power of two apart, lists of unequal
/// length, a path swept twice, or two searches.
std::vector<SweepAxis> read_sweep(const Json& sweep);

/// The number of grid points; counting stops above `limit`.
std::size_t count_points(const std::vector<SweepAxis>& axes, std::size_t limit);

/// The override that sets the searched path to a value.
Override searched_override(const SweepAxis& axis, Json value);

/// The overrides of grid point `index`; the first axis varies slowest.
std::vector<Override> sweep_point(const std::vector<SweepAxis>& axes, std::size_t index);

// Swept values as text

/// Parses a swept value: JSON, then a C++ number (0.5, +0.5, 1.), then text.
Json read_written_value(const std::string& text);
/// Applies the same rule to a value from --at, which was already read as JSON or text.
Json read_written_value(const Json& value);

/// Parses a finite C++ number; a leading + is allowed. Returns no value for other text.
std::optional<double> read_written_number(const std::string& text);

/// Reads {"path": value, …}.
SweepPoint read_point(const Json& object);
/// Writes {"path": value, …}.
Json point_json(const SweepPoint& point);

// Crossing search

/// A crossing search with the values that it placed for each arm and each point of the other swept paths (a
/// column).
struct CrossingSearch : CrossingRule {
  /// The ascending values of each column, in the order of the cells; empty for the ends only. A pure function
  /// of the recorded results (app/run/search.h).
  std::vector<std::vector<Json>> placed;

  /// Reads a resolved "crossing" of the sweep over `path`. `document` is the scenario before arms and sweep.
  /// Throws UserError below sweep.<path>.crossing.
  static CrossingSearch read(const std::string& path, const Json& given, const Json& document);
  /// Reads the search of a plan, as to_json() writes it. Null gives no search.
  static std::optional<CrossingSearch> of_plan(const Json& crossing);
  Json to_json() const;
  /// The value as a scenario writes it: integers have no decimal point.
  static Json value(double number);
};

// Tuning

/// An entry of `tune`: the range from which `moelab tune` chooses a value of `path` for each arm.
struct TuneRange : TuneFields {
  std::string path;
  bool is_whole = false;  ///< the field takes only integers

  /// The value at a share of the range in [0, 1], rounded to `digits` digits and kept inside the range.
  /// Integer fields get an integer.
  Json at(double share, int digits = 3) const;
  /// The share of the range at which a value lies, the inverse of at().
  double share_of(const Json& value) const;
};

/// Whether the field at `path` of the configuration `base` takes only integers. Throws UserError at `place`
/// if the field takes no numbers or does not exist.
bool is_whole_field(const Json& base, const std::string& path, const std::string& place);

/// Reads the ranges of "tune" in file order; empty if it is absent.
/// Throws UserError below "tune" for fields that are not numbers in the configuration `base`, and for empty
/// ranges or ends that the field rejects. It also throws for paths that the sweep sets, and for paths above
/// or below a path that an arm in `base` sets.
std::vector<TuneRange> read_tune_ranges(const Json& tune, const Json& base, std::span<const SweepAxis> axes);

}  // namespace moelab
