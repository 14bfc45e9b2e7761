#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/model/parameters.h"
#include "sim/model/router/cluster_weights.h"
#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = w_e^T x, no bias (Dikkala et al. 2023, section 2), or with `bias` w_e^T x + b_e (Nguyen et al.,
/// Statistical Advantages of Perturbing Cosine Router). Rows start by the start law `init`, biases at zero.
/// With `temperature`, the start of a learned t > 0, all of that over t.
///
/// Arrays: "router_weight" (E, d), "router_bias" (E) with `bias`, "router_log_scale" (1), log 1/t, with
/// `temperature`.
struct LinearRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  std::optional<double> temperature = {};  ///< where t starts; unset: t = 1
  void bind(Fields& fields);
};

/// The same as a part of another router, whose rows always start at random.
struct LinearBaseOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  void bind(Fields& fields);
};
RouterKind linear_base();

/// For routers that are made of linear ones and have their fields. The linear router is without state, and
/// without arrays in its scratch.
template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const LinearRouterOptions& options,
                                                 const RouterSetting& setting);

void bind_linear_fields(Fields& fields, bool& trainable, std::string& init, double& init_scale,
                        std::optional<bool>& bias);
template <class Options>
LinearRouterOptions linear_part(const Options& options) {
  return {options.trainable, options.init, options.init_scale, options.bias};
}

/// See RouterKind::needs_train_rows, for options with those fields.
template <class Options>
bool starts_at_train_rows(const AnyOptions& options) {
  return start_law(options.get<Options>().init).needs_train_rows;
}

/// γ(x) = MLP(x) with ReLU hidden layers and biases (Dikkala et al. 2023, appendix C.1: depth 3 for
/// subspaces). Depth counts weight matrices; depth 1 is an affine router. Hidden weights start N(0, 2 / in),
/// the output layer's N(0, init_scale² / in), one stream per expert, so that expert e's row does not depend
/// on E.
///
/// Arrays: "router_weight_1" (width, d), "router_bias_1" (width), …
struct MlpRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  int depth = 3;
  int width = 96;
  void bind(Fields& fields);
};

/// γ(x) = W h + b, h = relu(dense(z_L)), z_l = relu(conv_l(z_{l−1})), z_0 the image x (Dikkala et al. 2023,
/// section 3.4). Convolutions are 3 × 3 with zero padding 1 and stride 2 in place of pooling (sides halve,
/// rounded up; Springenberg et al. 2015, "all convolutional"), so any image will do. The experts get the
/// penultimate layer h (n, width) beside the columns after the image, as in the paper, which prints neither
/// depth nor widths. Hidden weights start N(0, 2 / in) with one stream for all layers, output row e
/// N(0, init_scale² / width) with its own stream, biases zero.
///
/// Arrays: "router_weight_1" (channels, channels of the image, 3, 3), "router_bias_1" (channels), …, then
/// those of the two dense layers.
struct CnnRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::vector<int> channels = {16, 32};
  int width = 64;
  void bind(Fields& fields);
};

/// The error at "model.router.kind" of data without images; it names the generators that have them.
InvalidOption no_image_error(const std::string& router = "cnn");

/// γ_e(x) = β1_e^T x / (‖β1_e‖ ‖x‖) + β0_e, the cosine without a temperature (Chi et al. 2022; Nguyen et al.,
/// Statistical Advantages of Perturbing Cosine Router in Mixture of Experts). Where a norm is zero, its
/// cosine and the gradient of it are taken as zero. Rows β1_e start N(0, init_scale² / d), biases zero. The
/// router of X-MoE (Chi et al. 2022) is this with both `projection_dim` m, which puts x A, A (d, m), in the
/// place of x (see ProjectedRouter), and `temperature`, the start of a learned t > 0 that divides the cosine.
///
/// Arrays: "router_direction" (E, d) or (E, m), the rows β1, whose scale says little, "router_bias" (E), and
/// with them "router_projection" (m, d) and "router_log_scale" (1), log 1/t, where there are such.
struct CosineRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::optional<int> projection_dim = {};  ///< m; unset: the router reads x itself
  std::optional<double> temperature = {};  ///< where t starts; unset: t = 1
  void bind(Fields& fields);
};
RouterKind cosine_router();

/// γ_e(x) = β1_e^T x / ((‖β1_e‖ + τ1) (‖x‖ + τ2)) + β0_e (Nguyen et al., as above). Starts and arrays as
/// above.
struct PerturbedCosineRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  double tau1 = 0.1;
  double tau2 = 0.1;
  void bind(Fields& fields);
};

