#pragma once

#include <vector>

#include "analysis/stats/claim.h"
#include "app/run/results.h"

namespace moelab {

/// The plan's claims, then of each imported arm every one of them that it has the metrics of, with the arm in
/// the place of the left side's (of the only one that is an arm); id "<claim>@<arm>", ours, and in its source
/// the claim that it is taken from. Claims along the steps of training are left out: an imported arm has its
/// last numbers alone.
std::vector<Claim> claims_of(const RunResults& results);

}  // namespace moelab
