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

/// Weights of a batch are kept for the backward pass up to this size. Larger ones are computed again, because
/// they would be read from memory.
constexpr std::size_t kMostKeptBytes = std::size_t{4} << 20;

template <class Real>
struct SelfAttentionScratch final : Scratch {
  AlignedVector<Real> projected, projected_gradient;  ///< [Q | K | V] (n·s, 3 H padded(k)), Q / √k
  AlignedVector<Real> mixed, mixed_gradient;          ///< A_h V_h (n·s, H padded(k))
  AlignedVector<Real> weights;                        ///< A_h (n, H, s, padded(s)), or of a block of queries
  bool has_all_weights = false;                       ///< of the last forward pass
  AlignedVector<Real> weight_gradient;                ///< of a block of queries (kQueries, padded(s))
  AttentionRecord<Real> record;                       ///< for routers, if it is kept
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
        draw_matrix(engine, deviation, part_of(parameters, part, h, 0, dim_));
      draw_matrix(engine, deviation, output_matrix(parameters).middle_rows(h * head_stride_, key_dim_));
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all;
    for (const auto& [name, part] :
         {std::pair{"query", kQuery}, std::pair{"key", kKey}, std::pair{"value", kValue}}) {
      NamedArray<Real>& array = all.emplace_back(NamedArray<Real>{name, {dim_, dim_}, {}});
      for (int h = 0; h < heads_; ++h) {
        const std::vector<Real> columns = values_of(part_of(parameters, part, h, 0, dim_).transposed());
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
    Real* const projected = mine.projected.data();
    kernels::multiply(inputs, input_matrix(values.parameters),
                      Rows{projected, rows, projected_dim(), projected_dim()});
    turn(projected, rows, Real(1));
    for (int row = 0; row < rows; ++row) {
      Real* const queries = projected + entries(row, projected_dim());
      kernels::scale_into(scale_, queries, queries, mixed_dim());
    }
    const std::size_t all_weights = entries(rows * heads_, kernels::padded(tokens_));
    mine.has_all_weights = pass.keep && all_weights * sizeof(Real) <= kMostKeptBytes;
    reserve_entries(mine.weights,
                    mine.has_all_weights ? all_weights : entries(kQueries, kernels::padded(tokens_)));
    for (int first = 0; first < rows; first += tokens_) {
      for (int h = 0; h < heads_; ++h) {
        for (int query = 0; query < tokens_; query += kQueries) {
          const int count = std::min(kQueries, tokens_ - query);
          const Rows weights = weights_of(h, first, query, count, mine);
          weigh(projected, h, first, query, weights);
          kernels::multiply(weights,
                            ConstRows(part_of(projected, kValue, h, first, keys_before(query + count))),
                            mixed_of(mine.mixed.data(), h, first + query, count));
        }
      }
    }
    kernels::multiply(rows_of<const Real>(mine.mixed.data(), rows, mixed_dim()),
                      output_matrix(values.parameters), outputs);
    if (!recorded_) return;
    record(outputs, values.parameters, mine);
    signals.attention = &mine.record.state;
    signals.attention_gradients = &mine.record.gradients;
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    auto& mine = static_cast<SelfAttentionScratch<Real>&>(scratch);
    const int rows = inputs.rows, stride = kernels::padded(tokens_);
    reserve_entries(mine.mixed_gradient, entries(rows, mixed_dim()));
    reserve_entries(mine.projected_gradient, entries(rows, projected_dim()));
    reserve_entries(mine.weight_gradient, entries(kQueries, stride));
    const ConstRows upstream = kernels::padded_rows(
        recorded_ ? mine.record.with_own_outputs(output_gradient) : output_gradient, rows, dim_);
    const ConstRows mixed = rows_of<const Real>(mine.mixed.data(), rows, mixed_dim());
    kernels::multiply(mixed.transposed(), upstream, output_matrix(gradient));
    kernels::multiply(upstream, output_matrix(values.parameters).transposed(),
                      rows_of(mine.mixed_gradient.data(), rows, mixed_dim()));
    const Real* const projected = mine.projected.data();
    Real* const of_projected = mine.projected_gradient.data();
    for (int first = 0; first < rows; first += tokens_) {
      for (int h = 0; h < heads_; ++h) {
        // Start at the last block of queries, which has all keys, and end at the first.
        for (int query = (tokens_ - 1) / kQueries * kQueries; query >= 0; query -= kQueries) {
          const int count = std::min(kQueries, tokens_ - query), keys = keys_before(query + count);
          const bool is_first = query + count == tokens_;
          const Rows weights = weights_of(h, first, query, count, mine);
          if (!mine.has_all_weights) weigh(projected, h, first, query, weights);
          const ConstRows delta = mixed_of(mine.mixed_gradient.data(), h, first + query, count);
          const Rows of_weights{mine.weight_gradient.data(), count, keys, stride};
          kernels::multiply(weights.transposed(), delta, part_of(of_projected, kValue, h, first, keys),
                            {.accumulate = !is_first});
          kernels::multiply(delta, part_of(projected, kValue, h, first, keys).transposed(), of_weights);
          kernels::softmax_backward_rows(weights.data, of_weights.data, of_weights.data, count, keys, stride);
          if (recorded_) mine.record.gradients.add_to_logits(first / tokens_, h, query, weights, of_weights);
          kernels::multiply(of_weights, part_of(projected, kKey, h, first, keys),
                            part_of(of_projected, kQuery, h, first + query, count));
          kernels::multiply(of_weights.transposed(), part_of(projected, kQuery, h, first + query, count),
                            part_of(of_projected, kKey, h, first, keys), {.accumulate = !is_first});
        }
      }
    }
    for (int h = 0; recorded_ && h < heads_; ++h) {
      mine.record.add_to_values(h, part_of(projected, kValue, h, 0, rows),
                                output_matrix(values.parameters).middle_rows(h * head_stride_, key_dim_),
                                part_of(of_projected, kValue, h, 0, rows),
                                output_matrix(gradient).middle_rows(h * head_stride_, key_dim_));
    }
    for (int row = 0; row < rows; ++row) {
      Real* const queries = of_projected + entries(row, projected_dim());
      kernels::scale_into(scale_, queries, queries, mixed_dim());
    }
    turn(of_projected, rows, Real(-1));
    const ConstRows delta = rows_of<const Real>(of_projected, rows, projected_dim());
    kernels::multiply(inputs.transposed(), delta, input_matrix(gradient));
    if (!input_gradient) return;
    kernels::multiply(delta, input_matrix(values.parameters).transposed(),
                      kernels::padded_rows(input_gradient, rows, dim_));
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
  /// Columns of a head in [Q | K | V] of a sequence that begins at row `first`, or in W_Q, W_K, W_V.
  template <class T>
  View<T> part_of(T* projected, Part part, int head, int first, int rows) const {
    return {projected + entries(first, projected_dim()) + (part * heads_ + head) * head_stride_, rows,
            key_dim_, projected_dim()};
  }
  template <class T>
  View<T> mixed_of(T* mixed, int head, int first, int rows) const {
    return {mixed + entries(first, mixed_dim()) + head * head_stride_, rows, key_dim_, mixed_dim()};
  }

  /// Rotates Q and K of all rows by the angles of their places, or back.
  void turn(Real* projected, int rows, Real direction) const {
    if (!turns_) return;
    for (int row = 0; row < rows; ++row) {
      for (int part = 0; part < 2 * heads_; ++part)
        turns_->turn(row % tokens_, direction,
                     projected + entries(row, projected_dim()) + part * head_stride_);
    }
  }

  /// Keys that a block of queries up to this query reads.
  int keys_before(int end_query) const { return causal_ ? end_query : tokens_; }
  /// The place of A (queries, keys) of the queries from `first_query` on.
  Rows weights_of(int head, int first, int first_query, int queries, SelfAttentionScratch<Real>& mine) const {
    const int stride = kernels::padded(tokens_);
    const std::size_t row = mine.has_all_weights ? size(first * heads_ + head * tokens_ + first_query) : 0;
    return {mine.weights.data() + row * size(stride), queries, keys_before(first_query + queries), stride};
  }
  void weigh(const Real* projected, int head, int first, int first_query, const Rows& weights) const {
    kernels::multiply(part_of(projected, kQuery, head, first + first_query, weights.rows),
                      part_of(projected, kKey, head, first, weights.columns).transposed(), weights);
    if (causal_) hide_later_keys(weights, first_query);
    kernels::softmax_rows(weights.data, weights.data, weights.rows, weights.columns,
                          static_cast<int>(weights.row_stride));
  }

  void record(const View<Real>& outputs, const Real* parameters, SelfAttentionScratch<Real>& mine) const {
    const int rows = outputs.rows;
    const Real* const projected = mine.projected.data();
    mine.record.start(heads_, tokens_, outputs);
    for (int h = 0; h < heads_; ++h) {
      for (int first = 0; first < rows; first += tokens_)
        mine.record.keep_weights(first / tokens_, h, part_of(projected, kQuery, h, first, tokens_),
                                 part_of(projected, kKey, h, first, tokens_), causal_);
      mine.record.keep_centres(h, part_of(projected, kValue, h, 0, rows),
                               output_matrix(parameters).middle_rows(h * head_stride_, key_dim_));
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
