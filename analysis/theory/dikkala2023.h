#pragma once

/// Population loss and gradient of the two-component problem by exact one-dimensional quadrature
/// (Dikkala et al. 2023, appendix F).

#include <Eigen/Core>
#include <functional>
#include <limits>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

/// x = ±(z + g) with probability 1/2 each, g ~ N(0, σ² I) given ‖g‖ ≤ ρ, target ±v.
struct TwoComponentProblem {
  Vector mean;                                              ///< z (d)
  Vector value;                                             ///< v (o)
  double noise_std = 0.15;                                  ///< σ
  double radius = std::numeric_limits<double>::infinity();  ///< ρ; infinite for whole Gaussians
};

/// Expectations over x = z + g of q = 2 sigmoid(wᵀx) − 1 = tanh(wᵀx / 2), its derivative q' = (1 − q²) / 2
/// and t = gᵀŵ, ŵ = w / ‖w‖.
struct RouterMoments {
  double q = 0;       ///< E[q]
  double q_q = 0;     ///< E[q²]
  double dq = 0;      ///< E[q']
  double q_dq = 0;    ///< E[q q']
  double t_dq = 0;    ///< E[t q']
  double t_q_dq = 0;  ///< E[t q q']
};

/// ∂L/∂w (d) and ∂L/∂u (o).
struct TwoComponentGradient {
  Vector router;
  Vector expert;
};

/// The model f(x) = p u + (1 − p)(−u) = q u, p = sigmoid(wᵀx), under
///   L(w, u) = E‖f − v‖² over the component at z + E‖f + v‖² over the one at −z = 2 E‖q u − v‖²:
/// the sum over the components as in the paper; the mixture's mean is half of it.
///
/// g is spherical, so t has the density ∝ φ(t/σ) P(χ²_{d−1} ≤ (ρ² − t²)/σ²) whatever w, and the rest of g
/// averages out: every expectation is an integral over t. It is taken with t = ρ sin θ, which makes the
/// density analytic up to the ends, by a Gauss-Legendre rule in θ whose nodes and weights are computed once.
/// Absolute error of the moments below 1e-13 for ‖w‖ min(ρ, 8.5 σ) ≤ 20.
class TwoComponentPopulation {
 public:
  /// Throws InvalidOption for an empty z or v, σ ≤ 0, ρ ≤ 0, or a ball of radius ρ whose mass underflows.
  explicit TwoComponentPopulation(TwoComponentProblem problem);

  const TwoComponentProblem& problem() const { return problem_; }

  /// The moments at wᵀz = `signal` and ‖w‖ = `norm`.
  RouterMoments moments(double signal, double norm) const;
  RouterMoments moments(const Vector& w) const { return moments(w.dot(problem_.mean), w.norm()); }

  /// L = 2 (E[q²] ‖u‖² − 2 E[q] vᵀu + ‖v‖²).
  double loss(const Vector& w, const Vector& u) const;

  /// ∂L/∂u = 4 (E[q²] u − E[q] v), ∂L/∂w = 4 E[q' (q ‖u‖² − vᵀu)(z + t ŵ)].
  TwoComponentGradient gradient(const Vector& w, const Vector& u) const;

  /// u*(w) = v E[q] / E[q²], the minimiser of L over u for w ≠ 0.
  Vector best_expert(const Vector& w) const;

 private:
  static constexpr int kNodes = 192;
  using NodeArray = Eigen::Array<double, kNodes, 1>;

  TwoComponentProblem problem_;
  NodeArray t_;
  NodeArray weight_;  // sums to 1
};

// Population gradient descent on the two-component problem (Dikkala et al. 2023, appendix F).

struct TwoComponentState {
  Vector w;  ///< router (d)
  Vector u;  ///< expert (o)
};

struct DescentRates {
  double router = 0.05;  ///< η_w
  double expert = 0.5;   ///< η_u
};

/// The gradient that the descent follows: exact, or deliberately wrong.
using TwoComponentRule =
    std::function<TwoComponentGradient(const TwoComponentPopulation&, const TwoComponentState&)>;

