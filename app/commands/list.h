#pragma once

#include <string>

#include "app/json/json.h"

namespace moelab {

/// The answer of `moelab list --json`: {axis: {"path", "kinds": [{"name", "help", "fields", …}]}} of all
/// axes, or of the one that is named. Throws UserError for a name that is none.
Json list_json(const std::string& axis);

}  // namespace moelab
