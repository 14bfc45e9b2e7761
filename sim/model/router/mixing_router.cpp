#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

/// Below this a mixed probability has lost digits to underflow. Its logarithm is then computed term by term.
/// The gradient omits it, since gradients from a gating are proportional to the probability.
template <class Real>
constexpr Real kSmallest = std::numeric_limits<Real>::min() / std::numeric_limits<Real>::epsilon();

template <class Real>
struct MixingScratch final : Scratch {
  std::unique_ptr<Scratch> base, weights;
  AlignedVector<Real> base_log_probabilities, base_probabilities;  // log r and r (n, padded(E))
  AlignedVector<Real> token_weights, log_token_weights;            // S and log S (n·s, padded(s))
  AlignedVector<Real> mixtures;                                    // p (n, padded(E))
  AlignedVector<Real> mixture_gradient, base_gradient;             // (n, padded(E))
  AlignedVector<Real> weight_gradient;                             // ∂L/∂S
};

/// The tokens of the sequence that begins at row `first`: (s, columns) of an array of padded rows.
template <class Value>
View<Value> sequence(Value* rows, int first, int tokens, int columns) {
  return kernels::padded_rows(rows + entries(first, kernels::padded(columns)), tokens, columns);
}

/// log Σ_j exp(log S_ij + log r_e(u_j)), from log S_i and the log r of the sequence's first token.
template <class Real>
Real log_mixture(const Real* log_weights, const View<const Real>& log_probabilities, int expert) {
  const auto term = [&](int j) { return log_weights[j] + log_probabilities(j, expert); };
  Real peak = term(0);
  for (int j = 1; j < log_probabilities.rows; ++j) peak = std::max(peak, term(j));
  Real sum = 0;
  for (int j = 0; j < log_probabilities.rows; ++j) sum += std::exp(term(j) - peak);
  return peak + std::log(sum);
}

/// Weights S (s, s) between the tokens of a sequence, immutable. S_ij is the weight of token j in the routing
/// of token i. Rows lie on the simplex.
template <class Real>
class TokenWeights {
 public:
  virtual ~TokenWeights() = default;
  virtual std::size_t parameter_count() const { return 0; }
  /// Entries of the parameter block, padding included.
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(Real* /*parameters*/) const {}
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// Writes S and log S (n·s, padded(s)); the padding of S is zero.
  virtual void forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                       Real* weights, Real* log_weights) const = 0;
  /// Writes ∂L/∂parameters (overwritten) from ∂L/∂S (n·s, padded(s)), which it may overwrite. Adds to ∂L/∂x
  /// and to the attention's gradients unless they are null. Refers to the batch of the last forward pass.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                        const Real* weights, Real* weight_gradient,
                        const RouterGradients<Real>& gradients) const = 0;
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
};

/// A router that mixes the probabilities of the tokens of a sequence: p_i = Σ_j S_ij r(u_j), r the softmax of
/// the scores of `base`.
///
/// `base` sees single tokens. γ_i = log p_i, so softmax(γ_i) = p_i, and a gating's TopK is the source's TopK.
/// Rows that are not a sequence have p = r. Gradients go through r (to the base) and through S (to its
/// weights).
template <class Real>
class MixingRouter : public Router<Real> {
 public:
  MixingRouter(const BaseRouterOptions& base, std::unique_ptr<TokenWeights<Real>> weights,
               const RouterSetting& setting)
      : base_(base.entry().make.of<Real>()(base.options(), setting)),
        weights_(std::move(weights)),
        base_trainable_(base.entry().trainable(base.options())),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {
    MOELAB_EXPECT(base_->state_arrays().empty());
  }

