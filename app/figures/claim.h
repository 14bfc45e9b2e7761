#pragma once

/// Builds figures of claims from the results of a run.

#include "app/figures/figure_kind.h"
#include "plots/figure.h"

namespace moelab {

/// Builds a figure of kind "claim": {id, claim, title}. Each mark is a point of the claim: its paired ratio
/// or difference with the 95 % interval. A sequential run shows the confidence sequence.
///
/// If steps are censored, the sign test judges the claim. The mark is then the share of decidable pairs whose
/// left side is below, with its binomial interval. Dashed lines show the values that the marks are compared
/// with.
///
/// Throws UserError if the plan does not have the claim.
Figure build_claim_figure(const Json& description, const FigureSource& source);

}  // namespace moelab
