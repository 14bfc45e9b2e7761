#pragma once

/// From a run's results to what a claim is judged by.

#include "app/figures/figure_kind.h"
#include "plots/figure.h"

namespace moelab {

/// One figure of plan["figures"] of kind "claim": {id, claim, title}. A mark is a point of the claim: its
/// paired ratio or difference with the 95 % interval, or that of medians where steps are censored; dashed
/// lines are what it is judged against. Throws UserError for a claim that the plan does not have.
Figure build_claim_figure(const Json& description, const FigureSource& source);

}  // namespace moelab
