#pragma once

/// The scenario that a command line names, for completion.

#include <string>
#include <vector>

#include "app/commands/arguments.h"
#include "app/json/json.h"

namespace moelab {

/// The scenario with its profile and --set as far as these can be applied; an empty object where the file
/// cannot be read. Reads no file but the scenario and what it extends.
Json given_scenario(const Arguments& given);

/// The object at a key of the scenario; an empty one where there is none.
Json object_at(const Json& scenario, const std::string& key);

/// The paths that the scenario's sweep and arms set, which --set refuses.
std::vector<std::string> fixed_paths(const Json& scenario);

}  // namespace moelab
