#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/kernels/multiply.h"
#include "sim/model/blocks/attention.h"
#include "sim/model/blocks/mixture.h"
#include "sim/model/blocks/sequence_mixer.h"

namespace moelab {
namespace {

/// Queries in a block of weights. The block is small, so entries above the diagonal cost little.
constexpr int kQueries = 32;

template <class Real>
struct SelfAttentionScratch final : Scratch {
  AlignedVector<Real> projected, mixed;    ///< [Q | K | V] (n·s, 3 H padded(k)), Q / √k, and A_h V_h
  AlignedVector<Real> projected_gradient;  ///< of a sequence, or of all rows for the record
  AlignedVector<Real> mixed_gradient;      ///< of a sequence (s, H padded(k))
  /// A_h of a block of queries (kQueries, padded(s)), and its gradient. The backward pass computes A_h again,
  /// because weights of a batch would be read from a far cache.
  AlignedVector<Real> weights, weight_gradient;
  AttentionRecord<Real> record;  ///< for routers, if it is kept
};

template <class Real>
class SelfAttention final : public Block<Real> {
 public:
  SelfAttention(const SelfAttentionOptions& /*options*/, const MixerSetting& setting)
      : dim_(setting.dim),
        heads_(setting.heads),
        key_dim_(setting.dim / setting.heads),
        tokens_(setting.tokens),
        head_stride_(kernels::padded(key_dim_)),
        causal_(setting.causal),
        recorded_(setting.recorded),
        scale_(static_cast<Real>(1 / std::sqrt(static_cast<double>(key_dim_)))) {
    MOELAB_EXPECT(key_dim_ * heads_ == dim_);
    if (setting.rotary) turns_.emplace(tokens_, key_dim_);
  }

  int output_dim() const override { return dim_; }
  std::size_t parameter_count() const override { return 4 * entries(dim_, dim_); }
  std::size_t block_size() const override {
    return input_size() + entries(heads_ * head_stride_, kernels::padded(dim_));
  }
  std::vector<ParameterGroup> groups() const override { return {{.end = block_size()}}; }
  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    const double deviation = 1 / std::sqrt(static_cast<double>(dim_));
    for (int h = 0; h < heads_; ++h) {
      // Use streams that no expert uses. Experts' streams count up from 0; these count down from the largest
      // number.
      Engine engine = start.seeds.stream(Purpose::expert_init, ~static_cast<std::uint64_t>(h));
      for (const Part part : {kQuery, kKey, kValue})
        draw_matrix(engine, deviation, part_of(input_matrix(parameters), part, h));
      draw_matrix(engine, deviation, joint_of(parameters, h));
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all;
    for (const auto& [name, part] :
         {std::pair{"query", kQuery}, std::pair{"key", kKey}, std::pair{"value", kValue}}) {
      NamedArray<Real>& array = all.emplace_back(NamedArray<Real>{name, {dim_, dim_}, {}});
      for (int h = 0; h < heads_; ++h) {
        const std::vector<Real> columns = values_of(part_of(input_matrix(parameters), part, h).transposed());
        array.values.insert(array.values.end(), columns.begin(), columns.end());
      }
    }
    NamedArray<Real>& array = all.emplace_back(NamedArray<Real>{"output", {dim_, dim_}, {}});
    const ConstRows matrix = output_matrix(parameters);
    for (int i = 0; i < dim_; ++i) {
      for (int h = 0; h < heads_; ++h) {
        for (int j = 0; j < key_dim_; ++j) array.values.push_back(matrix(h * head_stride_ + j, i));
      }
    }
    return all;
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<SelfAttentionScratch<Real>>();
  }
  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& signals, Scratch& scratch, const View<Real>& outputs) const override {
    MOELAB_EXPECT(pass.tokens == tokens_ && inputs.rows % tokens_ == 0 && inputs.columns == dim_);
    auto& mine = static_cast<SelfAttentionScratch<Real>&>(scratch);
    const int rows = inputs.rows;
    reserve_entries(mine.projected, entries(rows, projected_dim()));
    reserve_entries(mine.mixed, entries(rows, mixed_dim()));
    reserve_entries(mine.weights, entries(kQueries, kernels::padded(tokens_)));
    // Sequence by sequence, so that what one product writes is in a near cache for the next.
    for (int first = 0; first < rows; first += tokens_) {
      const Rows projected = projected_of(mine.projected, first, tokens_);
      kernels::multiply(inputs.middle_rows(first, tokens_), input_matrix(values.parameters), projected);
      turn(projected, Real(1));
      scale_queries(projected);
      const Rows mixed = mixed_of(mine.mixed, first, tokens_);
      for (int h = 0; h < heads_; ++h) {
        const Rows heads_mixed = of_head(mixed, h);
        for (int query = 0; query < tokens_; query += kQueries) {
          const int count = std::min(kQueries, tokens_ - query);
          const ConstRows weights = weigh(projected, h, query, count, mine);
          kernels::multiply(weights, part_of(projected, kValue, h).middle_rows(0, weights.columns),
                            heads_mixed.middle_rows(query, count));
        }
      }
      kernels::multiply(mixed, output_matrix(values.parameters), outputs.middle_rows(first, tokens_));
    }
    if (!recorded_) return;
    record(outputs, values.parameters, mine);
    signals.attention = &mine.record.state;
    signals.attention_gradients = &mine.record.gradients;
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    auto& mine = static_cast<SelfAttentionScratch<Real>&>(scratch);
    const int rows = inputs.rows;
    // The record adds to gradients of all rows. Otherwise the arrays of one sequence serve all in turn.
    reserve_entries(mine.projected_gradient, entries(recorded_ ? rows : tokens_, projected_dim()));
    reserve_entries(mine.mixed_gradient, entries(tokens_, mixed_dim()));
    reserve_entries(mine.weight_gradient, entries(kQueries, kernels::padded(tokens_)));
    const ConstRows upstream = kernels::padded_rows(
        recorded_ ? mine.record.with_own_outputs(output_gradient) : output_gradient, rows, dim_);
    const auto gradient_of = [&](int first) {
      return projected_of(mine.projected_gradient, recorded_ ? first : 0, tokens_);
    };
    const auto to_inputs = [&](int first) {
      const Rows delta = gradient_of(first);
      scale_queries(delta);
      turn(delta, Real(-1));
      kernels::multiply(inputs.middle_rows(first, tokens_).transposed(), delta, input_matrix(gradient),
                        {.accumulate = first > 0});
      if (!input_gradient) return;
      kernels::multiply(delta, input_matrix(values.parameters).transposed(),
                        kernels::padded_rows(input_gradient, rows, dim_).middle_rows(first, tokens_));
    };
    for (int first = 0; first < rows; first += tokens_) {
      const ConstRows own_upstream = upstream.middle_rows(first, tokens_);
      kernels::multiply(mixed_of(mine.mixed, first, tokens_).transposed(), own_upstream,
                        output_matrix(gradient), {.accumulate = first > 0});
      const Rows of_mixed = mixed_of(mine.mixed_gradient, 0, tokens_);
      kernels::multiply(own_upstream, output_matrix(values.parameters).transposed(), of_mixed);
      for (int h = 0; h < heads_; ++h) head_backward(h, first, of_mixed, gradient_of(first), mine);
      if (!recorded_) to_inputs(first);
    }
    if (!recorded_) return;
    const Rows projected = projected_of(mine.projected, 0, rows);
    const Rows of_projected = projected_of(mine.projected_gradient, 0, rows);
    for (int h = 0; h < heads_; ++h) {
      mine.record.add_to_values(h, part_of(projected, kValue, h), joint_of(values.parameters, h),
                                part_of(of_projected, kValue, h), joint_of(gradient, h));
    }
    for (int first = 0; first < rows; first += tokens_) to_inputs(first);
  }