  std::size_t parameter_count() const override {
    return base_->parameter_count() + weights_->parameter_count();
  }
  /// [base | weights].
  std::size_t block_size() const override { return base_->block_size() + weights_->block_size(); }
  std::size_t frozen_size() const override { return base_trainable_ ? 0 : base_->block_size(); }
  void initialize(const Start& start, Real* parameters) const override {
    base_->initialize(start, parameters);
    weights_->initialize(parameters + base_->block_size());
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<MixingScratch<Real>>();
    scratch->base = base_->make_scratch();
    scratch->weights = weights_->make_scratch();
    return scratch;
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<MixingScratch<Real>&>(scratch);
    const int rows = context.x.rows, tokens = context.tokens;
    const int weight_stride = kernels::padded(tokens);
    MOELAB_EXPECT(rows % tokens == 0);
    reserve_entries(own.base_log_probabilities, entries(rows, stride_));
    reserve_entries(own.base_probabilities, entries(rows, stride_));
    reserve_entries(own.mixtures, entries(rows, stride_));
    reserve_entries(own.token_weights, entries(rows, weight_stride));
    reserve_entries(own.log_token_weights, entries(rows, weight_stride));
    Real* const log_r = own.base_log_probabilities.data();
    Real* const r = own.base_probabilities.data();
    base_->forward(context, parameters, *own.base, log_r);
    kernels::log_softmax_rows(log_r, r, rows, experts_, stride_);
    weights_->forward(context, parameters + base_->block_size(), *own.weights, own.token_weights.data(),
                      own.log_token_weights.data());
    for (int first = 0; first < rows; first += tokens) {
      kernels::multiply(sequence(own.token_weights.data(), first, tokens, tokens),
                        sequence(r, first, tokens, experts_),
                        sequence(own.mixtures.data(), first, tokens, experts_));
    }
    for (int row = 0; row < rows; ++row) {
      const Real* const mixture = own.mixtures.data() + entries(row, stride_);
      const Real* const log_weights = own.log_token_weights.data() + entries(row, weight_stride);
      const View<const Real> log_probabilities = sequence(log_r, row - row % tokens, tokens, experts_);
      Real* const of_row = scores + entries(row, stride_);
      std::fill_n(of_row, stride_, Real(0));
      for (int e = 0; e < experts_; ++e) {
        of_row[e] = mixture[e] > kSmallest<Real> ? std::log(mixture[e])
                                                 : log_mixture(log_weights, log_probabilities, e);
      }
    }
    return {.base_probabilities = r};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<MixingScratch<Real>&>(scratch);
    const int rows = context.x.rows, tokens = context.tokens;
    reserve_entries(own.mixture_gradient, entries(rows, stride_));
    reserve_entries(own.base_gradient, entries(rows, stride_));
    reserve_entries(own.weight_gradient, entries(rows, kernels::padded(tokens)));
    for (std::size_t i = 0; i < entries(rows, stride_); ++i) {
      own.mixture_gradient[i] =
          own.mixtures[i] > kSmallest<Real> ? gradients.scores[i] / own.mixtures[i] : Real(0);
    }
    for (int first = 0; first < rows; first += tokens) {
      // For P = S R: ∂L/∂S = (∂L/∂P) R^T and ∂L/∂R = S^T ∂L/∂P.
      const View<const Real> delta = sequence(own.mixture_gradient.data(), first, tokens, experts_);
      const View<const Real> r = sequence(own.base_probabilities.data(), first, tokens, experts_);
      const View<const Real> weights = sequence(own.token_weights.data(), first, tokens, tokens);
      kernels::multiply(delta, r.transposed(), sequence(own.weight_gradient.data(), first, tokens, tokens));
      kernels::multiply(weights.transposed(), delta,
                        sequence(own.base_gradient.data(), first, tokens, experts_));
    }
    kernels::softmax_backward_rows(own.base_probabilities.data(), own.base_gradient.data(),
                                   own.base_gradient.data(), rows, experts_, stride_);
    RouterGradients<Real> of_base = gradients;
    of_base.scores = own.base_gradient.data();
    base_->backward(context, parameters, *own.base, of_base);
    RouterGradients<Real> of_weights = gradients;
    of_weights.parameters = gradients.parameters + base_->block_size();
    weights_->backward(context, parameters + base_->block_size(), *own.weights, own.token_weights.data(),
                       own.weight_gradient.data(), of_weights);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = base_->arrays(parameters);
    for (NamedArray<Real>& array : weights_->arrays(parameters + base_->block_size())) {
      all.push_back(std::move(array));
    }
    return all;
  }

 private:
  std::unique_ptr<Router<Real>> base_;
  std::unique_ptr<TokenWeights<Real>> weights_;
  bool base_trainable_;
  int experts_;
  int stride_;
};

