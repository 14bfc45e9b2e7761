#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

template <class Real>
struct SequenceMeanScratch final : Scratch {
  std::unique_ptr<Scratch> linear;
  AlignedVector<Real> means;  // m (n·s, padded(d))
  AlignedVector<Real> later;  // Σ of ∂L/∂x_t over later tokens (padded(d))
};

template <class Real>
class SequenceMeanRouter final : public Router<Real> {
 public:
  SequenceMeanRouter(const SequenceMeanRouterOptions& options, const RouterSetting& setting)
      : linear_(make_linear_router<Real>(linear_part(options), setting)),
        causal_(setting.causal),
        sum_(options.sum),
        dim_(setting.input_dim),
        stride_(kernels::padded(setting.input_dim)) {}

  std::size_t parameter_count() const override { return linear_->parameter_count(); }
  std::size_t block_size() const override { return linear_->block_size(); }
  void initialize(const Start& start, Real* parameters) const override {
    linear_->initialize(start, parameters);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return linear_->arrays(parameters);
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<SequenceMeanScratch<Real>>();
    scratch->linear = linear_->make_scratch();
    return scratch;
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<SequenceMeanScratch<Real>&>(scratch);
    const int rows = context.x.rows, tokens = context.tokens;
    MOELAB_EXPECT(rows % tokens == 0 && context.x.columns == dim_);
    reserve_entries(own.means, entries(rows, stride_));
    for (int first = 0; first < rows; first += tokens) {
      for (int t = 0; t < tokens; ++t) {
        Real* const sum = mean(own, first + t);
        const Real* const x = context.x.row(first + t);
        for (int q = 0; q < dim_; ++q) sum[q] = x[q] + (t > 0 ? mean(own, first + t - 1)[q] : Real(0));
      }
      if (!causal_) {
        for (int t = 0; t + 1 < tokens; ++t)
          std::copy_n(mean(own, first + tokens - 1), dim_, mean(own, first + t));
      }
      for (int t = 0; t < tokens; ++t) {
        Real* const sum = mean(own, first + t);
        for (int q = 0; q < dim_; ++q) sum[q] *= weight(t, tokens);
      }
    }
    return linear_->forward(of_means(context, own), parameters, *own.linear, scores);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<SequenceMeanScratch<Real>&>(scratch);
    linear_->backward(of_means(context, own), parameters, *own.linear, gradients);
    if (!gradients.inputs) return;
    const int rows = context.x.rows, tokens = context.tokens;
    reserve_entries(own.later, size(stride_));
    // ∂L/∂x_j = Σ_t (∂L/∂m_t) w_t over the tokens t whose mean includes x_j: t ≥ j if causal, else all.
    for (int first = 0; first < rows; first += tokens) {
      std::fill_n(own.later.data(), stride_, Real(0));
      for (int t = tokens - 1; t >= 0; --t) {
        Real* const gradient = gradients.inputs + entries(first + t, stride_);
        kernels::add_scaled(weight(t, tokens), gradient, own.later.data(), stride_);
        std::copy_n(own.later.data(), stride_, gradient);
      }
      if (causal_) continue;
      for (int t = 1; t < tokens; ++t)
        std::copy_n(own.later.data(), stride_, gradients.inputs + entries(first + t, stride_));
    }
  }

 private:
  /// The weight of each token in the mean (or sum) at place t.
  Real weight(int t, int tokens) const {
    return sum_ ? Real(1) : Real(1) / static_cast<Real>(causal_ ? t + 1 : tokens);
  }
  Real* mean(SequenceMeanScratch<Real>& own, int row) const {
    return own.means.data() + entries(row, stride_);
  }
  RouterContext<Real> of_means(const RouterContext<Real>& context,
                               const SequenceMeanScratch<Real>& own) const {
    RouterContext<Real> means = context;
    means.x = {own.means.data(), context.x.rows, dim_, stride_};
    return means;
  }

  std::unique_ptr<Router<Real>> linear_;
  bool causal_;
  bool sum_;
  int dim_;
  int stride_;
};

}  // namespace

void SequenceMeanRouterOptions::bind(Fields& fields) {
  bind_linear_fields(fields, trainable, init, init_scale, bias);
  fields.add("sum", sum, "m is the sum of the tokens in place of their mean (Chen et al. 2022)");
}

RouterKind sequence_mean_router() {
  RouterKind kind = router_kind<SequenceMeanRouterOptions, SequenceMeanRouter>(
      "sequence_mean",
      "γ_e(x) = w_e^T m. m is the mean of the sequence's tokens, in causal models of the tokens up to x. "
      "Without sequences it is a linear router");
  kind.mixes_tokens = true;
  kind.starts_at_rows = true;
  kind.needs_train_rows = starts_at_train_rows<SequenceMeanRouterOptions>;
  return kind;
}

}  // namespace moelab
