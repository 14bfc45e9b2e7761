#pragma once

/// Checks of identifiability for mixtures of experts (Nguyen et al., "Statistical Advantages of Perturbing
/// Cosine Router in Mixture of Experts", and the papers named at each rate). They ask what the regression
/// function f_G = Σ_j softmax(γ)_j h(·, η_j) reveals about its measure G before any fit: which directions it
/// does not see, and how flat it is along the others.

#include <string>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/data/mixing_measure.h"

namespace moelab {

/// A form with its name in ids.
struct NamedForm {
  std::string name;
  MixtureForm form;
};

/// Gates, with linear experts. Under a softmax: linear, cosine and perturbed cosine scores (τ of the order of
/// ‖β1‖; with τ = 0.1 the perturbed router is nearly the cosine router), a learned temperature, squared
/// distances and two levels. The softmax of the K = 2 largest of three linear scores. Sigmoids of linear
/// scores: plain, normalised, and normalised with a shared expert.
std::vector<NamedForm> gate_forms();

/// The gate with linear experts, (aᵀx + b)² and rectifiers.
std::vector<NamedForm> with_experts(const NamedForm& gate);

/// The gate with experts for which ‖(a, b)‖ = 1: linear, (aᵀx + b)², (aᵀx + b)³, rectifiers, GELUs and
/// sigmoids.
std::vector<NamedForm> with_unit_experts(const NamedForm& gate);

/// Why unit experts of this kind that share a component's gate cannot give its f* unless they are equal.
std::string unit_argument(const MixtureForm& form);

/// The published rate at which over-specified fits find the experts, with its source, or "none found".
std::string published_rate(const NamedForm& gate, const NamedForm& expert);

/// A truth in two dimensions. With two components it is the one of scenarios/perturbed_cosine/rates.json. Two
/// levels have four components, and K selected ones have three. Unit experts have length 1.
MixingMeasure example_measure(const MixtureForm& form);

/// f_G at rows x (n, d), (n): regression_value for all rows at once.
Vector regression_values(const MixingMeasure& measure, const Matrix& x);

/// The same measure with every expert divided by its length, if its form has unit experts.
MixingMeasure on_sphere(MixingMeasure measure);

/// All parameters of a measure in order.
std::vector<double*> measure_parameters(MixingMeasure& measure);

/// A family of measures through `measure` that all have its regression function.
struct Invariance {
  std::string name;
  int dimension;        ///< of the family
  MixingMeasure moved;  ///< one of them, away from the measure
};

/// Everything that f_G cannot see near a measure with as many components as the truth.
std::vector<Invariance> invariances(const MixingMeasure& measure);

/// Measures the largest |f_G − f*| over the measures of invariances(). Predicted: 0.
CheckFinding check_invariances(const CheckEffort& effort, const MixtureForm& form);

/// Counts the directions in which f does not change to first order, with as many components as the truth.
/// θ has all parameters. They are the eigenvalues of the Gram matrix (1/n) Σ ∂f/∂θ ∂f/∂θᵀ over draws of x
/// that are at most 1e-13 of the largest. Predicted: the dimensions of invariances(). With more, single
/// fits would be slower than n^(−1/2). Unit experts are divided by their lengths, so that each adds one such
/// direction.
CheckFinding check_gram(const CheckEffort& effort, const MixtureForm& form);

// Causes that the perturbed-cosine paper names (Table 1)

/// f_G is the same if every β1 is twice as long. Measures the largest |f_G − f*| over draws of x.
CheckFinding check_radius(const CheckEffort& effort, const MixtureForm& form);

/// ∂²F/∂β1∂b = ∂F/∂a for F = exp(γ(x)) h(x, a, b). Measures the largest difference over draws of x, by
/// central differences, over the largest ∂F/∂a.
CheckFinding check_mixed_derivative(const CheckEffort& effort, const MixtureForm& form);

// How flat the population loss is around a measure one of whose components is fitted by two. Least squares
// cannot tell G from the truth G* if n ‖f_G − f*‖² is of the order of the noise. If the nearest measures
// whose two components are ε apart have ‖f_G − f*‖ ~ ε^r, their distance is found at the rate n^(−1/(2r)). r
// = 1 for a separate component. r = 2 (n^(−1/4)) if first-order changes cancel and second-order ones cannot.
// No power of n if ‖f_G − f*‖ = 0 for some ε > 0.

/// Which offsets of a component count. Offsets of the score that a cosine router cannot see never do.
enum class ExpertFamily {
  whole,         ///< every (a, b)
  fixed_length,  ///< ‖(a, b)‖ as in the truth: the direction identifies an expert with h(c η) = c^q h(η)
};

/// Measures in whose first cell there are two components. Let θ = (β1, a, b) be the first true component, v a
/// unit vector, m (2d + 1), p in (0.1, 0.9), and w. The two components are θ + ε(m + (1 − p) v) and θ + ε(m −
/// p v), with weights p exp(β0 + ε w) and (1 − p) exp(β0 + ε w), pulled back to the family. The others are
/// the truth's. For softmax gates of every component only: other gates have no measure with one more
/// component and the same f*.
struct SplitCell {
  MixingMeasure truth;
  ExpertFamily family = ExpertFamily::whole;

