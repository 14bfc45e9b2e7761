#include "sim/model/router/attention_aware_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/log_softmax.h"
#include "sim/model/router/mixing_router.h"

namespace moelab {
namespace {

/// The posterior of (head, position) of each token: w_i[h, j] = A_h[i,j] N(u_i; c_hj, σ² I) / Σ over the
/// heads that count and all j, c_hj = W_h^T x_j; S_ij = Σ_h w_i[h, j]. All heads count, or one in each
/// sequence.
template <class Real>
class PosteriorWeights final : public TokenWeights<Real> {
 public:
  PosteriorWeights(const Json& spec, int dim)
      : precision_(1 / (spec.at("sigma").get<double>() * spec.at("sigma").get<double>())),
        all_heads_(spec.at("head") == "posterior"),
        dim_(dim),
        stride_(kernels::padded(dim)) {}

  bool reads_attention() const override { return true; }

  void forward(const RouterContext<Real>& context, const Real* /*parameters*/, Real* weights,
               Real* log_weights) override {
    const AttentionState<Real>& attention = *context.attention;
    const int tokens = context.tokens, samples = context.rows / tokens;
    const int heads = all_heads_ ? attention.heads : 1;
    reserve_entries(heads_, size(samples));
    if (!all_heads_) choose_heads(attention, samples, tokens);
    joint_stride_ = kernels::padded(heads * tokens);
    reserve_entries(joint_, entries(context.rows, joint_stride_));
    reserve_entries(log_joint_, entries(context.rows, joint_stride_));
    reserve_entries(difference_, size(stride_));
    for (int row = 0; row < context.rows; ++row) {
      for (int h = 0; h < heads; ++h) {
        add_log_joint(context, row, head(row / tokens, h),
                      log_joint_.data() + entries(row, joint_stride_) + size(h * tokens));
      }
    }
    log_softmax_rows(log_joint_.data(), joint_.data(), context.rows, heads * tokens, joint_stride_);
    sum_over_heads(context, heads, weights, log_weights);
  }

  void backward(const RouterContext<Real>& context, const Real* /*parameters*/, const Real* /*weights*/,
                Real* weight_gradient, const RouterGradients<Real>& gradients) override {
    if (!gradients.attention) return;
    const int tokens = context.tokens, weight_stride = kernels::padded(tokens);
    const int heads = all_heads_ ? context.attention->heads : 1;
    reserve_entries(joint_gradient_, entries(context.rows, joint_stride_));
    for (int row = 0; row < context.rows; ++row) {
      const Real* const own = weight_gradient + entries(row, weight_stride);
      Real* const joint = joint_gradient_.data() + entries(row, joint_stride_);
      for (int h = 0; h < heads; ++h) std::copy_n(own, tokens, joint + h * tokens);
    }
    kernels::softmax_backward_rows(joint_.data(), joint_gradient_.data(), joint_gradient_.data(),
                                   context.rows, heads * tokens, joint_stride_);
    for (int sample = 0; sample < context.rows / tokens; ++sample) {
      for (int h = 0; h < heads; ++h) {
        likelihood_backward(context, sample, head(sample, h), h * tokens, *gradients.attention);
      }
    }
  }

 private:
  /// The number of the head in place h among those that count in a sequence.
  int head(int sample, int h) const { return all_heads_ ? h : heads_[size(sample)]; }
  /// The first row of a head's weights, and of its centres at a row of the batch.
  static std::size_t weights_row(const RouterContext<Real>& context, int row, int head) {
    const int tokens = context.tokens;
    return entries(row / tokens * context.attention->heads + head, tokens) + size(row % tokens);
  }
  static std::size_t centres_row(const RouterContext<Real>& context, int row, int head) {
    return entries(head, context.rows) + size(row);
  }

  /// heads_ ← argmin_h of the mean over tokens i of H(A_h[i, :]) in each sequence; ties go to the lower
  /// index.
  void choose_heads(const AttentionState<Real>& attention, int samples, int tokens) {
    const std::size_t block = entries(tokens, kernels::padded(tokens));
    for (int sample = 0; sample < samples; ++sample) {
      Real lowest = 0;
      for (int h = 0; h < attention.heads; ++h) {
        const std::size_t first = entries(sample, attention.heads) * block + size(h) * block;
        Real entropy = 0;
        for (int i = 0; i < tokens; ++i) {
          for (int j = 0; j < tokens; ++j) {
            const std::size_t at = first + entries(i, kernels::padded(tokens)) + size(j);
            entropy -= attention.weights[at] * attention.log_weights[at];
          }
        }
        if (h == 0 || entropy < lowest) {
          lowest = entropy;
          heads_[size(sample)] = h;
        }
      }
    }
  }

