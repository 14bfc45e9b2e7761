#pragma once

/// Checks of Dikkala et al. 2023 (on the benefits of learning to route in mixtures of experts), in the order
/// of the paper. Many checks take a rule, a formula or a change, so that tests can pass a wrong one.

#include <Eigen/Core>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "analysis/theory/check.h"

namespace moelab {

// Lemma 1: gradient descent on a mixture of constant experts that share their weights with the router is
// k-means by gradient steps.

/// One step of size `rate` on centres (k, d) from inputs (n, d). Returns the new centres.
using CentreStep = std::function<Matrix(const Matrix& inputs, const Matrix& centres, double rate)>;

/// U − rate · ∂L/∂U for L = (1/n) Σ ‖f(x_i) − x_i‖², f(x) = Σ_j p_j u_j, p_j = 1{j = argmin ‖u_j − x‖}. With
/// the gates as a matrix P (n, k), ∂L/∂U = (2/n) Pᵀ(P U − X).
Matrix expert_gradient_step(const Matrix& inputs, const Matrix& centres, double rate);

/// The same step by the trainer: constant experts u_j, top-1, a router of squared distances with centres u_j,
/// targets x. The router does not train. Its centres are set to the experts before each step.
Matrix trained_step(const Matrix& inputs, const Matrix& centres, double rate);

/// u_j + (2 · rate · n_j / n)(mean of cluster j − u_j), where cluster j is the n_j inputs nearest to u_j: the
/// gradient step on (1/n) Σ min_j ‖x_i − u_j‖². Rate n / (2 n_j) is Lloyd's step.
Matrix k_means_step(const Matrix& inputs, const Matrix& centres, double rate);

/// Measures the largest entry of |step − k_means_step| over runs of steps from random centres on random
/// inputs.
CheckFinding check_lemma1(const CheckEffort& effort, const CentreStep& step = trained_step);

// Theorem 1 (formally Theorem 3): at a local minimum the rows of W lie in V, the span of the relevant part.
// x = Q₁ x₁ + Q₂ x₂ with an orthogonal (Q₁, Q₂), y(x₁) depends only on x₁, and x₂ ~ N(0, I) is independent of
// x₁. Write W = (W₁, W₂) for the parts on x₁ and x₂. Stein's identity gives
//   ∂L/∂W₂ = (H + 2 λ₁) W₂,  H = ∂²E ℓ/∂b².
// b is not penalised, so H ⪰ 0 at a local minimum. Hence ‖W₂‖ ≤ ‖∂L/∂W₂‖ / (2 λ₁), which is the theorem with
// an error bound for descents that end at a small gradient.

/// The regularised expected loss of a softmax mixture of constant experts
///   L(W, b, U) = Σ_n ω_n ‖softmax(W x_n + b)ᵀ U − y_n‖² + λ₁ ‖W‖² + λ₂ ‖U‖²
/// with a quadrature rule (x, y, ω) for the expectation. The vector θ holds W (E, d), b (E) and U (E, o) row
/// by row.
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
  /// The expectation without λ₁ and λ₂.
  double task_loss(const Vector& theta) const;
  double loss(const Vector& theta) const;
  Vector gradient(const Vector& theta) const;
  /// ∂²L/∂θ² by central differences of the gradient. The error is about 1e-9.
  Matrix hessian(const Vector& theta) const;
};

struct DescentEnd {
  Vector theta;
  double gradient_norm = 0;
  int steps = 0;
};

/// Gradient steps, then Newton steps −|H|⁻¹ ∂L/∂θ, where |H| is the Hessian with the absolute values of its
/// eigenvalues: they descend along directions of negative curvature. Every step is halved until L does not
/// rise. Ends at ‖∂L/∂θ‖ ≤ `tolerance`, or after 1000 steps.
DescentEnd descend(const SoftMixturePopulation& population, const Vector& start, double tolerance);

/// An instance of the theorem with 3 experts, d = 4, d' = 2, o = 3 and λ₁ = λ₂ = 0.01. The theorem assumes
/// nothing about x₁. Here x₁ takes a few values, and a Gauss-Hermite rule integrates x₂ out. So expectations
/// are exact up to that rule.
struct SubspaceProblem {
  SoftMixturePopulation population;
  Matrix relevant;    ///< Q₁ (d, d'), a basis of V
  Matrix irrelevant;  ///< Q₂ (d, d − d')
};

