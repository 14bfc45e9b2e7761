#pragma once

/// The curves behind checks of slopes, as figures.

#include "analysis/theory/check.h"
#include "plots/rate_panels.h"

namespace moelab {

/// A figure for checks whose ids begin and end alike ("identifiability.….flatness"), in the order of the
/// checks: a row for each second part of an id, a column for what stands between it and the last. Checks
/// without a curve are in none.
std::vector<RatePanels> check_figures(const std::vector<const Check*>& chosen,
                                      const std::vector<CheckFinding>& findings);

}  // namespace moelab