template <class Real>
struct PosteriorScratch final : Scratch {
  int joint_stride = 0;
  AlignedVector<int> heads;                              // h* of each row
  AlignedVector<Real> entropies;                         // entropy of each head, summed over a sequence
  AlignedVector<Real> of_head;                           // ∂L of rows with the same h* (s, padded(s))
  AlignedVector<Real> joint, log_joint, joint_gradient;  // w (n·s, padded(heads · s)), its logarithm, ∂L
};

/// The posterior of (head, position) for each token: w_i[h, j] = A_h[i,j] N(u_i; c_hj, σ² I) / Σ over the
/// counted heads and all j, with c_hj = W_h^T x_j. S_ij = Σ_h w_i[h, j]. Either all heads count, or one head
/// for each token.
template <class Real>
class PosteriorWeights final : public TokenWeights<Real> {
 public:
  PosteriorWeights(const AttentionAwareRouterOptions& options, const RouterSetting& setting)
      : precision_(1 / (options.sigma * options.sigma)),
        all_heads_(options.head == AttentionAwareRouterOptions::Head::posterior),
        causal_(setting.causal),
        detached_(options.detach.value_or(false)),
        dim_(setting.input_dim),
        stride_(kernels::padded(setting.input_dim)) {}

  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<PosteriorScratch<Real>>();
  }

  void forward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& scratch,
               Real* weights, Real* log_weights) const override {
    auto& own = static_cast<PosteriorScratch<Real>&>(scratch);
    MOELAB_EXPECT(context.signals.attention);
    const AttentionState<Real>& attention = *context.signals.attention;
    const int rows = context.x.rows, tokens = context.tokens;
    const int heads = all_heads_ ? attention.heads : 1;
    if (!all_heads_) choose_heads(attention, rows, tokens, own);
    own.joint_stride = kernels::padded(heads * tokens);
    reserve_entries(own.joint, entries(rows, own.joint_stride));
    reserve_entries(own.log_joint, entries(rows, own.joint_stride));
    for (int row = 0; row < rows; ++row) {
      for (int h = 0; h < heads; ++h) {
        Real* const log_joint = own.log_joint.data() + entries(row, own.joint_stride) + size(h * tokens);
        write_log_joint(context, row, all_heads_ ? h : own.heads[size(row)], log_joint);
      }
    }
    kernels::log_softmax_rows(own.log_joint.data(), own.joint.data(), rows, heads * tokens, own.joint_stride);
    sum_over_heads(own, rows, tokens, heads, weights, log_weights);
  }

  void backward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& scratch,
                const Real* /*weights*/, Real* weight_gradient,
                const RouterGradients<Real>& /*gradients*/) const override {
    AttentionGradients<Real>* const gradients = context.signals.attention_gradients;
    if (!gradients || detached_) return;
    gradients->start_adding(*context.signals.attention, context.x.rows, context.tokens, stride_);
    auto& own = static_cast<PosteriorScratch<Real>&>(scratch);
    const int rows = context.x.rows, tokens = context.tokens;
    const int heads = all_heads_ ? context.signals.attention->heads : 1;
    reserve_entries(own.joint_gradient, entries(rows, own.joint_stride));
    for (int row = 0; row < rows; ++row) {
      const Real* const of_row = weight_gradient + entries(row, kernels::padded(tokens));
      Real* const joint = own.joint_gradient.data() + entries(row, own.joint_stride);
      for (int h = 0; h < heads; ++h) std::copy_n(of_row, tokens, joint + h * tokens);
    }
    kernels::softmax_backward_rows(own.joint.data(), own.joint_gradient.data(), own.joint_gradient.data(),
                                   rows, heads * tokens, own.joint_stride);
    for (int first = 0; first < rows; first += tokens) {
      for (int h = 0; h < context.signals.attention->heads; ++h) {
        const View<Real> delta =
            all_heads_
                ? View<Real>{own.joint_gradient.data() + entries(first, own.joint_stride) + size(h * tokens),
                             tokens, tokens, own.joint_stride}
                : gradient_of_head(own, first, tokens, h);
        if (!delta.empty()) likelihood_backward(context, first / tokens, h, delta, *gradients);
      }
    }
  }

 private:
  /// The gradient of a sequence's rows with h* = h, zero in other rows. Empty if there are no such rows.
  static View<Real> gradient_of_head(PosteriorScratch<Real>& own, int first, int tokens, int h) {
    const auto heads = own.heads.begin() + first;
    if (std::find(heads, heads + tokens, h) == heads + tokens) return {};
    reserve_entries(own.of_head, entries(tokens, kernels::padded(tokens)));
    const View<Real> delta = kernels::padded_rows(own.of_head.data(), tokens, tokens);
    for (int i = 0; i < tokens; ++i) {
      std::fill_n(delta.row(i), tokens, Real(0));
      if (heads[i] == h)
        std::copy_n(own.joint_gradient.data() + entries(first + i, own.joint_stride), tokens, delta.row(i));
    }
    return delta;
  }
  /// The first row of a head's weights, and of its centres at a row of the batch.
  static std::size_t weights_row(const RouterContext<Real>& context, int row, int head) {
    const int tokens = context.tokens;
    return entries(row / tokens * context.signals.attention->heads + head, tokens) + size(row % tokens);
  }
  static std::size_t centres_row(const RouterContext<Real>& context, int row, int head) {
    return entries(head, context.x.rows) + size(row);
  }

  /// heads ← argmin_h of the mean of H(A_h[i, :]) over the tokens i of the sequence. A causal model averages
  /// over tokens up to the row's own. Ties go to the lower index.
  void choose_heads(const AttentionState<Real>& attention, int rows, int tokens,
                    PosteriorScratch<Real>& own) const {
    reserve_entries(own.heads, size(rows));
    reserve_entries(own.entropies, size(attention.heads));
    const auto entropies = own.entropies.begin(), end = entropies + attention.heads;
    for (int first = 0; first < rows; first += tokens) {
      std::fill(entropies, end, Real(0));
      for (int row = first; row < first + tokens; ++row) {
        for (int h = 0; h < attention.heads; ++h) {
          const std::size_t at = (entries(first / tokens * attention.heads + h, tokens) + size(row - first)) *
                                 size(kernels::padded(tokens));
          entropies[h] -= kernels::dot(attention.weights.data() + at, attention.log_weights.data() + at,
                                       kernels::padded(tokens));
        }
        own.heads[size(row)] = static_cast<int>(std::min_element(entropies, end) - entropies);
      }
      if (!causal_) std::fill_n(own.heads.begin() + first, tokens, own.heads[size(first + tokens - 1)]);
    }
  }

  /// log A_h[i, j] − ‖u_i − c_hj‖² / (2σ²), j = 1 … s. If the mask hides j, the entry is log A_h alone, so
  /// that no distance changes it.
  void write_log_joint(const RouterContext<Real>& context, int row, int head, Real* log_joint) const {
    const AttentionState<Real>& attention = *context.signals.attention;
    const int tokens = context.tokens, first_row = row - row % tokens;
    const Real* const u = attention.outputs.data() + entries(row, stride_);
    const Real* const log_weights =
        attention.log_weights.data() + weights_row(context, row, head) * size(kernels::padded(tokens));
    const Real* const centres =
        attention.centres.data() + centres_row(context, first_row, head) * size(stride_);
    const Real scale = static_cast<Real>(precision_ / 2);
    const int seen = causal_ ? row - first_row + 1 : tokens;
    kernels::squared_distances(u, {centres, stride_}, seen, stride_, log_joint);
    for (int j = 0; j < seen; ++j) log_joint[j] = log_weights[j] - scale * log_joint[j];
    std::copy(log_weights + seen, log_weights + tokens, log_joint + seen);
  }

  static void sum_over_heads(const PosteriorScratch<Real>& own, int rows, int tokens, int heads,
                             Real* weights, Real* log_weights) {
    const int weight_stride = kernels::padded(tokens);
    for (int row = 0; row < rows; ++row) {
      const Real* const joint = own.joint.data() + entries(row, own.joint_stride);
      const Real* const log_joint = own.log_joint.data() + entries(row, own.joint_stride);
      Real* const sum = weights + entries(row, weight_stride);
      Real* const log_sum = log_weights + entries(row, weight_stride);
      std::copy_n(joint, tokens, sum);
      std::copy_n(log_joint, tokens, log_sum);
      std::fill(sum + tokens, sum + weight_stride, Real(0));
      for (int h = 1; h < heads; ++h) {
        for (int j = 0; j < tokens; ++j) {
          sum[j] += joint[h * tokens + j];
          const Real low = std::min(log_sum[j], log_joint[h * tokens + j]);
          const Real high = std::max(log_sum[j], log_joint[h * tokens + j]);
          log_sum[j] = high + std::log1p(std::exp(low - high));
        }
      }
    }
  }

  /// Adds the gradients of A, the centres and U from G = ∂L/∂(log A_h[i,j] + log N(u_i; c_hj)) of a sequence
  /// and head (s, s), and overwrites G. A row of G sums to zero over heads and positions. So u_i drops out:
  /// ∂L/∂u_i = Σ_hj G_i[h,j] c_hj / σ².
  void likelihood_backward(const RouterContext<Real>& context, int sample, int head, const View<Real>& delta,
                           AttentionGradients<Real>& gradients) const {
    const AttentionState<Real>& attention = *context.signals.attention;
    const int tokens = context.tokens, first_row = sample * tokens;
    gradients.touch(sample, head);
    for (int i = 0; i < tokens; ++i) {
      Real* const log_weights = gradients.log_weights_of(sample, head) + entries(i, kernels::padded(tokens));
      for (int j = 0; j < tokens; ++j) {
        log_weights[j] += delta(i, j);
        delta(i, j) *= static_cast<Real>(precision_);
      }
    }
    const std::size_t outputs_place = entries(first_row, stride_);
    const Real* const centres =
        attention.centres.data() + centres_row(context, first_row, head) * size(stride_);
    Real* const of_centres = gradients.centres_of(sample, head);
    kernels::multiply(delta, kernels::padded_rows(centres, tokens, dim_),
                      kernels::padded_rows(gradients.outputs.data() + outputs_place, tokens, dim_),
                      {.accumulate = true});
    kernels::multiply(delta.transposed(),
                      kernels::padded_rows(attention.outputs.data() + outputs_place, tokens, dim_),
                      kernels::padded_rows(of_centres, tokens, dim_), {.accumulate = true});
    for (int j = 0; j < tokens; ++j) {
      Real sum = 0;
      for (int i = 0; i < tokens; ++i) sum += delta(i, j);
      const std::size_t place = entries(j, stride_);
      kernels::add_scaled(-sum, centres + place, of_centres + place, stride_);
    }
  }

  double precision_;  // 1 / σ²
  bool all_heads_;
  bool causal_;
  bool detached_;
  int dim_;
  int stride_;
};

