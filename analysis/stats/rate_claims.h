#pragma once

/// Claims on rates of convergence, judged by the slopes of rates.h.
///
/// A slope ρ within a tolerance t: reproduced when the 95 % interval of the mean slope lies within ρ ± t,
/// refuted when wholly outside.
/// `slower` than a slope or than another arm: the slope is above it (the error falls more slowly); of two
/// arms the slopes of equal repetitions are compared. Reproduced when the 95 % interval of the difference
/// lies above zero, refuted when below. Inconclusive otherwise, with fewer than 3 slopes, and where an
/// error is missing: fits that diverged may be those with the large errors.

#include "analysis/stats/claims.h"

namespace moelab {

/// `left` is the slope, `right` what it is held against. Throws InvalidOption below `path` for arms and swept
/// paths that do not exist.
ClaimPoint evaluate_rate_claim(const RateClaim& claim, const std::optional<double>& smallest_effect,
                               const ResultTable& table, const std::string& path);

/// "error of root falls as n^-0.5 along data.train_samples".
std::string rate_claim_text(const RateClaim& claim);

}  // namespace moelab