/// x₁ at quasi-random points of a random mixture, y the value of the nearest centre. `rotated` turns V at
/// random; otherwise axes span it.
SubspaceProblem draw_subspace_problem(Engine& engine, bool rotated);

/// θ with entries N(0, 1), and N(0, 1/9) in W₂, for which the rule for x₂ has an error of 1e-3.
Vector draw_parameters(Engine& engine, const SubspaceProblem& problem);

/// The nodes of the rule for x₂ (q, d − d') and their weights (q), of sum 1.
struct NormalRule {
  Matrix points;
  Vector weight;
};
const NormalRule& irrelevant_rule();

/// Alters each problem after it is drawn. Tests break the theorem with it.
using ProblemChange = std::function<void(SubspaceProblem&)>;

/// Measures the largest ‖W₂‖ / ‖W‖ at the ends of descents, each on its own problem and from its own start.
CheckFinding check_local_minima(const CheckEffort& effort, bool rotated, const ProblemChange& change = {});

/// The same with one quasi-random rule for all of x, held fixed within a descent. Measures ‖mean of W₂‖ /
/// ‖mean of W‖ over random shifts of the rule, all from one start.
CheckFinding check_local_minima_quasi_random(const CheckEffort& effort, const ProblemChange& change = {});

/// Descents from near saddles with W₂ ≠ 0: θ is the saddle plus `push` times random parameters. Measures the
/// largest ‖W₂‖ at the end over ‖W₂‖ at the saddle.
CheckFinding check_saddle_is_left(const CheckEffort& effort, double push = 1e-3);

// The proof of Theorem 1 shrinks the router's weights on x₂, W₂ → (1 − ε) W₂, and adds a Gaussian z
// independent of x, so that (1 − ε) W₂ x₂ + z has the law of W₂ x₂. Variances must add up, so Cov(z) = (1 −
// (1 − ε)²) Cov(W₂ x₂). The paper prints the square root of that factor.
//
// Then E ℓ(W, b) is the mean over z of E ℓ(W', b + z) with W₂' = (1 − ε) W₂, and the best z* is no worse:
//   L(W, b, U) − L(W', b + z*, U) ≥ λ₁ (1 − (1 − ε)²) ‖W₂‖².
// To first order in ε, shrinking alone changes L by −ε (⟨W₂, H W₂⟩ + 2 λ₁ ‖W₂‖²). If H ⪰ 0 this is a
// decrease. If (H + 2 λ₁) W₂ = 0 it is none, and the shift of b descends: the curvature in b along the
// columns of W₂ is −2 λ₁, so the stationary point is a saddle.

/// Cov(z) / Cov(W₂ x₂).
using ShrinkageFactor = std::function<double(double epsilon)>;
double shrinkage_factor_as_printed(double epsilon);
double shrinkage_factor(double epsilon);

/// Draws both sides for several ε and compares their variances along random directions. Measures the largest
/// difference in standard errors.
CheckFinding check_shrinkage(const CheckEffort& effort, const ShrinkageFactor& factor);

/// Measures the smallest decrease of L over λ₁ (1 − (1 − ε)²) ‖W₂‖², over random points, saddles and ε. z* is
/// the best node of a rule for z, which is no worse than the mean of the nodes. Without `shift`, z* = 0.
CheckFinding check_descent_step(const CheckEffort& effort, bool shift = true);

/// dL/dε at ε = 0 for shrinking W₂ alone, from H (E, E) and W₂ (E, d − d').
using ShrinkingSlope =
    std::function<double(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty)>;
/// −⟨W₂, H W₂⟩ − 2 λ₁ ‖W₂‖².
double shrinking_slope(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty);

/// Measures the largest difference from the slope of L, relative to ‖H‖ ‖W₂‖², over random points.
CheckFinding check_shrinking_slope(const CheckEffort& effort, const ShrinkingSlope& slope = shrinking_slope);

/// The curvature in b along the columns of W₂ at a stationary point with W₂ ≠ 0.
using SaddleCurvature = std::function<double(double penalty)>;
double saddle_curvature(double penalty);  ///< −2 λ₁

/// Measures the curvature that differs most from the predicted one.
CheckFinding check_saddle_curvature(const CheckEffort& effort,
                                    const SaddleCurvature& curvature = saddle_curvature);

