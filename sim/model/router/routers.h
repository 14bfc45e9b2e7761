#pragma once

/// The options of the built-in routers, each with its equation.

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

/// t > 0, which divides a router's scores: a number that stays, or the start of one that the router learns.
struct Temperature {
  double start = 1;
  bool is_learned = false;
  std::vector<Binding> alternatives();
};

/// The linear router: γ_e(x) = w_e^T x (Dikkala et al. 2023, section 2), or with `bias` γ_e(x) = w_e^T x +
/// b_e (Nguyen et al., Statistical Advantages of Perturbing Cosine Router).
///
/// The start law `init` draws the rows w_e. Biases start at zero. With `temperature`, scores are divided by
/// t.
///
/// Arrays: "router_weight" (E, d); with `bias` "router_bias" (E); with a learned temperature
/// "router_log_scale" (1), log 1/t.
struct LinearRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  std::optional<Temperature> temperature = {};  ///< unset: t = 1
  void bind(Fields& fields);
};

/// The linear router as a part of another router. Its rows always start at random.
struct LinearBaseOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  void bind(Fields& fields);
};
RouterKind linear_base();

/// Makes a linear router, for routers that contain one and have its fields. A linear router has no state and
/// no arrays in its scratch.
template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const LinearRouterOptions& options,
                                                 const RouterSetting& setting);

void bind_linear_fields(Fields& fields, bool& trainable, std::string& init, double& init_scale,
                        std::optional<bool>& bias);
template <class Options>
LinearRouterOptions linear_part(const Options& options) {
  return {options.trainable, options.init, options.init_scale, options.bias};
}

/// RouterKind::needs_train_rows of options with these fields.
template <class Options>
bool starts_at_train_rows(const AnyOptions& options) {
  return start_law(options.get<Options>().init).needs_train_rows;
}

/// The MLP router: γ(x) = MLP(x) with ReLU hidden layers and biases (Dikkala et al. 2023, appendix C.1: depth
/// 3 for subspaces).
///
/// Depth counts weight matrices; depth 1 is an affine router. Hidden weights start N(0, 2 / in). The output
/// layer starts N(0, init_scale² / in) with one stream per expert, so expert e's row does not depend on E.
///
/// Arrays: "router_weight_1" (width, d), "router_bias_1" (width), …
struct MlpRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  int depth = 3;
  int width = 96;
  void bind(Fields& fields);
};

/// The convolutional router: γ(x) = W h + b, h = relu(dense(z_L)), z_l = relu(conv_l(z_{l−1})), z_0 the image
/// x (Dikkala et al. 2023, section 3.4).
///
/// Convolutions are 3 × 3 with zero padding 1. Stride 2 replaces pooling: sides halve, rounded up
/// (Springenberg et al. 2015, "all convolutional"). So an image may have any size. The experts read the
/// columns after the image and the penultimate layer h (n, width), as in the paper. The paper gives neither
/// depth nor widths. Hidden weights start N(0, 2 / in), with one stream for all layers. Output row e starts
/// N(0, init_scale² / width) with its own stream. Biases start at zero.
///
/// Arrays: "router_weight_1" (channels, channels of the image, 3, 3), "router_bias_1" (channels), …, then the
/// arrays of the two dense layers.
struct CnnRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::vector<int> channels = {16, 32};
  int width = 64;
  void bind(Fields& fields);
};

/// The error at "model.router.kind" for data without images. It names the generators that have images.
InvalidOption no_image_error(const std::string& router = "cnn");

/// The cosine router: γ_e(x) = β1_e^T x / (‖β1_e‖ ‖x‖) + β0_e, without a temperature (Chi et al. 2022; Nguyen
/// et al., Statistical Advantages of Perturbing Cosine Router in Mixture of Experts).
///
/// If a norm is zero, its cosine and the cosine's gradient are zero. Rows β1_e start N(0, init_scale² / d)
/// and biases start at zero. `projection_dim` m replaces x by x A, A (d, m); see ProjectedRouter.
/// `temperature` t divides the cosine. The router of X-MoE (Chi et al. 2022) has both, and learns t.
///
/// Arrays: "router_direction" (E, d) or (E, m), the rows β1, whose scale has little effect, and "router_bias"
/// (E). With `projection_dim` "router_projection" (m, d). With `temperature` "router_log_scale" (1), log 1/t.
struct CosineRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::optional<int> projection_dim = {};       ///< m; unset: the router reads x
  std::optional<Temperature> temperature = {};  ///< unset: t = 1
  void bind(Fields& fields);
};
RouterKind cosine_router();