template <class Real>
class AttentionAwareRouter final : public MixingRouter<Real> {
 public:
  AttentionAwareRouter(const AttentionAwareRouterOptions& options, const RouterSetting& setting)
      : MixingRouter<Real>(options.base, std::make_unique<PosteriorWeights<Real>>(options, setting),
                           setting) {}
};

/// τ at a share of the training steps.
double temperature(const SimilarityAwareRouterOptions& options, double progress) {
  return temperature_at(options.tau, options.tau_end.value_or(options.tau), options.tau_schedule, progress);
}

template <class Real>
struct SimilarityScratch final : Scratch {
  Real inverse_temperature = 1;
  AlignedVector<Real> rows, turned, turned_gradient;  // U, Y and ∂L/∂Y (n·s, padded(d))
};

/// S = row-softmax(Y U^T / τ), Y = U W_s, over j ≤ i in a causal model. W_s is stored as (d, padded(d)).
template <class Real>
class SimilarityWeights final : public TokenWeights<Real> {
 public:
  SimilarityWeights(const SimilarityAwareRouterOptions& options, const RouterSetting& setting)
      : options_(options),
        learned_(options.similarity == SimilarityAwareRouterOptions::Similarity::learned),
        causal_(setting.causal),
        dim_(setting.input_dim),
        stride_(kernels::padded(setting.input_dim)) {}

