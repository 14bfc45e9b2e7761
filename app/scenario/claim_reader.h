#pragma once

/// Claims as a scenario writes them, resolved: {id, left, op: < | > | ~, right, at, tolerance, …}, a side
/// being {value, factor} or {arm, metric, relative_to, factor, where: {path: value}, step} or {arm, metric,
/// distance_from, factor, where}, `step` a recorded step, "start" or "end", `value` a number or, like
/// `metric`, an expression; `at` "each", "last" or a list of points ({path: value}, or the bare value when
/// one path is swept); or a trend {id, arm, metric, relative_to, op: decreases | increases, along, shape, …};
/// or a claim on a rate {id, op: rate, arm, metric, along, where, window, exponent, tolerance, …} or {…, op:
/// slower, than}. Every one may have source, reported, text, origin, all but ~ and rate smallest_effect.

#include <vector>

#include "analysis/stats/claims.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"

namespace moelab {

/// Throws UserError at claims[i]… for fields that do not go together.
std::vector<Claim> read_claims(const Json& claims);

/// `average` of claims on rates and figures of them.
Field rate_average_field();

/// What a claim, or a figure of rates, regresses for one arm and metric: its `where`, `window` and `average`.
RateQuery read_rate_query(const Json& part, const std::string& arm, const std::string& metric,
                          const std::string& along);

// Claims that a scenario makes of several arms at once.

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