// Limits of Theorem 1. It is about a model g_U(W x + b) with an unpenalised b: the proof moves b at no cost.
// So routing by W x alone, as in the paper's experiments, is not covered. The proof also replaces a shrunk W₂
// by a z with a W₂ x₂ + z ~ W₂ x₂. For all a < 1 such a z exists only if the law of x₂ is self-decomposable,
// as the normal law is. For a *global* minimum independence of x₂ is enough: one of the biases b + W₂ c is no
// worse than the mean over x₂.
//
// The counterexamples are certified. Let μ be the least eigenvalue of the Hessian at a point, g the norm of
// the gradient and K a bound on third derivatives within distance 1. Then 2 K g < μ² implies a strict local
// minimum within 2 g / μ (Newton-Kantorovich). g is computed with 50 decimal digits. The rule for x₂ is the
// trapezoidal rule for an analytic function under a normal density, and g includes the change when its step
// is halved.

constexpr int kBiasedInputs = 3, kBiasedOutputs = 2;  ///< d and o, for E = 3
constexpr int kBiasedEntries = 18;                    ///< of θ
constexpr double kBiasedPenalty = 0.003;              ///< λ₁ = λ₂

/// A value of x, two relevant coordinates and one irrelevant, with its probability. `Real` is any precision.
template <class Real>
struct BiasedSample {
  std::array<Real, kBiasedInputs> x;
  std::array<Real, kBiasedOutputs> y;
  Real mass;
};

/// θ: W (3, 3) and U (3, 2) by rows, then b (3).
template <class Real>
using BiasedPoint = std::array<Real, kBiasedEntries>;

template <class Real>
struct BiasedLoss {
  Real value = 0;
  BiasedPoint<Real> gradient{};
  std::array<BiasedPoint<Real>, kBiasedEntries> hessian{};
};

/// E‖y − Σ_e r_e u_e‖² + λ (‖W‖² + ‖U‖²) with r = softmax(W x + b), and on request its derivatives in θ.
template <class Real>
BiasedLoss<Real> biased_loss(const std::vector<BiasedSample<Real>>& samples, const BiasedPoint<Real>& theta,
                             bool derivatives);

/// Measures ‖W₂‖ / ‖W‖ at a strict local minimum of that loss with b = 0. x₂ ~ N(0, 1). x₁ is 0 with mass
/// 0.4, or one of three points of norm 4 at 120° with mass 0.2 each, and y = (0, 0), (0, 1), (0, −1), (6, 0).
/// Predicted: 0.
CheckFinding check_without_bias(const CheckEffort& effort);

/// Measures |W₂| at the strict local minimum in (W₂, b) of E g(W₂ x₂ + b)² + λ₁ W₂², g(s) = (s² − 1)²,
/// x₂ = ±1. It has b = 0 and W₂² = 1 − (λ₁ / 4)^{1/3}. Predicted: 0.
CheckFinding check_two_points(const CheckEffort& effort);

/// Laws of x₂ for the two checks of steps.
enum class IrrelevantLaw {
  laplace,    ///< self-decomposable: a x₂ + z ~ x₂ for z = 0 with probability a², else Laplace
  two_point,  ///< ±1, not self-decomposable
};

/// Measures the smallest decrease of the loss from (W₂, b) to (0, b + W₂ c) minus λ₁ ‖W₂‖², over random
/// mixtures with the best b for W₂. c is the best value of x₂, or 0 without `shift`. Predicted: at least 0.
CheckFinding check_global_step(const CheckEffort& effort, IrrelevantLaw law, bool shift = true);

/// Measures the smallest decrease from (W₂, b) to (a W₂, b + W₂ z) over λ₁ (1 − a²) ‖W₂‖², for a near 1 under
/// the Laplace law. z is its best value, or 0 without `shift`. Predicted: at least 1.
CheckFinding check_local_step(const CheckEffort& effort, bool shift = true);

// Theorem 2 (appendix E): a softmax router whose rows start at E = O(k log k) samples of a mixture of k
// Gaussians N(μ_c, I_d), c-separated. The rows that start at samples of cluster c, and their experts, are its
// specialists. The proof needs random centres: of two centres on one ray, the longer one has the larger
// scores everywhere.

/// The probability that E labels drawn uniformly from k take every value (the coupon collector's problem):
/// k! S(E, k) / k^E with S of Stirling's second kind. Computed as a chain in the number of different values
/// so far, a sum of positive terms. Inclusion and exclusion would cancel.
double coverage_probability(int clusters, int rows);
using CoverageFormula = std::function<double(int clusters, int rows)>;

