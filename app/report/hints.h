#pragma once

/// Hints where a study is about to say nothing, or something else than its reader expects.

#include <string>
#include <vector>

#include "app/run/results.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// What a scenario shows before it runs:
/// - a router's temperature is a number, which stays; once it was the start of a learned one
/// - fewer than six seeds at more than eight points of a claim
/// - data of the user's files whose targets are constant, or whose features differ a thousandfold in scale
std::vector<std::string> scenario_hints(const Scenario& scenario);

/// What the results show:
/// - two arms whose results are equal to the last bit
/// - a metric of the main table or of a claim that is the same in every cell
/// - normalised losses without a value, because the labels are constant
std::vector<std::string> result_hints(const RunResults& results);

/// Prints each hint as a line on stderr.
void print_hints(const std::vector<std::string>& hints);

}  // namespace moelab