 private:
  using Rows = View<Real>;
  using ConstRows = View<const Real>;
  enum Part { kQuery, kKey, kValue };

  int projected_dim() const { return 3 * heads_ * head_stride_; }
  int mixed_dim() const { return heads_ * head_stride_; }
  std::size_t input_size() const { return entries(dim_, projected_dim()); }
  template <class T>
  View<T> input_matrix(T* parameters) const {
    return {parameters, dim_, projected_dim(), projected_dim()};
  }
  template <class T>
  View<T> output_matrix(T* parameters) const {
    return kernels::padded_rows(parameters + input_size(), mixed_dim(), dim_);
  }
  /// The rows of the output matrix that a head's values meet.
  template <class T>
  View<T> joint_of(T* parameters, int head) const {
    return output_matrix(parameters).middle_rows(head * head_stride_, key_dim_);
  }
  Rows projected_of(AlignedVector<Real>& values, int first, int rows) const {
    return {values.data() + entries(first, projected_dim()), rows, projected_dim(), projected_dim()};
  }
  Rows mixed_of(AlignedVector<Real>& values, int first, int rows) const {
    return {values.data() + entries(first, mixed_dim()), rows, mixed_dim(), mixed_dim()};
  }
  /// Columns of a head in A_h V_h.
  Rows of_head(const Rows& mixed, int head) const {
    return mixed.middle_columns(head * head_stride_, key_dim_);
  }
  /// Columns of a head in [Q | K | V], or in W_Q, W_K, W_V.
  template <class T>
  View<T> part_of(const View<T>& projected, Part part, int head) const {
    return projected.middle_columns((part * heads_ + head) * head_stride_, key_dim_);
  }