  /// log A_h[i, j] − ‖u_i − c_hj‖² / (2σ²), j = 1 … s. Squares of differences, not differences of squares: at
  /// a small σ the digits that those lose would decide.
  void add_log_joint(const RouterContext<Real>& context, int row, int head, Real* log_joint) {
    const AttentionState<Real>& attention = *context.attention;
    const int tokens = context.tokens, first_row = row - row % tokens;
    const Real* const u = attention.outputs.data() + entries(row, stride_);
    const Real* const log_weights =
        attention.log_weights.data() + weights_row(context, row, head) * size(kernels::padded(tokens));
    const Real scale = static_cast<Real>(precision_ / 2);
    for (int j = 0; j < tokens; ++j) {
      const Real* const centre =
          attention.centres.data() + centres_row(context, first_row + j, head) * size(stride_);
      for (int q = 0; q < stride_; ++q) difference_[size(q)] = u[q] - centre[q];
      log_joint[j] = log_weights[j] - scale * kernels::dot(difference_.data(), difference_.data(), stride_);
    }
  }

  void sum_over_heads(const RouterContext<Real>& context, int heads, Real* weights, Real* log_weights) {
    const int tokens = context.tokens, weight_stride = kernels::padded(tokens);
    for (int row = 0; row < context.rows; ++row) {
      const Real* const joint = joint_.data() + entries(row, joint_stride_);
      const Real* const log_joint = log_joint_.data() + entries(row, joint_stride_);
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

  /// From G = ∂L/∂(log A_h[i,j] + log N(u_i; c_hj)) of a sequence and head, columns from `column` on. Over
  /// heads and positions a row of G sums to zero, so that u_i itself drops out of ∂L/∂u_i = Σ_hj G_i[h,j]
  /// c_hj / σ².
  void likelihood_backward(const RouterContext<Real>& context, int sample, int head, int column,
                           AttentionGradients<Real>& gradients) {
    const AttentionState<Real>& attention = *context.attention;
    const int tokens = context.tokens, first_row = sample * tokens;
    const std::size_t centres_place = centres_row(context, first_row, head) * size(stride_);
    Real* const joint = joint_gradient_.data() + entries(first_row, joint_stride_) + size(column);
    for (int i = 0; i < tokens; ++i) {
      Real* const own = joint + i * joint_stride_;
      Real* const log_weights = gradients.log_weights.data() +
                                weights_row(context, first_row + i, head) * size(kernels::padded(tokens));
      for (int j = 0; j < tokens; ++j) {
        log_weights[j] += own[j];
        own[j] *= static_cast<Real>(precision_);
      }
    }
    kernels::Product<Real> of_outputs;
    of_outputs.m = of_outputs.k = tokens;
    of_outputs.n = dim_;
    of_outputs.a = joint;
    of_outputs.a_row = joint_stride_;
    of_outputs.b = attention.centres.data() + centres_place;
    of_outputs.b_row = of_outputs.c_row = stride_;
    of_outputs.c = gradients.outputs.data() + entries(first_row, stride_);
    of_outputs.start = kernels::Start::accumulate;
    kernels::multiply(of_outputs);
    kernels::Product<Real> of_centres = of_outputs;
    of_centres.a_row = 1;
    of_centres.a_column = joint_stride_;
    of_centres.b = attention.outputs.data() + entries(first_row, stride_);
    of_centres.c = gradients.centres.data() + centres_place;
    kernels::multiply(of_centres);
    for (int j = 0; j < tokens; ++j) {
      Real sum = 0;
      for (int i = 0; i < tokens; ++i) sum += joint[i * joint_stride_ + j];
      const std::size_t place = centres_place + entries(j, stride_);
      kernels::add_scaled(-sum, attention.centres.data() + place, gradients.centres.data() + place, stride_);
    }
  }

  double precision_;  // 1 / σ²
  bool all_heads_;
  int dim_;
  int stride_;
  int joint_stride_ = 0;
  AlignedVector<int> heads_;  // h* of each sequence
  AlignedVector<Real> difference_;
  AlignedVector<Real> joint_, log_joint_, joint_gradient_;  // w (n·s, padded(heads · s)), its logarithm, ∂L
};

}  // namespace

Kind attention_aware_router_kind() {
  Kind kind = {
      "attention_aware",
      "p_i = Σ_j A^p[i,j] r(u_j) over the tokens of a sequence, A^p[i,j] ∝ A_h[i,j] N(u_i; W_h^T x_j, σ² I) "
      "(Nguyen et al. 2025); needs model.attention",
      mixing_fields()};
  kind.fields.push_back({"sigma", Shape::positive_real(),
                         "standard deviation σ of a token around the centre it attended to", 1.0});
  kind.fields.push_back({"head", Shape::choice({"lowest_entropy", "posterior"}),
                         "the head of lowest mean row entropy in the sequence, or all by their posterior",
                         "lowest_entropy"});
  return kind;
}

UserError no_attention_error() {
  return {"model.attention", "missing; model.router.kind \"attention_aware\" needs it"};
}

template <class Real>
std::unique_ptr<Router<Real>> make_attention_aware_router(const Json& spec, const Layout& layout,
                                                          int experts) {
  return std::make_unique<MixingRouter<Real>>(
      spec, std::make_unique<PosteriorWeights<Real>>(spec, layout.router_dim()), layout, experts);
}

template std::unique_ptr<Router<float>> make_attention_aware_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_attention_aware_router(const Json&, const Layout&, int);

}  // namespace moelab