/// Measures the largest difference, in standard errors, between the share of routers in which every cluster
/// owns a row and the exact probability, over several k and c in E = ⌈c k ln k⌉.
CheckFinding check_coverage(const CheckEffort& effort, const CoverageFormula& formula = coverage_probability);

/// "With probability ≥ 1 − 1/poly(k)": measures the largest (1 − P) k^(c − 1) over k and c > 1, which is at
/// most 1 by the union bound.
CheckFinding check_coverage_bound(const CoverageFormula& formula = coverage_probability);

/// Pr[‖x_i − x_j‖ ≤ C√d] for x_i and x_j of two components N(μ, I) whose centres are c√d apart. ‖x_i − x_j‖²
/// / 2 is non-central χ² with d degrees of freedom and non-centrality c² d / 2.
double near_probability(int dim, double separation, double radius);
using NearFormula = std::function<double(int dim, double separation, double radius)>;

/// The proof's (1): measures the largest log10 of Pr[‖x_i − x_j‖ ≤ C√d] d^10 over 2 ≤ d ≤ 1024 at c = 1.
CheckFinding check_distance(double radius);

/// Measures the largest difference between the probability and draws, in standard errors, at visible radii.
CheckFinding check_distance_drawn(const CheckEffort& effort, const NearFormula& formula = near_probability);

/// Centres (k, d).
using CentreRule = std::function<Matrix(Engine& engine, int clusters, int dim)>;
/// Uniform in the ball of radius √d (α = 1), drawn until they are ½-separated.
Matrix random_centres(Engine& engine, int clusters, int dim);
/// On one ray, with norms 1√d, 3√d, …: 2-separated and not random.
Matrix ray_centres(Engine& engine, int clusters, int dim);

/// The routing mass that inputs give to other clusters' specialists falls as exp(−Ω(d)). Measures the slope
/// of the logarithm of its mean against d from 32 to 64 (the flatter end of the 99.9 % interval) over the
/// slope from 8 to 16: 1 for an exponential, 1/4 for any power of d. Predicted: at least 1/2. Routers in
/// which a cluster owns no row are drawn again.
CheckFinding check_off_cluster_mass(const CheckEffort& effort, int clusters,
                                    const CentreRule& centres = random_centres);

/// Population gradient descent on constant experts and, at a small rate, the router. Measures the largest
/// over clusters of the least ‖u_j − v_c‖ / ‖v_c‖ among the specialists of c at the end. `row_scale`
/// multiplies the samples at which the rows start. With `router_rate` 0 the rows stay there.
CheckFinding check_specialists(const CheckEffort& effort, double row_scale = 1, double router_rate = 1e-3);

/// The theorem's own setting: k = 16, d = 32, n = ⌈d k ln k⌉ samples, E = ⌈2 k ln k⌉ rows at samples, and
/// ⌈8 ln n⌉ steps of gradient descent on all n samples. Measures the same distance, `directions` instead the
/// least cosine between a row of the router at that step and after as many steps again, which is claimed to
/// be 1, at least 0.99.
CheckFinding check_sample_specialists(const CheckEffort& effort, bool directions, double row_scale = 1);

// Theorem 4 (appendix F): population gradient descent on the truncated two-component problem from tiny random
// weights with η_u ≫ η_w ends with ŵ = ±z, ‖w‖ → ∞ and u = ±v. The checks compare a finite number of steps
// with what the proof's own reduction (w = α z, u = u*(w)) predicts for it.