TwoComponentGradient exact_gradient(const TwoComponentPopulation& population, const TwoComponentState& state);

/// Simultaneous updates w ← w − η_w ∂L/∂w, u ← u − η_u ∂L/∂u from `start`. Returns the states after
/// record[0] < record[1] < … steps.
std::vector<TwoComponentState> descend(const TwoComponentPopulation& population,
                                       const TwoComponentState& start, const DescentRates& rates,
                                       const std::vector<int>& record,
                                       const TwoComponentRule& rule = exact_gradient);

/// The problem of the reference trajectory: z a random unit vector in d = 10, σ = 0.15, v = (1, −2), ρ = 0.7.
TwoComponentProblem reference_problem(Engine& engine);

/// Entries of w and u drawn N(0, scale²). `side` +1 or −1 then turns w to wᵀz > 0 or < 0; 0 leaves it.
TwoComponentState draw_start(Engine& engine, const TwoComponentProblem& problem, double scale, int side);

/// cos(w, z).
double alignment(const TwoComponentProblem& problem, const TwoComponentState& state);

/// ‖u − sign(wᵀz) v‖ / ‖v‖.
double expert_distance(const TwoComponentProblem& problem, const TwoComponentState& state);

/// ‖w‖ after `steps` of the flow that the proof of Theorem 4 reduces the descent to, w = α z and u = u*(α z):
///   dα/ds = −η_w dL*/dα, L*(α) = 2 ‖v‖² (1 − E[q]²/E[q²]),
/// from α = `norm` at step `first`, by the classical Runge-Kutta method in log s. Holds for ‖z‖ = 1.
double reduced_flow(const TwoComponentPopulation& population, double router_rate, double norm, double first,
                    double steps);

// Lemma 1 of Dikkala et al. 2023: gradient descent on a mixture of constant experts that share their weights
// with the router is k-means by gradient steps.

/// One step of size `rate` on centres (k, d) from inputs (n, d); returns the new centres.
using CentreStep = std::function<Matrix(const Matrix& inputs, const Matrix& centres, double rate)>;

/// U − rate · ∂L/∂U for L = (1/n) Σ ‖f(x_i) − x_i‖², f(x) = Σ_j p_j u_j, p_j = 1{j = argmin ‖u_j − x‖}: with
/// the gates as a matrix P (n, k), ∂L/∂U = (2/n) Pᵀ(P U − X).
Matrix expert_gradient_step(const Matrix& inputs, const Matrix& centres, double rate);

/// The same by the trainer: one step of gradient descent on a mixture of constant experts u_j behind a router
/// of squared distances whose centres are u_j, top-1, targets x. The lemma's experts and router share their
/// weights: the router's stay behind the step, and are set to the experts' before the next.
Matrix trained_step(const Matrix& inputs, const Matrix& centres, double rate);

/// u_j + (2 · rate · n_j / n)(mean of cluster j − u_j), cluster j the n_j inputs nearest to u_j: the gradient
/// step on the k-means objective (1/n) Σ min_j ‖x_i − u_j‖². With rate n / (2 n_j) it is Lloyd's step.
Matrix k_means_step(const Matrix& inputs, const Matrix& centres, double rate);

/// The largest entry of |step − k_means_step| over runs of steps from random centres on random inputs.
CheckFinding check_lemma1(const CheckEffort& effort, const CentreStep& step = trained_step);

// Lemma 2 of Dikkala et al. 2023: f(a)/a > f(b)/b for all 0 < a < b < T implies
// E[x²] E[f(x)] > E[x] E[x f(x)] for distributions on (0, T). The proof gives the difference as
// E[(x − y)(x f(y) − y f(x))] / 2 with y an independent copy of x, which is zero for a point mass: the
// strict inequality needs a distribution with at least two points.

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

