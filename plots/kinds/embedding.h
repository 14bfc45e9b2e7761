#pragma once

/// Projections of saved arrays: the plane, and the decisions of a linear router in it.

#include <optional>
#include <string>
#include <vector>

#include "plots/embedding.h"
#include "plots/kinds/saved_arrays.h"
#include "sim/base/arrays.h"

namespace moelab {

// Linear routers in a plane of the input space

struct RoutingPlane {
  Vector centre;      ///< (d), the origin of the plane
  Matrix directions;  ///< (d, 2), orthonormal
  std::string x_label, y_label;

  /// The coordinates (n, 2) of rows (n, d). The rows are differences from the centre.
  Matrix coordinates(const Matrix& differences) const { return differences * directions; }
};

/// The plane of the first two principal components, through the mean of the rows. `variance_share` receives
/// the share of variance in each direction.
RoutingPlane component_plane(const Matrix& rows, Vector& variance_share);
/// Throws UserError at `path` if the input index is not below `count`.
void check_input(int input, int count, const std::string& path);
/// The plane of two inputs. It passes through 0 in these inputs and through the mean of the others. Throws
/// UserError at `path` for unknown inputs.
RoutingPlane input_plane(const Matrix& rows, const std::vector<int>& inputs, const std::string& path);

/// Scores W x + b of a linear router.
struct LinearScores {
  Matrix weight;  ///< (E, d)
  Vector bias;    ///< (E)
};

/// The scores of a cell that saved its router rows. Unset if their argmax is not the argmax of the
/// probabilities, as with selection biases.
std::optional<LinearScores> saved_scores(const FigureSource& source, const std::string& cell, int layer,
                                         const SavedRows& rows);

/// The scores at recorded steps, thinned by shown_steps(). `last` are the scores of the last step. Empty
/// unless "save" contains "routing_steps".
struct RecordedScores {
  int step;
  LinearScores scores;
};
std::vector<RecordedScores> saved_score_steps(const FigureSource& source, const std::string& cell, int layer,
                                              const LinearScores& last);

/// The scores in the plane, which are linear in its coordinates u: W (c + D u) + b.
std::vector<ScoreInPlane> scores_in_plane(const LinearScores& scores, const RoutingPlane& plane);

/// Lower and upper bounds of both coordinates.
struct PlaneBox {
  double x_low, x_high, y_low, y_high;
};

/// The argmax expert everywhere in the box, as stripes of a grid.
std::vector<EmbeddingRegion> decision_regions(const LinearScores& scores, const RoutingPlane& plane,
                                              const PlaneBox& box);

}  // namespace moelab