/// γ_e(x) = −‖x − w_e‖² / (2 s_e²): the logarithm of a spherical Gaussian's density but for its factor, so
/// that soft gates are the responsibilities of a mixture of equal weights and widths. s_e = 1, or learned
/// from `std` on; below kLeastRouterStd it counts as that, and what would lower it further is left out of its
/// gradient. With `bias` + b_e, the logarithm of a weight, started at zero.
///
/// Arrays: "router_centers" (E, d), "router_std" (E) where it is learned, and "router_bias" (E) with `bias`.
struct SquaredDistanceRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<double> std = std::nullopt;
  bool bias = false;
  void bind(Fields& fields);
};

constexpr double kLeastRouterStd = 0.01;

/// The AC router (Nielsen et al. 2025, Definition 2): γ_e(x) = x^T M_{k*} w_e, k* the row's likeliest expert
/// in the layer before, M_k = diag of weights that are large on the features on which cluster k is tight, of
/// mean 1 over the features. The dispersions s_qk are taken, in every batch, in measuring in every group of
/// rows, over those of which k is the likeliest expert; with `frozen` statistics, outside training, they are
/// a running mean of those of training. No gradient goes through M, so ∂L/∂x holds M fixed. In a first layer,
/// and where the router is not placed, M = I: a linear router. With `own` memberships k* is the row's
/// likeliest expert under w_e^T x of this router, with `oracle` ones the row's true cluster (mod E), so that
/// a first layer has M, too. With `weighted_experts` the experts read M x as well, as those of the paper's
/// released image code do.
///
/// State, where the router is placed: "router_feature_weights" (E, d), M; unless it is drawn,
/// "router_dispersion" (E, d), s of the last step's batch or the running mean, and
/// "router_dispersion_batches" (1), the steps that it is of. Before the first step a batch has its own.
/// "router_weight_draws" (3), a key and the step in two parts, where M is drawn anew at every step.
struct AdaptiveClusteringRouterOptions {
  enum class Weights { inverse, optimal, random, redrawn };
  using Dispersion = DispersionMeasure;
  enum class Representations { previous, current };
  enum class Statistics { batch, frozen };
  enum class Memberships { previous, own, oracle };
  enum class Placement { full, skip_1, alternating, back_half };
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  Weights weights = Weights::inverse;
  Dispersion dispersion = Dispersion::mad;
  double lambda = 1.0;
  int mixed_clusters = 1;  ///< 0 for all
  Representations representations = Representations::previous;
  Memberships memberships = Memberships::previous;
  Statistics statistics = Statistics::batch;
  Placement placement = Placement::full;
  ClusterWeighting weighting = {};  ///< of inverse weights
  bool weighted_experts = false;
  void bind(Fields& fields);
};

// Routers that let the tokens of a sequence mix their routing (Nguyen et al. 2025, Definitions 2 and 5).

/// The axis of routers that see tokens alone: what a mixing router mixes. Its table is in mixing_router.cpp.
struct BaseRouterAxis {
  using Entry = RouterKind;
  static const std::vector<RouterKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "router";
};
using BaseRouterOptions = OneOf<BaseRouterAxis>;

/// The fields that routers which mix begin with.
void bind_mixing_fields(Fields& fields, bool& trainable, BaseRouterOptions& base);

/// Weights S (s, s) of a sequence, rows on the simplex: how much token i listens to token j. Immutable, as
/// routers are.
template <class Real>
class TokenWeights {
 public:
  virtual ~TokenWeights() = default;
  virtual std::size_t parameter_count() const { return 0; }
  /// Entries of the parameter block, padding included.
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(Real* /*parameters*/) const {}
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// S and log S (n·s, padded(s)), padding of S zero.
  virtual void forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                       Real* weights, Real* log_weights) const = 0;
  /// From ∂L/∂S (n·s, padded(s)), which it may overwrite, ∂L/∂parameters (overwritten); adds to ∂L/∂x and to
  /// the attention's gradients unless they are null. For the batch of the last forward pass.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                        const Real* weights, Real* weight_gradient,
                        const RouterGradients<Real>& gradients) const = 0;
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
};

/// p_i = Σ_j S_ij r(u_j) over the tokens of a sequence, r = softmax of the scores of a router `base` that
/// sees tokens alone; γ_i = log p_i, so that a gating's softmax(γ_i) is p_i and its TopK that of the source.
/// Rows that are no sequence have p = r. Everything is differentiated: r through the base, S through its
/// weights.
template <class Real>
class MixingRouter : public Router<Real> {
 public:
  MixingRouter(const BaseRouterOptions& base, std::unique_ptr<TokenWeights<Real>> weights,
               const RouterSetting& setting);

