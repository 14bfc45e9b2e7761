#pragma once

/// From a run's results to what a claim is judged by.

#include "app/figures/figure_kind.h"
#include "plots/figure.h"

namespace moelab {

/// One figure of plan["figures"] of kind "claim": {id, claim, title}. A mark is a point of the claim: its
/// paired ratio or difference with the 95 % interval (of a run that was decided, its sequence); where steps
/// are censored, so that the sign test judges, the share of decidable pairs whose left side is below, with
/// its binomial interval. Dashed lines are what it is judged against. Throws UserError for a claim that the
/// plan does not have.
Figure build_claim_figure(const Json& description, const FigureSource& source);

}  // namespace moelab
