#pragma once

/// From the arrays that a run saved to the projections that its plan asks for.

#include "app/figures/figure_kind.h"
#include "plots/embedding.h"

namespace moelab {

/// One figure of plan["figures"] of kind "embedding": {id, title, where, arms, inputs}. A panel is an arm's
/// first seed that is done, at the last sweep point of `where`: its test rows in the plane of two inputs, or
/// of their first two principal components, the first 1000 drawn, each coloured by its likeliest expert where
/// that is one of the seven with most rows in all panels, so that an expert has one colour; the means of the
/// clusters; of a linear router whose weights were saved the regions where each expert is likeliest, and its
/// rows, on the page at the recorded steps where "routing_steps" were saved, too. Needs the arrays of "save":
/// ["routing"]; throws UserError where they are missing.
Embedding build_embedding(const Json& description, const FigureSource& source);

}  // namespace moelab