  std::size_t parameter_count() const override;
  /// [base | weights].
  std::size_t block_size() const override { return base_->block_size() + weights_->block_size(); }
  std::size_t frozen_size() const override { return base_trainable_ ? 0 : base_->block_size(); }
  void initialize(const Start& start, Real* parameters) const override;
  std::unique_ptr<Scratch> make_scratch() const override;
  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override;
  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override;
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override;

 private:
  std::unique_ptr<Router<Real>> base_;
  std::unique_ptr<TokenWeights<Real>> weights_;
  bool base_trainable_;
  int experts_;
  int stride_;
};

/// Attention-aware routing (Nguyen et al. 2025, Lemma 1 and Definition 5): p_i = Σ_j A^p_h*[i,j] r(u_j) over
/// the tokens of the sequence, r the routing of `base` (see MixingRouter), with the posterior of the position
/// that token i attended to, A^p_h[i,j] ∝ A_h[i,j] N(u_i; W_h^T x_j, σ² I) for the block's own U = MHA(X):
/// the source writes the centre W_h x_j, which matches no U of its Eq. 9. h* is the head of lowest mean row
/// entropy of A_h over the tokens of the sequence; `posterior` sums over the heads instead, each with its
/// posterior probability H^p[i,h] under a uniform prior (Lemma 1), which is the exact rule. Likelihoods stay
/// logarithms. In a causal model, whose A_h is zero at j > i, h* of token i is that of the tokens up to i.
///
/// Differentiated are r, and the posterior in A_h, in the centres and in U, so that the attention block
/// learns through it, unless `detach`; the choice of h* is held fixed.
struct AttentionAwareRouterOptions {
  enum class Head { lowest_entropy, posterior };
  bool trainable = true;
  BaseRouterOptions base = LinearBaseOptions{};
  double sigma = 1.0;
  Head head = Head::lowest_entropy;
  std::optional<bool> detach = {};  ///< no gradient goes through the posterior; the source does not say
  void bind(Fields& fields);
};

/// What is wrong with a model of a router that looks at attention and has none.
InvalidOption no_attention_error(const std::string& router = "attention_aware");

/// Similarity-aware routing (Nguyen et al. 2025, Definition 2): p_i = Σ_j S_ij r(u_j) over all tokens of the
/// sequence, S = row-softmax(U W_s U^T / τ), r the routing of `base`; see MixingRouter. W_s = I (the source's
/// practice), or learned (d, d) from the start I. In a causal model the sum and the softmax are over j ≤ i. τ
/// may move to `tau_end` over the training steps; at test time it is that of the last step. Differentiated
/// are r, and S in u on both sides and in W_s.
///
/// Arrays: those of the base, and "router_similarity" (d, d) where W_s is learned.
struct SimilarityAwareRouterOptions {
  using Schedule = TauSchedule;
  enum class Similarity { identity, learned };
  bool trainable = true;
  BaseRouterOptions base = LinearBaseOptions{};
  double tau = 1.0;
  std::optional<double> tau_end = {};  ///< unset: tau throughout
  Schedule tau_schedule = Schedule::linear;
  Similarity similarity = Similarity::identity;
  void bind(Fields& fields);
};

/// Routing by the sequence: γ_e(x_t) = w_e^T m, m the mean of all tokens x_j of the sequence, so that they go
/// one way; in a causal model of those up to the row's own, m_t = (1/t) Σ_{j ≤ t} x_j. A row that stands
/// alone is its own mean: there this is the linear router, with the same draws. Not from a paper: what a
/// model gains by routing tokens one by one is told by what it loses here.
///
/// Arrays: those of the linear router.
struct SequenceMeanRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  void bind(Fields& fields);
};

/// StableMoE (Dai et al. 2022), a baseline of Nielsen et al. 2025. In the first `distil_share` of training
/// γ_e(h) = w_e^T h learns as a linear router does (with a balance loss, if one is set), and a light router
/// u_e^T x of the model's own inputs x learns its assignment: mean over rows of
/// −log softmax(u^T x)_{argmax_e γ_e(h)} is added to the loss, the assignment held fixed. From then on the
/// scores are the light router's, frozen: a token's assignment depends on its input alone and stays.
/// Departure: the source keeps w_e^T h for the gates' values and the light router for the choice; here both
/// are the light router's, so that probabilities and assignments agree.
///
/// Arrays: those of the linear router, and "light_router_weight" (E, d) and its bias. State: the frozen copy
/// "frozen_light_router_weight" (E, d) with its bias, zeros before it is made, and "light_router_frozen" (1),
/// whether it is.
struct StableRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  double distil_share = 0.1;
  void bind(Fields& fields);
};

