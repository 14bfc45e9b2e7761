#pragma once

/// What random instances are counted into.

#include "analysis/theory/check.h"

namespace moelab {

/// For a statement of every instance: `hits` of `instances` against all of them, without any error.
CheckFinding every_instance(int hits, int instances, std::string error_origin);

/// For a frequency that the source sheet gives rounded to `unit`: 4 standard errors and half a unit.
CheckFinding measured_frequency(int hits, int instances, double predicted, double unit);

/// Adds to `details` how often a statement failed: "NAME", "NAME, 95 % low" and "NAME, 95 % high" (Clopper
/// and Pearson).
void add_frequency(CheckFinding& finding, const std::string& name, int hits, int instances);

}  // namespace moelab