  std::size_t parameter_count() const override { return learned_ ? entries(dim_, dim_) : 0; }
  std::size_t block_size() const override { return learned_ ? entries(dim_, stride_) : 0; }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<SimilarityScratch<Real>>();
  }

  void initialize(Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (int j = 0; j < dim_ && learned_; ++j) matrix(parameters)(j, j) = Real(1);
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch, Real* weights,
               Real* log_weights) const override {
    auto& own = static_cast<SimilarityScratch<Real>&>(scratch);
    const int rows = context.x.rows, tokens = context.tokens;
    const int weight_stride = kernels::padded(tokens);
    pad(context.x, own.rows);
    own.inverse_temperature = static_cast<Real>(1 / temperature(options_, context.progress));
    if (learned_) {
      reserve_entries(own.turned, entries(rows, stride_));
      kernels::multiply(all_of<const Real>(own.rows.data(), rows), matrix(parameters),
                        all_of(own.turned.data(), rows));
    }
    for (int first = 0; first < rows; first += tokens) {
      kernels::multiply(turned(own, rows).middle_rows(first, tokens),
                        all_of<const Real>(own.rows.data(), rows).middle_rows(first, tokens).transposed(),
                        kernels::padded_rows(log_weights + entries(first, weight_stride), tokens, tokens));
    }
    kernels::scale_into(own.inverse_temperature, log_weights, log_weights,
                        static_cast<int>(entries(rows, weight_stride)));
    for (int first = 0; causal_ && first < rows; first += tokens)
      hide_later_keys(kernels::padded_rows(log_weights + entries(first, weight_stride), tokens, tokens));
    kernels::log_softmax_rows(log_weights, weights, rows, tokens, weight_stride);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const Real* weights, Real* weight_gradient,
                const RouterGradients<Real>& gradients) const override {
    if (!learned_ && !gradients.inputs) return;
    auto& own = static_cast<SimilarityScratch<Real>&>(scratch);
    const int rows = context.x.rows, tokens = context.tokens;
    const int weight_stride = kernels::padded(tokens);
    kernels::softmax_backward_rows(weights, weight_gradient, weight_gradient, rows, tokens, weight_stride);
    kernels::scale_into(own.inverse_temperature, weight_gradient, weight_gradient,
                        static_cast<int>(entries(rows, weight_stride)));
    if (learned_) reserve_entries(own.turned_gradient, entries(rows, stride_));
    const View<const Real> u = all_of<const Real>(own.rows.data(), rows), y = turned(own, rows);
    const View<Real> of_u = all_of(gradients.inputs, rows);
    const View<Real> of_y = learned_ ? all_of(own.turned_gradient.data(), rows) : of_u;
    for (int first = 0; first < rows; first += tokens) {
      // With Z = Y U^T / τ: ∂L/∂Y = (∂L/∂Z) U / τ, and ∂L/∂U gets the direct term (∂L/∂Z)^T Y / τ.
      const View<const Real> delta =
          kernels::padded_rows(weight_gradient + entries(first, weight_stride), tokens, tokens);
      kernels::multiply(delta, u.middle_rows(first, tokens), of_y.middle_rows(first, tokens),
                        {.accumulate = !learned_});
      if (!gradients.inputs) continue;
      kernels::multiply(delta.transposed(), y.middle_rows(first, tokens), of_u.middle_rows(first, tokens),
                        {.accumulate = true});
    }
    if (!learned_) return;
    kernels::multiply(u.transposed(), of_y, matrix(gradients.parameters));
    if (!gradients.inputs) return;
    kernels::multiply(of_y, matrix(parameters).transposed(), of_u, {.accumulate = true});
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (!learned_) return {};
    return {{"router_similarity", {dim_, dim_}, values_of(matrix(parameters))}};
  }

 private:
  /// W_s (d, d) in a parameter block, and arrays of rows (n·s, d).
  template <class Value>
  View<Value> matrix(Value* block) const {
    return {block, dim_, dim_, stride_};
  }
  template <class Value>
  View<Value> all_of(Value* rows, int count) const {
    return {rows, count, dim_, stride_};
  }
  /// The array Y (n·s, d).
  View<const Real> turned(const SimilarityScratch<Real>& own, int count) const {
    return all_of((learned_ ? own.turned : own.rows).data(), count);
  }
  /// rows ← U with padding.
  void pad(const View<const Real>& u, AlignedVector<Real>& rows) const {
    MOELAB_EXPECT(u.columns == dim_);
    reserve_entries(rows, entries(u.rows, stride_));
    for (int row = 0; row < u.rows; ++row) {
      std::copy_n(u.row(row), dim_, rows.data() + entries(row, stride_));
    }
  }

  SimilarityAwareRouterOptions options_;
  bool learned_;
  bool causal_;
  int dim_;
  int stride_;
};