/// The perturbed cosine router: γ_e(x) = β1_e^T x / ((‖β1_e‖ + τ1) (‖x‖ + τ2)) + β0_e (Nguyen et al., as for
/// the cosine router). Starts and arrays are the same as for the cosine router.
struct PerturbedCosineRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  double tau1 = 0.1;
  double tau2 = 0.1;
  void bind(Fields& fields);
};

/// The squared-distance router: γ_e(x) = −‖x − w_e‖² / (2 s_e²), the log density of a spherical Gaussian
/// without its normalising factor.
///
/// Soft gates are then the responsibilities of a mixture with equal weights and widths. s_e = 1, or s_e is
/// learned and starts at `std`. A value below kLeastRouterStd counts as kLeastRouterStd, and gradients that
/// would lower it are dropped. `bias` adds b_e, the logarithm of a weight, which starts at zero.
///
/// Arrays: "router_centers" (E, d), "router_std" (E) if it is learned, and "router_bias" (E) with `bias`.
struct SquaredDistanceRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<double> std = std::nullopt;
  bool bias = false;
  void bind(Fields& fields);
};

constexpr double kLeastRouterStd = 0.01;

/// The AC router (Nielsen et al. 2025, Definition 2): γ_e(x) = x^T M_{k*} w_e, where k* is the row's argmax
/// expert in the layer before.
///
/// M_k is a diagonal matrix of weights with mean 1. The weights are large on the features on which cluster k
/// is tight. The dispersions s_qk cover the rows whose argmax expert is k. Training computes them in each
/// batch, and measuring in each group of rows. With `frozen` statistics, measuring uses a running mean from
/// training. No gradient goes through M, so ∂L/∂x holds M fixed. In a first layer, and in layers outside the
/// placement, M = I and the router is linear.
///
/// With `own` memberships k* is this router's own argmax expert under w_e^T x. With `oracle` memberships k*
/// is the row's true cluster (mod E). In both cases a first layer has M, too. With `permuted_oracle`
/// memberships a row has the M of the true cluster of the row half a group (or batch) away. The weights then
/// fit true clusters, but do not encode the row's own label. With `weighted_experts` the experts also read
/// M x, as in the paper's released image code.
///
/// State, in layers of the placement:
/// - "router_feature_weights" (E, d), M.
/// - "router_dispersion" (E, d), s of the last step's batch or the running mean, unless M is drawn.
/// - "router_dispersion_batches" (1), the number of steps in this s, unless M is drawn. Before the first step
///   a batch uses its own s.
/// - "router_weight_draws" (3), a key and the step in two parts, if M is drawn anew at every step.
struct AdaptiveClusteringRouterOptions {
  enum class Weights { inverse, optimal, random, redrawn };
  using Dispersion = DispersionMeasure;
  enum class Representations { previous, current };
  enum class Statistics { batch, frozen };
  enum class Memberships { previous, own, oracle, permuted_oracle };
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
  ClusterWeighting weighting = {};  ///< for inverse weights
  bool weighted_experts = false;
  void bind(Fields& fields);
};

// Routers that mix the routing of the tokens of a sequence (Nguyen et al. 2025, Definitions 2 and 5).

/// The axis of routers that see single tokens. A mixing router mixes one of them. The table is in
/// mixing_router.cpp.
struct BaseRouterAxis {
  using Entry = RouterKind;
  static const std::vector<RouterKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "router";
};
using BaseRouterOptions = OneOf<BaseRouterAxis>;

/// Binds the fields that all mixing routers have.
void bind_mixing_fields(Fields& fields, bool& trainable, BaseRouterOptions& base);