  /// Entries of (v, m, p, w), the last two unbounded.
  Eigen::Index coordinates() const { return 2 * (2 * truth.gate.cols() + 1) + 2; }
  MixingMeasure at(const Vector& coordinates, double spread) const;
  /// The place of the cell's second component: the last, or within the first group of two levels.
  Eigen::Index second_place() const {
    return truth.form.router == MixtureForm::Router::two_level ? 1 : truth.gate.rows();
  }
};

/// Random coordinates to descend from: v, p and w ~ N(0, 1), m = 0.
std::vector<Vector> draw_starts(const SplitCell& cell, int count, Engine& engine);

struct FlattestSplit {
  double distance = 0;  ///< ‖f_G − f*‖ / ‖f*‖, root mean squares
  Vector coordinates;
};

/// The least distance over the rows of x (n, d) among the measures of the cell at a spread ε, by
/// Levenberg-Marquardt descents from each of the starts.
FlattestSplit flattest_split(const SplitCell& cell, const Matrix& x, double spread,
                             const std::vector<Vector>& starts);

/// Replaces the first component by two with its gate, experts c_1 η and c_2 η and half of its weight each,
/// where (c_1^q + c_2^q) / 2 = 1 for an expert with h(x, c η) = c^q h(x, η). Under sigmoids weights do not
/// divide: each has the whole weight, and c_1^q + c_2^q = 1. With K selected components one more is selected.
/// Measures the largest |f_G − f*| over draws of x. It is 0 if no least-squares fit can find c_1.
CheckFinding check_scaled_experts(const CheckEffort& effort, const MixtureForm& form, double first_scale);

/// Values of SecondOrder::least below this one are errors of differences.
constexpr double kUnseenChange = 1e-5;

/// How f changes to second order if any number of components share the first one's cell.
///
/// Let component i be at θ + δ_i with the weight p_i exp(β0), Σ p_i = 1. Then f_G − f* = D c + ½ M : H +
/// o(‖δ‖²), with the derivatives D of f in all parameters of the truth, some c, the second derivatives H of
/// the component's part, and M = Σ p_i δ_i δ_iᵀ. M is positive semidefinite. If no such M ≠ 0 cancels against
/// D, then ‖f_G − f*‖ is at least of the order of Σ p_i ‖δ_i‖².
struct SecondOrder {
  int directions = 0;  ///< of δ
  int unseen = 0;      ///< null directions of the Gram matrix of H beside D, over all symmetric M
  double least = 0;    ///< the least ‖D c + M : H‖ / ‖f*‖ over c and M with trace 1
};
SecondOrder second_order(const SplitCell& cell, const Matrix& x);

/// Counts the ways in which components of one cell can differ while f does not change to second order.
/// Predicted: 0, so that any number of fits in a cell are found at the rate n^(−1/4). For experts with second
/// derivatives only. Unit experts stay on the sphere.
CheckFinding check_second_order(const CheckEffort& effort, const MixtureForm& form);

/// The order r of ‖f_G − f*‖ ~ ε^r for two rectifiers ε apart around the first one, with its gate and half of
/// its weight each. f_G − f* is of the order of ε within a distance of the order of ε from the kink, where no
/// change of other parameters cancels it. Measures the mean slope over directions. It tends to 3/2, so
/// that experts are found at the rate n^(−1/3). Predicted: below the 2 of smooth experts.
CheckFinding check_kinks(const CheckEffort& effort, const MixtureForm& form);

/// The order r of ‖f_G − f*‖ ~ ε^r along the flattest measures with two components ε apart in the first cell.
/// Measures the slope of logarithms between the two smallest of three spreads. Predicted: 2.
CheckFinding check_flatness(const CheckEffort& effort, const MixtureForm& form,
                            ExpertFamily family = ExpertFamily::fixed_length);

}  // namespace moelab