template <class Real>
class SimilarityAwareRouter final : public MixingRouter<Real> {
 public:
  SimilarityAwareRouter(const SimilarityAwareRouterOptions& options, const RouterSetting& setting)
      : MixingRouter<Real>(options.base, std::make_unique<SimilarityWeights<Real>>(options, setting),
                           setting) {}
};

}  // namespace

const std::vector<RouterKind>& BaseRouterAxis::table() {
  static const std::vector<RouterKind> table = {linear_base(), cosine_router()};
  return table;
}

void bind_mixing_fields(Fields& fields, bool& trainable, BaseRouterOptions& base) {
  fields.add("trainable", trainable, "false freezes the router, its base included, at its start");
  fields.add("base", base, "scores of r(u), a token's own routing; frozen alone by base.trainable false");
}

void AttentionAwareRouterOptions::bind(Fields& fields) {
  bind_mixing_fields(fields, trainable, base);
  fields.add("sigma", sigma, positive(), "standard deviation σ of a token around the centre it attended to");
  fields.add("head", head, {"lowest_entropy", "posterior"},
             "the head of lowest mean row entropy in the sequence, or all by their posterior");
  fields.add("detach", detach, "true: the attention does not learn through the posterior (default false)");
}

InvalidOption no_attention_error(const std::string& router) {
  return {"model.attention", fmt::format("missing; model.router.kind \"{}\" needs it", router)};
}

