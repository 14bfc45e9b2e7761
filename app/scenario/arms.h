#pragma once

/// The arms of a scenario as written: templates that make arms for lists of values, and lists that choose
/// arms by names or patterns.

#include <string>
#include <vector>

#include "app/scenario/json.h"

namespace moelab {

/// An arm of a scenario file. A template makes one for each combination of its values.
struct WrittenArm {
  std::string name;
  Json overrides;     ///< {path: value, …}
  std::string place;  ///< where the overrides are written: "arms.frozen", of a template "arms.aux_{c}.set"
};

/// The arms of "arms", in the order of the file. A template is an entry
///     "aux_{c}": {"for": {"c": [0.01, 0.1]}, "set": {"loss.aux": "{c}"}}
/// Several lists make a grid, the first varying slowest. In `set`, a text that is one placeholder takes the
/// value with its type; any other text, and a path, takes the value's text. Throws UserError below "arms".
std::vector<WrittenArm> written_arms(const Json& arms);

/// Whether a name matches a pattern, in which * stands for any text.
bool matches_pattern(const std::string& pattern, const std::string& name);

/// The arms that a list of names and patterns chooses, in the order of the list, each once. Throws UserError
/// at the entry of the list at `place` that no arm matches.
std::vector<std::string> matching_arms(const Json& list, const std::vector<std::string>& arms,
                                       const std::string& place);

/// The value with "{placeholder}" replaced by a text, in every text and key of it.
Json with_placeholder(const Json& value, const std::string& placeholder, const std::string& text);

}  // namespace moelab
