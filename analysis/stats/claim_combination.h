#pragma once

/// The verdict on a claim from those on its points, see claims.h.

#include <optional>

#include "analysis/stats/claims.h"

namespace moelab {

/// Fills verdict and seeds_to_decide from the points.
void combine_points(ClaimResult& result);

/// See ClaimResult::p_value.
std::optional<double> claim_p_value(const ClaimResult& result);

}  // namespace moelab