RouterKind attention_aware_router() {
  RouterKind kind = router_kind<AttentionAwareRouterOptions, AttentionAwareRouter>(
      "attention_aware",
      "p_i = Σ_j A^p[i,j] r(u_j) over the tokens of a sequence, A^p[i,j] ∝ A_h[i,j] N(u_i; W_h^T x_j, σ² I) "
      "(Nguyen et al. 2025); in causal models over those up to its own");
  kind.needs_attention = true;
  kind.needed = "model.attention or a transformer's own";
  kind.mixes_tokens = true;
  kind.leaves_base = true;
  kind.starts_at_rows = true;
  return kind;
}

void SimilarityAwareRouterOptions::bind(Fields& fields) {
  bind_mixing_fields(fields, trainable, base);
  fields.add("tau", tau, positive(), "temperature τ of the similarities");
  fields.add("tau_end", tau_end, positive(),
             "τ at the schedule's end; step t of N has the value at t / N, measuring the last step's "
             "(default: tau throughout)");
  fields.add("tau_schedule", tau_schedule, {"linear", "cosine", "geometric"},
             "how τ moves from tau to tau_end over the steps");
  fields.add("similarity", similarity, {"identity", "learned"}, "W_s = I, or learned from the start I");
}

static void check_similarity_aware(const AnyOptions& options, int /*experts*/) {
  const SimilarityAwareRouterOptions& own = options.get<SimilarityAwareRouterOptions>();
  if (own.tau_end || own.tau_schedule == SimilarityAwareRouterOptions::Schedule::linear) return;
  throw InvalidOption("model.router.tau_schedule", "given, but model.router.tau_end is not");
}

RouterKind similarity_aware_router() {
  RouterKind kind = router_kind<SimilarityAwareRouterOptions, SimilarityAwareRouter>(
      "similarity_aware",
      "p_i = Σ_j S_ij r(u_j) over the tokens of a sequence, S = row-softmax(U W_s U^T / τ) (Nguyen et al. "
      "2025); in causal models over those up to its own");
  kind.mixes_tokens = true;
  kind.leaves_base = true;
  kind.starts_at_rows = true;
  kind.check = check_similarity_aware;
  return kind;
}

}  // namespace moelab
