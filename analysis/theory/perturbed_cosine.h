#pragma once

/// The gates and experts whose rates of estimation the literature gives or leaves open, with what their
/// regression functions cannot see (Nguyen et al.; the papers are named at each rate).

#include <string>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/base/random.h"
#include "sim/data/mixing_measure.h"

namespace moelab {

/// A form with its name in ids.
struct NamedForm {
  std::string name;
  MixtureForm form;
};

/// Gates, with linear experts: linear, cosine and perturbed cosine scores (τ of the order of ‖β1‖: at .1 the
/// perturbed router is nearly the cosine router), a learned temperature, squared distances and two levels,
/// all of them under a softmax; the softmax of the K = 2 largest of three linear scores; sigmoids of linear
/// ones, normalised or not, and normalised ones beside a shared expert.
std::vector<NamedForm> gate_forms();

/// The gate with linear experts, (a^T x + b)² and rectifiers.
std::vector<NamedForm> with_experts(const NamedForm& gate);

/// What is printed of the rate at which experts of over-specified fits are found, with where it is from;
/// "none found" where there is none.
std::string published_rate(const NamedForm& gate, const NamedForm& expert);

/// A truth in two dimensions. Of two components, that of scenarios/perturbed_cosine/rates.json; two levels
/// have four, and K of them at a time has three.
MixingMeasure example_measure(const MixtureForm& form);

/// A family of measures through `measure` that have its regression function.
struct Invariance {
  std::string name;
  int dimension;        ///< of the family
  MixingMeasure moved;  ///< one of them, away from the measure
};

/// All that f_G cannot see near a measure with as many components as the truth.
std::vector<Invariance> invariances(const MixingMeasure& measure);

// How flat the population loss is around a measure one of whose components is fitted by two.
//
// Least squares cannot tell G from the truth G* where n ‖f_G − f*‖² is of the order of the noise. If the
// nearest measures whose two components stand ε apart have ‖f_G − f*‖ ~ ε^r, their distance is found at the
// rate n^(−1/(2r)): r = 1 for a component of its own, r = 2 (n^(−1/4)) where first-order changes cancel and
// second-order ones cannot, and no power of n where ‖f_G − f*‖ = 0 for some ε > 0.

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

// What the regression function f_G = Σ_j softmax(γ)_j h(·, η_j) of a mixture can tell about its measure,
// before any fit: directions that it cannot see at all, and how flat it is along the others. For the routers
// and experts of Nguyen et al. (Statistical Advantages of Perturbing Cosine Router in Mixture of Experts),
// who give a rate for each pair; see flatness.h for how flatness becomes a rate.

/// In place of the first component two with its gate, experts c_1 η and c_2 η and half of its weight each,
/// (c_1^q + c_2^q) / 2 = 1 for an expert with h(x, c η) = c^q h(x, η); under sigmoids, whose weights do not
/// divide, its whole weight each and c_1^q + c_2^q = 1. Of K selected components one more is selected. The
/// largest |f_G − f*| over draws of x is 0 where no fit by least squares tells c_1.
CheckFinding check_scaled_experts(const CheckEffort& effort, const MixtureForm& form, double first_scale);

/// f_G is the same where every β1 is twice as long: the largest |f_G − f*| over draws of x is 0.
CheckFinding check_radius(const CheckEffort& effort, const MixtureForm& form);

/// The measures of invariances() have the truth's regression function: the largest |f_G − f*| of all.
CheckFinding check_invariances(const CheckEffort& effort, const MixtureForm& form);

/// With as many components as the truth, the directions in which f does not change to first order:
/// eigenvalues of the Gram matrix (1/n) Σ ∂f/∂θ ∂f/∂θ' over draws of x, θ all parameters, of at most 1e-13 of
/// the largest. Predicted: the dimensions of invariances(). More would make rates of single fits slower than
/// n^(−1/2).
CheckFinding check_gram(const CheckEffort& effort, const MixtureForm& form);

/// ∂²F/∂β1∂b = ∂F/∂a for F = exp(γ(x)) h(x, a, b): the largest difference over draws of x, by central
/// differences, over the largest ∂F/∂a.
CheckFinding check_mixed_derivative(const CheckEffort& effort, const MixtureForm& form);

/// The order r of ‖f_G − f*‖ ~ ε^r along the flattest measures whose first cell holds two components ε apart,
/// as the slope of logarithms between the two smallest of three spreads; predicted: 2.
CheckFinding check_flatness(const CheckEffort& effort, const MixtureForm& form,
                            ExpertFamily family = ExpertFamily::fixed_length);

}  // namespace moelab