/// Attention-aware routing (Nguyen et al. 2025, Lemma 1 and Definition 5): p_i = Σ_j A^p_h*[i,j] r(u_j) over
/// the tokens of the sequence.
///
/// r is the routing of `base`. A^p_h[i,j] ∝ A_h[i,j] N(u_i; W_h^T x_j, σ² I) is the
/// posterior of the position that token i attended to, for the block's own U = MHA(X). The source writes the
/// centre W_h x_j, which does not match U in its Eq. 9.
///
/// h* is the head with the lowest mean row entropy of A_h over the tokens of the sequence. `posterior` sums
/// over the heads instead. Each head then has its posterior probability H^p[i,h] under a uniform prior (Lemma
/// 1). This is the exact rule. Likelihoods are kept as logarithms. In a causal model A_h is zero at j > i,
/// and h* of token i uses tokens up to i.
///
/// Gradients go through r and through the posterior (A_h, the centres and U), so the attention block learns
/// from the routing. `detach` stops the gradient through the posterior. The choice of h* is held fixed.
struct AttentionAwareRouterOptions {
  enum class Head { lowest_entropy, posterior };
  bool trainable = true;
  BaseRouterOptions base = LinearBaseOptions{};
  double sigma = 1.0;
  Head head = Head::lowest_entropy;
  std::optional<bool> detach = {};  ///< stops the gradient through the posterior; the source does not say
  void bind(Fields& fields);
};

/// The error for a model without attention whose router reads attention.
InvalidOption no_attention_error(const std::string& router = "attention_aware");

/// Similarity-aware routing (Nguyen et al. 2025, Definition 2): p_i = Σ_j S_ij r(u_j) over all tokens of the
/// sequence, S = row-softmax(U W_s U^T / τ).
///
/// r is the routing of `base`. W_s = I (the source's practice), or W_s (d, d) is learned
/// and starts at I. In a causal model the sum and the softmax run over j ≤ i. τ may move to `tau_end` over
/// the training steps. At test time τ is the value of the last step. Gradients go through r, and through S to
/// W_s and to u on both sides.
///
/// Arrays: the arrays of the base, and "router_similarity" (d, d) if W_s is learned.
struct SimilarityAwareRouterOptions {
  using Schedule = TauSchedule;
  enum class Similarity { identity, learned };
  bool trainable = true;
  BaseRouterOptions base = LinearBaseOptions{};
  double tau = 1.0;
  std::optional<double> tau_end = {};  ///< unset: tau is constant
  Schedule tau_schedule = Schedule::linear;
  Similarity similarity = Similarity::identity;
  void bind(Fields& fields);
};

/// Sequence-mean routing: γ_e(x_t) = w_e^T m, m the mean of all tokens x_j of the sequence.
///
/// All tokens of a sequence get the same scores. In a causal model the mean covers tokens up to the row's
/// own: m_t = (1/t) Σ_{j ≤ t} x_j. A single row is its own mean, so the router is then the linear router,
/// with the same draws. This router is not from a paper. Its loss minus the loss of a linear router measures
/// the gain from routing single tokens.
///
/// Arrays: the arrays of the linear router.
struct SequenceMeanRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  bool sum = false;  ///< m is the sum of the tokens
  void bind(Fields& fields);
};

/// The StableMoE router (Dai et al. 2022), a baseline of Nielsen et al. 2025.
///
/// In the first `distil_share` of training γ_e(h) = w_e^T h learns like a linear router (with a balance loss,
/// if one is set). A light router u_e^T x of the model's own inputs x learns its assignment. For this the
/// loss has an extra term, the mean over rows of −log softmax(u^T x)_{argmax_e γ_e(h)}, with the assignment
/// held fixed. Afterwards the scores are the frozen light router's. A token's assignment then depends on its
/// input alone and does not change.
///
/// Departure: the source uses w_e^T h for the gates' values and the light router for the choice. Here the
/// light router gives both, so that probabilities and assignments agree.
///
/// Arrays: the arrays of the linear router, and "light_router_weight" (E, d) with its bias. State: the frozen
/// copy "frozen_light_router_weight" (E, d) with its bias (zeros before the copy), and "light_router_frozen"
/// (1), whether the copy exists.
struct StableRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  double distil_share = 0.1;
  void bind(Fields& fields);
};

