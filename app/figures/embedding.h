#pragma once

/// From the arrays that a run saved to the projections that its plan asks for.

#include <optional>
#include <string>
#include <vector>

#include "app/figures/figure_kind.h"
#include "plots/embedding.h"
#include "sim/base/arrays.h"

namespace moelab {

/// One figure of plan["figures"] of kind "embedding": {id, title, where, arms, inputs}. A panel is an arm's
/// first seed that is done, at the last sweep point of `where`: its test rows in the plane of two inputs, or
/// of their first two principal components, the first 1000 drawn, each coloured by its likeliest expert where
/// that is one of the seven with most rows in all panels, so that an expert has one colour; the means of the
/// clusters; of a linear router whose weights were saved the regions where each expert is likeliest, and its
/// rows, on the page at the recorded steps where "routing_steps" were saved, too. Needs the arrays of "save":
/// ["routing"]; throws UserError where they are missing.
Embedding build_embedding(const Json& description, const FigureSource& source);

// A plane in the space of inputs, and what a router that is linear decides in it.

struct RoutingPlane {
  Vector centre;      ///< (d), a point of the plane, its origin
  Matrix directions;  ///< (d, 2), orthonormal
  std::string x_label, y_label;

  /// The coordinates (n, 2) of rows (n, d) that are differences from the centre.
  Matrix coordinates(const Matrix& differences) const { return differences * directions; }
};

/// The plane of the first two principal components, through the mean of the rows.
RoutingPlane component_plane(const Matrix& rows, Vector& variance_share);
/// Throws UserError at `path` for a number of an input that `count` inputs do not have.
void check_input(int input, int count, const std::string& path);
/// The plane of two inputs, through 0 in those and the mean in the others. Throws UserError at `path` for
/// inputs that there are not.
RoutingPlane input_plane(const Matrix& rows, const std::vector<int>& inputs, const std::string& path);

/// Scores W x + b.
struct LinearScores {
  Matrix weight;  ///< (E, d)
  Vector bias;    ///< (E)
};

/// Those of a cell, of the arrays that it saved; none where it saved no rows of a router, or where their
/// largest scores are not the largest probabilities (n, E) of the inputs (n, d), as with biases of selection.
std::optional<LinearScores> saved_scores(const FigureSource& source, const std::string& cell,
                                         const Matrix& inputs, const Matrix& probabilities);

/// The scores at recorded steps, thinned by shown_steps(), where "save": ["routing_steps"] kept them: those
/// of the last step are `last`. None otherwise.
struct RecordedScores {
  int step;
  LinearScores scores;
};
std::vector<RecordedScores> saved_score_steps(const FigureSource& source, const std::string& cell,
                                              const LinearScores& last);

/// The scores in the plane, which are linear there, too: W (c + D u) + b.
std::vector<ScoreInPlane> scores_in_plane(const LinearScores& scores, const RoutingPlane& plane);

/// low and high of both coordinates.
struct PlaneBox {
  double x_low, x_high, y_low, y_high;
};

/// The expert of the largest score all over the box, in stripes of a grid.
std::vector<EmbeddingRegion> decision_regions(const LinearScores& scores, const RoutingPlane& plane,
                                              const PlaneBox& box);

}  // namespace moelab
