#pragma once

/// Claims that a scenario makes of several arms at once.

#include <vector>

#include "app/json/json.h"

namespace moelab {

/// Claims one by one: a trend or a claim on a rate with `arms` stands for one claim with `arm` for each of
/// them, "{arm}" in its id and text being the arm's name; where the id has none, "_" and the name follow it.
struct ExpandedClaims {
  Json claims = Json::array();
  std::vector<std::size_t> places;  ///< of each in the scenario's own list

  /// "claims[3].arm", with the place in the scenario's own list.
  std::string path_in_scenario(const std::string& path) const;
};

/// Throws UserError at claims[i].arm where such a claim has neither of the two, or both.
ExpandedClaims expand_claims(const Json& claims);

}  // namespace moelab
