#pragma once

/// Reads the claims of a scenario from resolved JSON. analysis/stats/claims.h declares their fields.

#include <vector>

#include "analysis/stats/claims.h"
#include "app/scenario/json.h"

namespace moelab {

/// Reads individual claims, as expand_claims() returns them. Throws UserError at claims[i]… for incompatible
/// fields.
std::vector<Claim> read_claims(const Json& claims);

// Claims on several arms

/// Individual claims. A claim with `arms` becomes one claim for each arm that the names and patterns choose.
/// "{arm}" is replaced by the arm's name in the sides, the id and the text. If the id has no "{arm}", "_" and
/// the name are appended. A trend or a claim on a rate is on that arm.
struct ExpandedClaims {
  Json claims = Json::array();
  std::vector<std::size_t> places;  ///< index of each claim in the scenario's own list

  /// Maps a path such as "claims[3].arm" to the index in the scenario's own list.
  std::string path_in_scenario(const std::string& path) const;
};

/// Throws UserError at claims[i].arm if a claim on one arm has neither `arm` nor `arms`, or both, at
/// claims[i].arms[j] if no arm matches, and at claims[i].left if `arms` changes nothing.
ExpandedClaims expand_claims(const Json& claims, const std::vector<std::string>& arms);

}  // namespace moelab