// Theorem 1 (formally Theorem 3) of Dikkala et al. 2023. Its proof shrinks the router's weights on the
// irrelevant Gaussian coordinates, W₂ → (1 − ε) W₂, and makes up for it with a Gaussian z independent of x
// so that (1 − ε) W₂ x₂ + z has the distribution of W₂ x₂. The variances must add up, so Cov(z) = (1 − (1 −
// ε)²) Cov(W₂ x₂); the paper prints the square root of that factor.

/// Cov(z) / Cov(W₂ x₂) at a given ε.
using ShrinkageFactor = std::function<double(double epsilon)>;

double shrinkage_factor_as_printed(double epsilon);
double shrinkage_factor(double epsilon);

/// Draws both sides and compares their variances along random directions, for several ε: the largest
/// difference in standard errors.
CheckFinding check_shrinkage(const CheckEffort& effort, const ShrinkageFactor& factor);

// What the proof of Theorem 2 of Dikkala et al. 2023 (appendix E) says of E = O(k log k) samples of a
// mixture of k Gaussians N(μ_c, I_d), c-separated: which clusters they cover, and how far apart they lie.

/// E = ⌈c k ln k⌉.
int router_rows(double c, int clusters);

/// Whether each of 0 … k − 1 is among the labels.
bool covers_all(const std::vector<int>& labels, int clusters);

/// The probability that E labels drawn uniformly from k take every value: the coupon collector's problem,
/// k! S(E, k) / k^E with S of Stirling's second kind. Computed label by label as a chain in the number of
/// different values so far, a sum of positive terms; inclusion and exclusion cancels.
double coverage_probability(int clusters, int rows);

using CoverageFormula = std::function<double(int clusters, int rows)>;

/// Every cluster owns a row: the share of routers drawn from a mixture against the exact probability, the
/// largest difference over several k and c in standard errors.
CheckFinding check_coverage(const CheckEffort& effort, const CoverageFormula& formula = coverage_probability);

/// "With probability ≥ 1 − 1/poly(k)": the largest of (1 − P) k^(c − 1) over k and c > 1, at most 1 by the
/// union bound.
CheckFinding check_coverage_bound(const CoverageFormula& formula = coverage_probability);

/// Pr[‖x_i − x_j‖ ≤ C√d] for x_i and x_j of two components N(μ, I) whose centres are c√d apart:
/// ‖x_i − x_j‖² / 2 has d degrees of freedom and non-centrality c² d / 2.
double near_probability(int dim, double separation, double radius);

using NearFormula = std::function<double(int dim, double separation, double radius)>;

/// The proof's (1): log10 of Pr[‖x_i − x_j‖ ≤ C√d] d^10, the largest over 2 ≤ d ≤ 1024, at c = 1.
CheckFinding check_distance(double radius);

/// The probability against draws, at radii where it can be seen: the largest difference in standard errors.
CheckFinding check_distance_drawn(const CheckEffort& effort, const NearFormula& formula = near_probability);

// Population loss of a softmax mixture of constant experts, for statements about its minima.

/// L(W, b, U) = Σ_n ω_n ‖softmax(W x_n + b)ᵀ U − y_n‖² + λ₁ ‖W‖² + λ₂ ‖U‖²: the regularised expected loss of
/// Theorem 3 of Dikkala et al. 2023 with a quadrature rule (x, y, ω) for the expectation. W (E, d), b (E) and
/// U (E, o) stand one after another, row by row, in one vector θ.
struct SoftMixturePopulation {
  Matrix x;       ///< (n, d)
  Matrix y;       ///< (n, o)
  Vector weight;  ///< ω (n), of sum 1
  int experts = 1;
  double router_penalty = 0;  ///< λ₁
  double expert_penalty = 0;  ///< λ₂

  Eigen::Index router_size() const { return experts * x.cols(); }
  Eigen::Index size() const { return experts * (x.cols() + 1 + y.cols()); }

