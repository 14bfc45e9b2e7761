#include "sim/model/router/attention_aware_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"

namespace moelab {
namespace {

template <class Real>
struct PosteriorScratch final : Scratch {
  int joint_stride = 0;
  AlignedVector<int> heads;                              // h* of each row
  AlignedVector<Real> entropies;                         // of each head, added up over a sequence
  AlignedVector<Real> of_head;                           // ∂L of rows with one h* (s, padded(s))
  AlignedVector<Real> joint, log_joint, joint_gradient;  // w (n·s, padded(heads · s)), its logarithm, ∂L
};

/// The posterior of (head, position) of each token: w_i[h, j] = A_h[i,j] N(u_i; c_hj, σ² I) / Σ over the
/// heads that count and all j, c_hj = W_h^T x_j; S_ij = Σ_h w_i[h, j]. All heads count, or one for each
/// token.
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
  /// The gradient of a sequence's rows whose h* is h, zero in others; empty where there are none.
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

  /// heads ← argmin_h of the mean of H(A_h[i, :]) over the tokens i of the sequence, or where it is causal
  /// over those up to the row's own; ties go to the lower index.
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

  /// log A_h[i, j] − ‖u_i − c_hj‖² / (2σ²), j = 1 … s; where the mask hides j, log A_h alone, which no
  /// distance changes.
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

  /// From G = ∂L/∂(log A_h[i,j] + log N(u_i; c_hj)) of a sequence and head (s, s), which it overwrites. Over
  /// heads and positions a row of G sums to zero, so that u_i itself drops out of ∂L/∂u_i = Σ_hj G_i[h,j]
  /// c_hj / σ².
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

}  // namespace

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

}  // namespace moelab
