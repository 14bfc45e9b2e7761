#pragma once

/// The scenarios that `moelab new` writes. Their notes are comments of the file: keys that begin with //.

#include <string>
#include <vector>

namespace moelab {

struct StartingPoint {
  std::string name;  ///< the value of --from
  std::string text;  ///< the file, with @NAME@ and @SCHEMA@ for the scenario's name and its schema
};

/// The first is the default.
const std::vector<StartingPoint>& starting_points();

}  // namespace moelab