/// x = ±(z + g) with probability 1/2 each, g ~ N(0, σ² I) given ‖g‖ ≤ ρ, target ±v.
struct TwoComponentProblem {
  Vector mean;                ///< z (d)
  Vector value;               ///< v (o)
  double noise_std = 0.15;    ///< σ
  double radius = kInfinity;  ///< ρ; infinite for whole Gaussians
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

/// The population loss and gradient of the model f(x) = p u + (1 − p)(−u) = q u, p = sigmoid(wᵀx):
///   L(w, u) = E‖f − v‖² over the component at z + E‖f + v‖² over the one at −z = 2 E‖q u − v‖².
/// This is the paper's sum over the components. The mixture's mean is half of it.
///
/// g is spherical, so t has the density ∝ φ(t/σ) P(χ²_{d−1} ≤ (ρ² − t²)/σ²) for every w, and the rest of g
/// averages out. So every expectation is an integral over t. With t = ρ sin θ the density is analytic up to
/// the ends, and a Gauss-Legendre rule in θ applies. The moments have absolute errors below 1e-13 for ‖w‖
/// min(ρ, 8.5 σ) ≤ 20.
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

struct TwoComponentState {
  Vector w;  ///< router (d)
  Vector u;  ///< expert (o)
};

struct DescentRates {
  double router = 0.05;  ///< η_w
  double expert = 0.5;   ///< η_u
};

/// The gradient that a descent follows.
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

/// One g ~ N(0, σ² I) given ‖g‖ ≤ ρ, by rejection.
Vector draw_noise(Engine& engine, const TwoComponentProblem& problem);

/// Entries of w and u drawn N(0, scale²). `side` +1 or −1 then turns w to wᵀz > 0 or < 0; 0 leaves it.
TwoComponentState draw_start(Engine& engine, const TwoComponentProblem& problem, double scale, int side);

/// cos(w, z).
double alignment(const TwoComponentProblem& problem, const TwoComponentState& state);

/// ‖u − sign(wᵀz) v‖ / ‖v‖.
double expert_distance(const TwoComponentProblem& problem, const TwoComponentState& state);

/// ‖w‖ after `steps` of the flow to which the proof reduces the descent, w = α z and u = u*(α z):
///   dα/ds = −η_w dL*/dα, L*(α) = 2 ‖v‖² (1 − E[q]²/E[q²]),
/// from α = `norm` at step `first`, by the classical Runge-Kutta method in log s. ‖z‖ must be 1.
double reduced_flow(const TwoComponentPopulation& population, double router_rate, double norm, double first,
                    double steps);

/// Measures the largest 1 − |cos(w, z)| after 100 steps from starts of scale 1e-4 with wᵀz > 0 (`side` 1) or
/// < 0 (−1).
CheckFinding check_alignment(const CheckEffort& effort, int side,
                             const TwoComponentRule& rule = exact_gradient);

/// Compares ‖w‖ after `steps` with `reference`, from starts of scale 1e-3 on both sides. Measures the value
/// that is furthest off.
CheckFinding check_norm(const CheckEffort& effort, int steps, double reference,
                        const TwoComponentRule& rule = exact_gradient);

/// Compares ‖w‖ after 10⁵ steps with the reduced flow from the descent's ‖w‖ after 10³ steps.
CheckFinding check_growth(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// Compares d‖w‖/d log t over the last decade before 10⁵ steps with the reduced flow from ‖w‖ after 10⁴
/// steps, to 1 %. On the component, 1 − q ≈ 2 exp(−‖w‖ x₁) with 1 − ρ ≤ x₁ ≤ 1 + ρ, and the slope of the loss
/// is of the order of its square. So −d log(slope)/d‖w‖ lies between 2(1 − ρ) and 2(1 + ρ), and ‖w‖ gains
/// between 1/(2(1 + ρ)) and 1/(2(1 − ρ)) per unit of log t.
CheckFinding check_log_rate(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// Compares ‖u − sign(wᵀz) v‖ / ‖v‖ after 10⁵ steps with E[q]/E[q²] − 1, the distance of u*(w) at this ‖w‖.
CheckFinding check_experts(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// Measures the share of random starts that end on the other side of wᵀz = 0. Near zero the descent is linear
/// in (wᵀz, vᵀu), and its growing direction has the sign of √η_u ‖v‖ wᵀz + √η_w vᵀu. For independent normal
/// entries of equal scale a share arctan(√(η_w/η_u))/π changes side, and none as η_u/η_w → ∞.
CheckFinding check_side(const CheckEffort& effort, const DescentRates& rates,
                        const TwoComponentRule& rule = exact_gradient);

/// The loss and its gradient do not depend on the weights p, 1 − p of the components at z and −z. The reason:
/// g has a symmetric law and q is odd, so f(−x) = −f(x). Both terms of p E‖f − v‖² + (1 − p) E‖f + v‖² are
/// then equal. Measures the largest relative difference from even weights, over random w and u. Both
/// components have the same rows ±g. A router with a `bias` is not odd.
CheckFinding check_weights(const CheckEffort& effort, double bias = 0);

/// Whole Gaussians: E[y | x] = v tanh(zᵀx/σ²), so the model is exact at w = 2z/σ², u = v, and ‖w‖ stays
/// finite.
CheckFinding check_untruncated(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// The population gradient against the mean of sampled gradients of
///   L = E_{x ∈ G}‖(2p − 1)u − v‖² + E_{x ∈ G'}‖(2p − 1)u + v‖², p = sigmoid(wᵀx).
/// Measures the largest deviation over points (w, u) and coordinates, in standard errors. Rejection samples
/// both components, independently of the density in the quadrature.
CheckFinding check_gradient_by_sampling(const CheckEffort& effort,
                                        const TwoComponentRule& rule = exact_gradient);

/// Measures the largest deviation from central differences of TwoComponentPopulation::loss.
CheckFinding check_gradient_by_differences(const CheckEffort& effort,
                                           const TwoComponentRule& rule = exact_gradient);

// Lemma 2 (proof of Theorem 4): f(a)/a > f(b)/b for all 0 < a < b < T implies E[x²] E[f(x)] > E[x] E[x f(x)]
// for distributions on (0, T). The proof writes the difference as E[(x − y)(x f(y) − y f(x))] / 2 with y an
// independent copy of x. It is zero for a point mass, so the strict inequality needs at least two points.

/// f on (0, T).
struct ScalarFunction {
  std::string name;
  double end = 1;  ///< T
  std::function<double(double)> value;
};

/// Points x_k in (0, T) with weights of sum 1. The nodes of a quadrature rule stand for a continuous
/// distribution: they are themselves a distribution on (0, T).
struct WeightedPoints {
  Vector x;
  Vector weight;
};

/// E[x²] E[f] − E[x] E[x f], divided by E[x²] E|f| + E[x] E[x |f|].
double lemma2_gap(const WeightedPoints& points, const ScalarFunction& f);
using Lemma2Gap = std::function<double(const WeightedPoints&, const ScalarFunction&)>;

/// The functions of Claims 2 and 3, and others that meet the hypothesis.
std::vector<ScalarFunction> lemma2_functions();

/// Measures the share of pairs (function, distribution) whose gap is larger than rounding. The distributions
/// have at least two points; `with_point_masses` adds point masses.
CheckFinding check_lemma2(const CheckEffort& effort, bool with_point_masses,
                          const std::vector<ScalarFunction>& functions = lemma2_functions(),
                          const Lemma2Gap& gap = lemma2_gap);

/// Measures the largest |gap| over point masses.
CheckFinding check_lemma2_point_mass(const CheckEffort& effort, const Lemma2Gap& gap = lemma2_gap);

// Claims 1-3 in the proof of Theorem 4, on the truncated component G at z, ‖z‖ = 1, for q = 2 sigmoid(wᵀx) −
// 1 and q' = (1 − q²)/2:
//   1. wᵀz > 0 implies E[q] > 0;
//   2. E[q' q] E[q] < E[q²] E[q'];
//   3. w = α z, α > 0 implies E[x₁ q' q] E[q] < E[q²] E[x₁ q'], x₁ = xᵀz.
// The paper's proofs write q as h(t) = 1 − 2 sigmoid(t), which is −q of its loss. With it Claim 1 and
// q' = (1 − q²)/2 are wrong.

/// h(t): the routing function of a score.
using RoutingFunction = std::function<double(double score)>;
double routing_function_as_printed(double score);  ///< 1 − 2 sigmoid(t)
double routing_function(double score);             ///< 2 sigmoid(t) − 1

/// Measures the largest |h' − (1 − h²)/2|, with h' by central differences.
CheckFinding check_routing_derivative(const RoutingFunction& h);

using MomentRule = std::function<RouterMoments(const TwoComponentPopulation&, double signal, double norm)>;
RouterMoments exact_moments(const TwoComponentPopulation& population, double signal, double norm);
/// The moments of −q with its derivative −q'.
RouterMoments moments_as_printed(const TwoComponentPopulation& population, double signal, double norm);

/// Each measures the share of random (d, σ, ρ, w) on which the strict inequality holds by more than the error
/// of the quadrature. For Claim 3, `radius` 0 draws ρ < 1, and infinity takes whole Gaussians, which the
/// claim does not cover.
CheckFinding check_claim1(const CheckEffort& effort, const MomentRule& moments = exact_moments);
CheckFinding check_claim2(const CheckEffort& effort, const MomentRule& moments = exact_moments);
CheckFinding check_claim3(const CheckEffort& effort, double radius = 0,
                          const MomentRule& moments = exact_moments);

}  // namespace moelab