  /// W, b and U as parts of θ.
  Eigen::Map<Matrix> router(Vector& theta) const { return {theta.data(), experts, x.cols()}; }
  Eigen::Map<const Matrix> router(const Vector& theta) const { return {theta.data(), experts, x.cols()}; }
  Eigen::Map<Vector> bias(Vector& theta) const { return {theta.data() + router_size(), experts}; }
  Eigen::Map<const Vector> bias(const Vector& theta) const { return {theta.data() + router_size(), experts}; }
  Eigen::Map<const Matrix> values(const Vector& theta) const {
    return {theta.data() + router_size() + experts, experts, y.cols()};
  }

  /// softmax(W x_n + b) (n, E).
  Matrix probabilities(const Vector& theta) const;
  /// The expectation alone, without λ₁ and λ₂.
  double task_loss(const Vector& theta) const;
  double loss(const Vector& theta) const;
  Vector gradient(const Vector& theta) const;
  /// ∂²L/∂θ², by central differences of the gradient; error about 1e-9.
  Matrix hessian(const Vector& theta) const;
};

/// Where a descent ended.
struct DescentEnd {
  Vector theta;
  double gradient_norm = 0;
  int steps = 0;
};

/// Steps of gradient descent, then Newton steps −|H|⁻¹ ∂L/∂θ, |H| the Hessian with the absolute values of its
/// eigenvalues, which go down along directions of negative curvature; every step is halved until L does not
/// rise. Ends at ‖∂L/∂θ‖ ≤ `tolerance`, or after 1000 steps.
DescentEnd descend(const SoftMixturePopulation& population, const Vector& start, double tolerance);

// Problems of Theorem 1 (formally Theorem 3) of Dikkala et al. 2023: x = Q₁ x₁ + Q₂ x₂ with an orthogonal
// (Q₁, Q₂), a target y(x₁) that depends only on the part of x in V = span Q₁, and x₂ ~ N(0, I) independent
// of x₁. The model is a softmax mixture of 3 constant experts with biases; d = 4, d' = 2, o = 3, λ₁ = λ₂ =
// 0.01.
//
// The theorem asks nothing of x₁. Its distribution is that of a few points, and x₂ is integrated out by a
// Gauss-Hermite rule, so that each problem is an instance of the theorem and its expectations are exact up
// to that rule.

struct SubspaceProblem {
  SoftMixturePopulation population;
  Matrix relevant;    ///< Q₁ (d, d'), a basis of V
  Matrix irrelevant;  ///< Q₂ (d, d − d')
};

/// λ₁ and λ₂.
constexpr double kSubspacePenalty = 0.01;
/// Problems that a check draws, times its seeds.
constexpr int kSubspaceRepetitions = 8;
/// The norm below which a gradient counts as 0.
constexpr double kStationary = 1e-9;
/// Uniforms from which one x is computed: the component of x₁, its normals, and those of x₂.
constexpr int kSubspaceUniforms = 5;

/// Components of a mixture in V, and the values that y takes on the cells of their centres.
struct SignalMixture {
  Matrix centres;  ///< (k, d')
  Matrix values;   ///< (k, o)
};
SignalMixture draw_signal_mixture(Engine& engine);

/// Axes as bases, or a random rotation of them; the population is left empty.
SubspaceProblem draw_subspaces(Engine& engine, bool rotated);

/// x₁ at quasi-random points of a random mixture, y the value of the nearest centre; x₂ integrated out.
SubspaceProblem draw_subspace_problem(Engine& engine, bool rotated);

/// The population as plain points of equal weight, from uniforms (n, kSubspaceUniforms).
void set_points(SubspaceProblem& problem, const SignalMixture& mixture, const Matrix& uniforms);

/// Entries N(0, 1), and N(0, 1/9) in W₂, for which the rule for x₂ is good to 1e-3.
Vector draw_parameters(Engine& engine, const SubspaceProblem& problem);

/// A stationary point with W₂ ≠ 0: θ is drawn, and targets y(x₁) are solved for, ∂L/∂θ being linear in them.
struct Saddle {
  SubspaceProblem problem;
  Vector theta;
};
Saddle draw_saddle(Engine& engine);

