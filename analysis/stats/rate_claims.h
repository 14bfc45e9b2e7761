#pragma once

/// Claims on rates of convergence: {id, op: "rate" | "slower", arm, metric, along, where, window, …}, judged
/// by the slopes of rates.h.
///
/// `rate`, with `exponent` ρ and `tolerance` t: reproduced when the 95 % interval of the mean slope lies
/// within ρ ± t, refuted when wholly outside.
/// `slower`, with `than` a slope or the name of another arm: the slope is above it (the error falls more
/// slowly); of two arms the slopes of equal repetitions are compared. Reproduced when the 95 % interval of
/// the difference lies above zero, refuted when below. Inconclusive otherwise, and with fewer than 3 slopes
/// or a repetition without one.

#include "analysis/stats/claims.h"
#include "analysis/stats/rates.h"

namespace moelab {

bool is_rate_claim(const Json& claim);

/// What a claim, or a figure of rates, regresses for one arm and metric.
RateQuery read_rate_query(const Json& part, const std::string& arm, const std::string& metric,
                          const std::string& along);

/// One point: `left` the slope, `right` what it is held against. Throws UserError below `path` for arms and
/// swept paths that do not exist.
ClaimResult evaluate_rate_claim(const Json& claim, const ResultTable& table, const std::string& path);

}  // namespace moelab
