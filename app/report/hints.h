#pragma once

/// Hints for studies that would show nothing, or something that the reader does not expect.

#include <string>
#include <vector>

#include "app/run/results.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// Looks at a scenario before it runs. It gives a hint in these cases.
/// - A router's temperature is a number. It stays fixed; in 0.1.0 it was the start of a learned one.
/// - A claim has more than eight points and fewer than six seeds.
/// - The user's data have constant targets, or features whose scales differ a thousandfold.
/// - A field is given that no cell reads; see field_uses().
/// - A chosen group of metrics has no value in any cell.
std::vector<std::string> scenario_hints(const Scenario& scenario);

/// Looks at the results. It gives a hint in these cases.
/// - Two arms have results that are equal to the last bit.
/// - A metric of the main table or of a claim is the same in every cell.
/// - Normalised losses have no value, because the labels are constant.
std::vector<std::string> result_hints(const RunResults& results);

/// Prints each hint as a line on stderr.
void print_hints(const std::vector<std::string>& hints);

}  // namespace moelab