  /// Rotates Q and K of a sequence by the angles of their places, or back.
  void turn(const Rows& projected, Real direction) const {
    if (!turns_) return;
    for (int row = 0; row < projected.rows; ++row) {
      for (int part = 0; part < 2 * heads_; ++part)
        turns_->turn(row, direction, projected.row(row) + part * head_stride_);
    }
  }
  void scale_queries(const Rows& projected) const {
    for (int row = 0; row < projected.rows; ++row)
      kernels::scale_into(scale_, projected.row(row), projected.row(row), mixed_dim());
  }

  /// Keys that a block of queries up to this query reads.
  int keys_before(int end_query) const { return causal_ ? end_query : tokens_; }
  /// A (queries, keys) of `count` queries from `first_query` on.
  Rows weigh(const Rows& projected, int head, int first_query, int count,
             SelfAttentionScratch<Real>& mine) const {
    const int keys = keys_before(first_query + count), stride = kernels::padded(tokens_);
    const Rows weights{mine.weights.data(), count, keys, stride};
    kernels::multiply(part_of(projected, kQuery, head).middle_rows(first_query, count),
                      part_of(projected, kKey, head).middle_rows(0, keys).transposed(), weights);
    if (causal_) hide_later_keys(weights, first_query);
    kernels::softmax_rows(weights.data, weights.data, count, keys, stride);
    return weights;
  }

  /// ∂L/∂[Q | K | V] of a head of the sequence that begins at row `first`, from ∂L/∂(A_h V_h).
  void head_backward(int head, int first, const Rows& of_mixed, const Rows& of_projected,
                     SelfAttentionScratch<Real>& mine) const {
    const Rows projected = projected_of(mine.projected, first, tokens_);
    const Rows queries = part_of(projected, kQuery, head), of_queries = part_of(of_projected, kQuery, head);
    const Rows all_keys = part_of(projected, kKey, head), of_keys = part_of(of_projected, kKey, head);
    const Rows all_values = part_of(projected, kValue, head), of_values = part_of(of_projected, kValue, head);
    // Start at the last block of queries, which has all keys, and end at the first.
    for (int query = (tokens_ - 1) / kQueries * kQueries; query >= 0; query -= kQueries) {
      const int count = std::min(kQueries, tokens_ - query);
      const bool is_first = query + count == tokens_;
      const Rows weights = weigh(projected, head, query, count, mine);
      const int keys = weights.columns;
      const Rows delta = of_head(of_mixed, head).middle_rows(query, count);
      const Rows of_weights{mine.weight_gradient.data(), count, keys, kernels::padded(tokens_)};
      kernels::multiply(weights.transposed(), delta, of_values.middle_rows(0, keys),
                        {.accumulate = !is_first});
      kernels::multiply(delta, all_values.middle_rows(0, keys).transposed(), of_weights);
      kernels::softmax_backward_rows(weights.data, of_weights.data, of_weights.data, count, keys,
                                     static_cast<int>(of_weights.row_stride));
      if (recorded_) mine.record.gradients.add_to_logits(first / tokens_, head, query, weights, of_weights);
      kernels::multiply(of_weights, all_keys.middle_rows(0, keys), of_queries.middle_rows(query, count));
      kernels::multiply(of_weights.transposed(), queries.middle_rows(query, count),
                        of_keys.middle_rows(0, keys), {.accumulate = !is_first});
    }
  }

  void record(const View<Real>& outputs, const Real* parameters, SelfAttentionScratch<Real>& mine) const {
    mine.record.start(heads_, tokens_, outputs);
    const Rows projected = projected_of(mine.projected, 0, outputs.rows);
    for (int h = 0; h < heads_; ++h) {
      const Rows queries = part_of(projected, kQuery, h), keys = part_of(projected, kKey, h);
      for (int first = 0; first < outputs.rows; first += tokens_)
        mine.record.keep_weights(first / tokens_, h, queries.middle_rows(first, tokens_),
                                 keys.middle_rows(first, tokens_), causal_);
      mine.record.keep_centres(h, part_of(projected, kValue, h), joint_of(parameters, h));
    }
  }

  int dim_;
  int heads_;
  int key_dim_;
  int tokens_;
  int head_stride_;
  bool causal_;
  bool recorded_;
  Real scale_;
  std::optional<Turns<Real>> turns_;  ///< for rotary positions
};

}  // namespace

template <class Real>
std::unique_ptr<Block<Real>> make_self_attention(const MixerSetting& setting) {
  return std::make_unique<SelfAttention<Real>>(SelfAttentionOptions{}, setting);
}

template std::unique_ptr<Block<float>> make_self_attention(const MixerSetting&);
template std::unique_ptr<Block<double>> make_self_attention(const MixerSetting&);

MixerKind self_attention_mixer() {
  MixerKind kind = mixer_kind<SelfAttentionOptions, SelfAttention>(
      "self_attention", "softmax(Q K^T / √k) V of each head (Vaswani et al. 2017)");
  kind.has_heads = kind.leaves_attention = true;
  kind.prefix = "attention";
  return kind;
}

}  // namespace moelab
