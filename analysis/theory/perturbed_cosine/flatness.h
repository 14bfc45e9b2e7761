#pragma once

/// How flat the population loss is around a measure one of whose components is fitted by two.
///
/// Least squares cannot tell G from the truth G* where n ‖f_G − f*‖² is of the order of the noise. If the
/// nearest measures whose two components stand ε apart have ‖f_G − f*‖ ~ ε^r, their distance is found at the
/// rate n^(−1/(2r)): r = 1 for a component of its own, r = 2 (n^(−1/4)) where first-order changes cancel and
/// second-order ones cannot, and no power of n where ‖f_G − f*‖ = 0 for some ε > 0.

#include <vector>

#include "sim/base/random.h"
#include "sim/data/mixing_measure.h"

namespace moelab {

/// f_G at rows x (n, d), (n): regression_value for all of them at once.
Vector regression_values(const MixingMeasure& measure, const Matrix& x);

/// Which offsets of a component count, beside those of its score that a cosine router cannot see.
enum class ExpertFamily {
  whole,         ///< every (a, b)
  fixed_length,  ///< ‖(a, b)‖ as in the truth: an expert h(c η) = c^q h(η) is then told by its direction
};

/// Measures in whose first cell stand two components. With θ = (β1, a, b) of the first true component, unit v
/// and m (2d + 1), p in (.1, .9) and w, they are θ + ε(m + (1 − p) v) and θ + ε(m − p v), of weights
/// p exp(β0 + ε w) and (1 − p) exp(β0 + ε w), drawn back to the family; the others are the truth's. For
/// softmax gates of every component: others have no measure with one component more that has f* for f.
struct SplitCell {
  MixingMeasure truth;
  ExpertFamily family = ExpertFamily::whole;

  /// Entries of (v, m, p, w), the last two unbounded.
  Eigen::Index coordinates() const { return 2 * (2 * truth.gate.cols() + 1) + 2; }
  MixingMeasure at(const Vector& coordinates, double spread) const;
  /// Where the second component of the cell stands: last, but within the first group of two levels.
  Eigen::Index second_place() const {
    return truth.form.router == MixtureForm::Router::two_level ? 1 : truth.gate.rows();
  }
};

/// Random places to descend from: v, p and w ~ N(0, 1), m = 0.
std::vector<Vector> draw_starts(const SplitCell& cell, int count, Engine& engine);

struct FlattestSplit {
  double distance = 0;  ///< ‖f_G − f*‖ / ‖f*‖, root mean squares
  Vector coordinates;
};

/// The least distance over the rows of x (n, d) among the measures of the cell at a spread ε: that of
/// Levenberg–Marquardt descents from each of the starts.
FlattestSplit flattest_split(const SplitCell& cell, const Matrix& x, double spread,
                             const std::vector<Vector>& starts);

}  // namespace moelab
