#pragma once

/// Lemma 2 of Dikkala et al. 2023: f(a)/a > f(b)/b for all 0 < a < b < T implies
/// E[x²] E[f(x)] > E[x] E[x f(x)] for distributions on (0, T). The proof gives the difference as
/// E[(x − y)(x f(y) − y f(x))] / 2 with y an independent copy of x, which is zero for a point mass: the
/// strict inequality needs a distribution with at least two points.

#include <functional>

#include "analysis/theory/check.h"
#include "sim/base/types.h"

namespace moelab {

/// f on (0, T).
struct ScalarFunction {
  std::string name;
  double end = 1;  ///< T
  std::function<double(double)> value;
};

/// Points x_k in (0, T) with weights of sum 1. A continuous distribution enters as the nodes of a quadrature
/// rule, themselves a distribution on (0, T), for which the lemma makes the same statement exactly.
struct WeightedPoints {
  Vector x;
  Vector weight;
};

/// E[x²] E[f] − E[x] E[x f], divided by E[x²] E|f| + E[x] E[x |f|].
double lemma2_gap(const WeightedPoints& points, const ScalarFunction& f);

using Lemma2Gap = std::function<double(const WeightedPoints&, const ScalarFunction&)>;

/// The functions of Claims 2 and 3, and others that meet the hypothesis.
std::vector<ScalarFunction> lemma2_functions();

/// The share of pairs (function, distribution) with a gap clear of rounding, over families of distributions
/// with at least two points; `with_point_masses` adds point masses.
CheckFinding check_lemma2(const CheckEffort& effort, bool with_point_masses,
                          const std::vector<ScalarFunction>& functions = lemma2_functions(),
                          const Lemma2Gap& gap = lemma2_gap);

/// The largest |gap| over point masses.
CheckFinding check_lemma2_point_mass(const CheckEffort& effort, const Lemma2Gap& gap = lemma2_gap);

}  // namespace moelab
