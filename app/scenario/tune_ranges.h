#pragma once

/// `tune` of a scenario: what `moelab tune` chooses for each arm.

#include <span>
#include <string>
#include <vector>

#include "app/json/json.h"
#include "app/scenario/sweep.h"

namespace moelab {

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