/// W₂ = W Q₂ (E, d − d').
Matrix irrelevant_part(const SubspaceProblem& problem, const Vector& theta);
/// ‖W₂‖ / ‖W‖.
double irrelevant_share(const SubspaceProblem& problem, const Vector& theta);
/// The nodes of the rule for x₂ (q, d − d'), and their weights (q), of sum 1.
struct NormalRule {
  Matrix points;
  Vector weight;
};
const NormalRule& irrelevant_rule();

// The proof of Theorem 1 (formally Theorem 3) of Dikkala et al. 2023 where W₂ ≠ 0. With x₂ ~ N(0, I),
// (1 − ε) W₂ x₂ + z is distributed as W₂ x₂ for z = √(1 − (1 − ε)²) W₂ ζ, ζ ~ N(0, I), so that the expected
// loss E ℓ(W, b) is the mean over z of E ℓ(W', b + z) with W₂' = (1 − ε) W₂, and the best z does no worse:
//   L(W, b, U) − L(W', b + z*, U) ≥ λ₁ (1 − (1 − ε)²) ‖W₂‖².
// To first order in ε, shrinking alone changes L by −ε (⟨W₂, H W₂⟩ + 2 λ₁ ‖W₂‖²), H = ∂²E ℓ/∂b², which is a
// decrease where H ⪰ 0. Where (H + 2 λ₁) W₂ = 0 it is none, and the shift of b descends: along the columns
// of W₂ the curvature in b is −2 λ₁, so that the stationary point is a saddle.

/// The decrease over λ₁ (1 − (1 − ε)²) ‖W₂‖²: the smallest over random points, saddles and ε. z* is the best
/// of the nodes of a rule for ζ, no worse than their mean. Without `shift`, z* = 0.
CheckFinding check_descent_step(const CheckEffort& effort, bool shift = true);

/// dL/dε at ε = 0 of shrinking W₂ alone, from H (E, E) and W₂ (E, d − d').
using ShrinkingSlope =
    std::function<double(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty)>;
/// −⟨W₂, H W₂⟩ − 2 λ₁ ‖W₂‖².
double shrinking_slope(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty);

/// The largest difference from the slope of L, relative to ‖H‖ ‖W₂‖², over random points.
CheckFinding check_shrinking_slope(const CheckEffort& effort, const ShrinkingSlope& slope = shrinking_slope);

/// The curvature in b along the columns of W₂ at a stationary point with W₂ ≠ 0.
using SaddleCurvature = std::function<double(double penalty)>;
/// −2 λ₁.
double saddle_curvature(double penalty);

/// The measured curvature that differs most from it.
CheckFinding check_saddle_curvature(const CheckEffort& effort,
                                    const SaddleCurvature& curvature = saddle_curvature);

// Theorem 1 (formally Theorem 3) of Dikkala et al. 2023: at a local minimum the rows of W lie in V. Write
// W = (W₁, W₂) for the parts on x₁ and x₂. By Stein's identity
//   ∂L/∂W₂ = (H + 2 λ₁) W₂,  H = ∂²E ℓ/∂b²,
// and b is not penalised, so that H ⪰ 0 at a local minimum: hence ‖W₂‖ ≤ ‖∂L/∂W₂‖ / (2 λ₁) there, which is
// the theorem, with a bound for descents that end at a gradient that is small and not zero.

/// Alters each problem after it is drawn. Tests pass one that breaks the theorem.
using ProblemChange = std::function<void(SubspaceProblem&)>;

/// The largest ‖W₂‖ / ‖W‖ at the ends of descents, each on a problem with other points x₁ and from another
/// start. `rotated` turns V at random; else it is spanned by axes.
CheckFinding check_local_minima(const CheckEffort& effort, bool rotated, const ProblemChange& change = {});

/// The same with one quasi-random rule for the whole of x, held fixed within a descent: ‖mean of W₂‖ / ‖mean
/// of W‖ over random shifts of the rule, all from one start.
CheckFinding check_local_minima_quasi_random(const CheckEffort& effort, const ProblemChange& change = {});

