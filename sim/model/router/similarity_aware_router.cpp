#include "sim/model/router/similarity_aware_router.h"

#include <algorithm>

#include "sim/base/kernels/multiply.h"

namespace moelab {
namespace {

/// τ at a share of the training steps.
double temperature(const SimilarityAwareRouterOptions& options, double progress) {
  return temperature_at(options.tau, options.tau_end.value_or(options.tau), options.tau_schedule, progress);
}

template <class Real>
struct SimilarityScratch final : Scratch {
  Real inverse_temperature = 1;
  AlignedVector<Real> rows, turned, turned_gradient;  // U, Y and ∂L/∂Y (n·s, padded(d))
};

/// S = row-softmax(Y U^T / τ), Y = U W_s, where it is causal over j ≤ i. W_s is kept as (d, padded(d)).
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
      // With Z = Y U^T / τ: ∂L/∂Y = (∂L/∂Z) U / τ, and U gets (∂L/∂Z)^T Y / τ on its own side.
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
    NamedArray<Real> similarity{"router_similarity", {dim_, dim_}, {}};
    for (int j = 0; j < dim_; ++j) {
      const Real* const row = matrix(parameters).row(j);
      similarity.values.insert(similarity.values.end(), row, row + dim_);
    }
    return {std::move(similarity)};
  }

 private:
  /// W_s (d, d) of a block, and arrays of rows (n·s, d).
  template <class Value>
  View<Value> matrix(Value* block) const {
    return {block, dim_, dim_, stride_};
  }
  template <class Value>
  View<Value> all_of(Value* rows, int count) const {
    return {rows, count, dim_, stride_};
  }
  /// Y.
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

void SimilarityAwareRouterOptions::bind(Fields& fields) {
  bind_mixing_fields(fields, trainable, base);
  fields.add("tau", tau, positive(), "temperature τ of the similarities");
  fields.add("tau_end", tau_end, positive(),
             "τ that the schedule ends at: step t of N, from 0 on, has the value at t / N, and measuring "
             "that of the step before (default: tau throughout)");
  fields.add("tau_schedule", tau_schedule, {"linear", "cosine", "geometric"},
             "how τ moves from tau to tau_end over the steps");
  fields.add("similarity", similarity, {"identity", "learned"}, "W_s = I, or learned from the start I");
}

RouterKind similarity_aware_router() {
  RouterKind kind = router_kind<SimilarityAwareRouterOptions, SimilarityAwareRouter>(
      "similarity_aware",
      "p_i = Σ_j S_ij r(u_j) over the tokens of a sequence, S = row-softmax(U W_s U^T / τ) (Nguyen et al. "
      "2025); in causal models over those up to its own");
  kind.mixes_tokens = true;
  kind.leaves_base = true;
  kind.starts_at_rows = true;
  return kind;
}

}  // namespace moelab
