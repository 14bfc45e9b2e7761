#pragma once

/// What a cell's id is made of.

#include <string>

#include "app/json/json.h"

namespace moelab {

/// What makes the id of a configuration's cells: two that give the same numbers for sure have the same.
/// Fields at their defaults are left out, and every file that is read counts by what it holds, of the data
/// and of those of evaluations; a folder by the files in it.
Json identity_of(const Json& config);

/// The id of the cell of such an identity with its "seed": 16 hexadecimal digits.
std::string cell_id(const Json& identity);

}  // namespace moelab