/// A hierarchical gate (Jordan, Jacobs 1994): softmax(γ) = softmax(U x)_g · softmax over the group g of e of
/// w_e^T x, as γ_e(x) = log of that product. Experts e with ⌊e G / E⌋ = g are the group g; G is at most E.
/// Rows of U and of W start N(0, init_scale² I / d), those of W as a linear router's. With `bias` both levels
/// are affine, U x + c and w_e^T x + b_e, biases started at zero.
///
/// Arrays: "router_group_weight" (G, d), "router_within_weight" (E, d), and with `bias` "router_group_bias"
/// (G), "router_within_bias" (E).
struct TwoLevelRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  int groups = 2;
  bool bias = false;
  void bind(Fields& fields);
};

/// A parameter of a formula: {"shape": "d"}, "d" for short, is a vector for each expert, {"start": 1} a
/// number for each, {"shape": [8, "d"]} a matrix. With `shared` there is one for all experts. Vectors and
/// matrices start N(0, init_scale² / columns), the first vector from a linear router's draws, unless `start`
/// is given. A learned number below `min` counts as that. {"value": v}, v for short, is a constant.
struct FormulaParameterOptions {
  static constexpr const char* kTextField = "shape";
  static constexpr const char* kNumberField = "value";
  std::vector<std::string> shape;
  bool shared = false;
  std::optional<double> start, min, value;
  void bind(Fields& fields);
};

/// γ_e(x) by a formula of x and of named parameters.
///
/// Arrays: "router_formula_<name>" of each parameter, (E, shape) or (shape) where shared.
struct FormulaRouterOptions {
  bool trainable = true;
  std::string score;
  Named<FormulaParameterOptions> parameters;
  std::string init = "normal";
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// Numbers that a formula's results take for each row of a batch.
double formula_numbers_per_row(const FormulaRouterOptions& options, int input_dim, int experts);

/// γ_e(x) = scale for the expert that a hash of x names, just below 0 for the others (Roller et al. 2021).
/// `token`: a hash of the token's row of the model's inputs, so that every distinct row has an expert of its
/// own in each layer; `projection`: of the signs of x·p_b, p_b ~ N(0, I) fixed, b < bits, so that near rows
/// share one. Hashes name experts uniformly and are the same in every model of E experts; layers differ.
///
/// Array: "router_projection" (bits, d) of `projection`.
struct HashRouterOptions {
  enum class Of { token, projection };
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  Of of = Of::token;
  int bits = 8;
  double scale = 20.0;  ///< e^-20 is below what soft gates skip by default
  void bind(Fields& fields);
};

/// γ_e(x) = scale · u_e, u_e ~ U[0, 1) independent for every token and expert, whatever the token is: routing
/// that carries no information. A token is known by its row of the model's inputs, so that it is routed alike
/// wherever it stands. `fixed`: a token keeps its draws (a random table); `redrawn`: every training step has
/// new ones, and measuring those of the last step.
///
/// State: "router_draws" (3), a key and the number of the step in two parts.
struct RandomRouterOptions {
  enum class Draws { fixed, redrawn };
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  Draws draws = Draws::fixed;
  double scale = 1.0;
  void bind(Fields& fields);
};

/// γ_e(x) = scale for the expert of the row's true cluster c, e = c mod E, just below 0 for the others: what
/// a router could know at most of the clusters, an upper bound for every comparison. Second choices are a
/// fixed order of the experts for each cluster. Labels come with the data; without them there are no scores.
struct OracleRouterOptions {
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  double scale = 20.0;                     ///< e^-20 is below what soft gates skip by default
  void bind(Fields& fields);
};

/// Where clusters stand for experts: c mod E of a true cluster c.
inline int expert_of_cluster(int cluster, int experts) {
  return static_cast<int>(static_cast<unsigned>(cluster) % static_cast<unsigned>(experts));
}

/// The refusal of data whose rows have no true cluster each.
InvalidOption no_labels_error(const std::string& path, const std::string& given);

/// γ_e(x) = −‖x − c_e‖² / 2 with the centroids of k-means online (MacQueen 1967): no gradient moves c_e, but
/// the end of every training step, c_e ← c_e + Σ_{i nearest to e} (x_i − c_e) / N_e over the batch, N_e the
/// rows that e was nearest to so far, this batch included. The start has no weight: the first row replaces
/// it. With `memory` N_e counts at most that many rows of the past, so that centroids follow rows that move.
///
/// State: "router_centroids" (E, d), "router_centroid_rows" (E), N_e.
struct NearestCentroidRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<std::int64_t> memory = std::nullopt;
  void bind(Fields& fields);
};

}  // namespace moelab
