#pragma once

/// The normalised balance loss E Σ_j f_j P_j of the losses in Guo et al. 2025: f_j the share of active pairs
/// that are expert j's, P_j its mean probability. It is 1 wherever f or P is uniform, so that 1 does not tell
/// balance, and it can be below 1, so that balance is not its least value.

#include <string>

#include "analysis/theory/check.h"

namespace moelab {

/// The largest |value − 1| over batches with equal loads and any probabilities, and with equal probabilities,
/// whose ties make the loads as unequal as they can be.
CheckFinding check_uniform_factor(const CheckEffort& effort, const std::string& term = "aux");

/// Of 2E rows with K = 1 all but one are undecided and go to the first expert, the last is sure of the
/// second: f = (1 − 1/(2E), 1/(2E), 0, …), and the value is 1 − 1/(4E). The one that differs most over E.
CheckFinding check_below_one(const std::string& term = "aux");

}  // namespace moelab