/// Descents from beside saddles with W₂ ≠ 0: the largest of ‖W₂‖ at the end over ‖W₂‖ at the saddle. θ is
/// moved from the saddle by `push` times random parameters.
CheckFinding check_saddle_is_left(const CheckEffort& effort, double push = 1e-3);

// Theorem 2 of Dikkala et al. 2023 (appendix E): a softmax router whose rows start at E = O(k log k) samples
// of a mixture of k Gaussians N(μ_c, I_d). The rows that started at samples of cluster c, and their experts,
// are its specialists. The proof needs centres that are also random: of two on one ray, the longer one has
// the larger scores everywhere.

/// Centres (k, d).
using CentreRule = std::function<Matrix(Engine& engine, int clusters, int dim)>;
/// Uniform in the ball of radius √d (α = 1), drawn until they are ½-separated.
Matrix random_centres(Engine& engine, int clusters, int dim);
/// On one ray, with norms 1√d, 3√d, …: 2-separated, and not random.
Matrix ray_centres(Engine& engine, int clusters, int dim);

/// The routing mass that inputs give to other clusters' specialists falls as exp(−Ω(d)): the slope of the
/// logarithm of its mean against d from 32 to 64 (the flatter end of the 99.9 % interval) over that from 8 to
/// 16, which is 1 for an exponential and 1/4 for any power of d. Predicted: at least 1/2. Routers in which a
/// cluster owns no row are drawn again.
CheckFinding check_off_cluster_mass(const CheckEffort& effort, int clusters,
                                    const CentreRule& centres = random_centres);

/// Population gradient descent on constant experts and, at a small rate, the router: the largest over
/// clusters of the least ‖u_j − v_c‖ / ‖v_c‖ among the specialists of c at the end. `row_scale` multiplies
/// the samples at which the rows start; at `router_rate` 0 they stay there.
CheckFinding check_specialists(const CheckEffort& effort, double row_scale = 1, double router_rate = 1e-3);

// Theorem 4 of Dikkala et al. 2023: population gradient descent on the truncated two-component problem (see
// analysis/theory/dikkala2023.h) from tiny random weights with η_u ≫ η_w ends with ŵ = ±z, ‖w‖
// → ∞ and u = ±v.
//
// Limits are checked at a finite number of steps against what the proof's own reduction (w = α z, u = u*(w))
// says there. The rule of the descent can be replaced by a wrong one.

/// The largest 1 − |cos(w, z)| after 100 steps from starts of scale 1e-4 with wᵀz > 0 (`side` 1) or < 0 (−1).
CheckFinding check_alignment(const CheckEffort& effort, int side,
                             const TwoComponentRule& rule = exact_gradient);

/// ‖w‖ after `steps` against `reference`, from starts of scale 1e-3 on both sides: the value furthest off.
CheckFinding check_norm(const CheckEffort& effort, int steps, double reference,
                        const TwoComponentRule& rule = exact_gradient);