/// A hierarchical gate (Jordan, Jacobs 1994): softmax(γ)_e = softmax(U x)_g · softmax_{e' in g}(w_e'^T x)_e,
/// g the group of e.
///
/// γ_e(x) is the logarithm of this product. Group g holds the experts e with ⌊e G / E⌋ = g; G is at most E.
/// Rows of U and W start N(0, init_scale² I / d), and W uses a linear router's draws. With `bias` both levels
/// are affine, U x + c and w_e^T x + b_e, and biases start at zero.
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

/// A parameter of a formula.
///
/// - {"shape": "d"}, or "d" for short, is a vector for each expert.
/// - {"start": 1} is a number for each expert.
/// - {"shape": [8, "d"]} is a matrix for each expert.
/// - {"value": v}, or v for short, is a constant.
///
/// With `shared` all experts share one. Vectors and matrices start N(0, init_scale² / columns) unless `start`
/// is given. The first vector uses a linear router's draws. A learned number below `min` counts as `min`.
struct FormulaParameterOptions {
  std::vector<std::string> shape;
  bool shared = false;
  std::optional<double> start, min, value;
  void bind(Fields& fields);
  std::vector<Binding> alternatives();
};

/// The formula router: a formula of x and of named parameters gives γ_e(x).
///
/// Arrays: "router_formula_<name>" of each parameter, (E, shape), or (shape) if it is shared.
struct FormulaRouterOptions {
  bool trainable = true;
  std::string score;
  NamedValues<FormulaParameterOptions> parameters;
  std::string init = "normal";
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// The hash router (Roller et al. 2021): γ_e(x) = scale for the expert given by a hash of x, just below 0 for
/// the others.
///
/// `token` hashes the token's row of the model's inputs, so every distinct row has its own expert in each
/// layer. `projection` hashes the signs of x·p_b, b < bits, with fixed p_b ~ N(0, I), so nearby rows share an
/// expert. Hashes are uniform over experts and differ between layers. Those of `token` are the same in every
/// model with E experts. Those of `projection` depend on p_b, which are drawn from the cell's seed.
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

/// The random router: γ_e(x) = scale · u_e, u_e ~ U[0, 1), independent for every token and expert.
///
/// Its routing carries no information about the token. The token's row of the model's inputs identifies it,
/// so equal tokens have equal routing. With `fixed` a token keeps its draws (a random table). With `redrawn`
/// every training step draws anew, and measuring uses the draws of the last step.
///
/// State: "router_draws" (3), a key and the number of the step in two parts.
struct RandomRouterOptions {
  enum class Draws { fixed, redrawn };
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  Draws draws = Draws::fixed;
  double scale = 1.0;
  void bind(Fields& fields);
};

/// The oracle router: γ_e(x) = scale for e = c mod E, with c the row's true cluster, just below 0 for the
/// others.
///
/// It is an upper bound: no router can know more about the clusters. Each cluster has a fixed order of
/// experts for second choices. The data provide the labels. Without labels there are no scores.
struct OracleRouterOptions {
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  double scale = 20.0;                     ///< e^-20 is below what soft gates skip by default
  void bind(Fields& fields);
};

/// The expert of a true cluster c: c mod E.
inline int expert_of_cluster(int cluster, int experts) {
  return static_cast<int>(static_cast<unsigned>(cluster) % static_cast<unsigned>(experts));
}

/// The error for data whose rows do not each have a true cluster.
InvalidOption no_labels_error(const std::string& path, const std::string& given);

/// The nearest-centroid router: γ_e(x) = −‖x − c_e‖² / 2 with centroids c_e of online k-means (MacQueen
/// 1967).
///
/// No gradient moves c_e. The end of every training step updates it: c_e ← c_e + Σ_{i nearest to e} (x_i −
/// c_e) / N_e over the batch. N_e counts the rows nearest to e so far, including this batch. The start has no
/// weight, so the first row replaces it. With `memory` N_e counts at most that many past rows, so centroids
/// can follow rows that move.
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