/// ‖w‖ after 10⁵ steps against the reduced flow from the descent's ‖w‖ after 10³: the value furthest off.
CheckFinding check_growth(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// d‖w‖/d log t over the last decade before 10⁵ steps against that of the reduced flow from ‖w‖ after 10⁴, to
/// 1 %. On the component, 1 − q ≈ 2 exp(−‖w‖ x₁) with
/// 1 − ρ ≤ x₁ ≤ 1 + ρ, and the slope of the loss is of the order of its square: −d log(slope)/d‖w‖ lies
/// between 2(1 − ρ) and 2(1 + ρ), so that ‖w‖ gains between 1/(2(1 + ρ)) and 1/(2(1 − ρ)) per unit of log t.
CheckFinding check_log_rate(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// ‖u − sign(wᵀz) v‖ / ‖v‖ after 10⁵ steps against E[q]/E[q²] − 1, which u*(w) leaves at this ‖w‖.
CheckFinding check_experts(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// The share of random starts that end on the other side of wᵀz = 0. Near zero the descent is linear in
/// (wᵀz, vᵀu), and its growing direction has the sign of √η_u ‖v‖ wᵀz + √η_w vᵀu: for independent normal
/// entries of equal scale a share arctan(√(η_w/η_u))/π changes side, none as η_u/η_w → ∞.
CheckFinding check_side(const CheckEffort& effort, const DescentRates& rates,
                        const TwoComponentRule& rule = exact_gradient);

/// The loss and its gradient do not depend on the weights p, 1 − p of the components at z and −z: g has a
/// symmetric law and q is odd, so that f(−x) = −f(x) and both terms of p E‖f − v‖² + (1 − p) E‖f + v‖² are
/// equal. Measured: the largest relative difference from even weights over random w, u and the same rows ±g
/// of both components, which share no sum. A router with a `bias` is not odd.
CheckFinding check_weights(const CheckEffort& effort, double bias = 0);

/// Whole Gaussians: E[y | x] = v tanh(zᵀx/σ²), so the model is exact at w = 2z/σ², u = v, and ‖w‖ stays
/// finite.
CheckFinding check_untruncated(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

// The population gradient that the checks of Theorem 4 (Dikkala et al. 2023) descend on, against its
// definition L = E_{x ∈ G}‖(2p − 1)u − v‖² + E_{x ∈ G'}‖(2p − 1)u + v‖², p = sigmoid(wᵀx).

/// The largest deviation from the mean of sampled gradients over points (w, u) and coordinates, in standard
/// errors. Both components are sampled by rejection, independently of the quadrature's density.
CheckFinding check_gradient_by_sampling(const CheckEffort& effort,
                                        const TwoComponentRule& rule = exact_gradient);

/// The largest deviation from central differences of TwoComponentPopulation::loss.
CheckFinding check_gradient_by_differences(const CheckEffort& effort,
                                           const TwoComponentRule& rule = exact_gradient);

// Claims 1-3 in the proof of Theorem 4 of Dikkala et al. 2023, on the truncated component G at z, ‖z‖ = 1,
// for q = 2 sigmoid(wᵀx) − 1 and q' = (1 − q²)/2:
//   1. wᵀz > 0 implies E[q] > 0;
//   2. E[q' q] E[q] < E[q²] E[q'];
//   3. w = α z, α > 0 implies E[x₁ q' q] E[q] < E[q²] E[x₁ q'], x₁ = xᵀz.
// The paper's proofs write q as h(t) = 1 − 2 sigmoid(t), which is the negative of the q of its loss; with it
// Claim 1 and q' = (1 − q²)/2 are wrong.

/// h(t): the routing function of a score.
using RoutingFunction = std::function<double(double score)>;

double routing_function_as_printed(double score);  ///< 1 − 2 sigmoid(t)
double routing_function(double score);             ///< 2 sigmoid(t) − 1

/// The moments of one draw, exact or deliberately wrong.
using MomentRule = std::function<RouterMoments(const TwoComponentPopulation&, double signal, double norm)>;

RouterMoments exact_moments(const TwoComponentPopulation& population, double signal, double norm);
/// The moments of −q with its derivative −q'.
RouterMoments moments_as_printed(const TwoComponentPopulation& population, double signal, double norm);

/// The largest |h' − (1 − h²)/2|, h' by central differences.
CheckFinding check_routing_derivative(const RoutingFunction& h);

/// Each gives the share of random (d, σ, ρ, w) on which the strict inequality holds by more than the error of
/// the quadrature.
CheckFinding check_claim1(const CheckEffort& effort, const MomentRule& moments = exact_moments);
CheckFinding check_claim2(const CheckEffort& effort, const MomentRule& moments = exact_moments);
/// `radius` 0 draws ρ < 1; infinity takes whole Gaussians, for which the claim is not made.
CheckFinding check_claim3(const CheckEffort& effort, double radius = 0,
                          const MomentRule& moments = exact_moments);

}  // namespace moelab
