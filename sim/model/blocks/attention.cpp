#include "sim/model/blocks/attention.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"

namespace moelab {
namespace {

template <class Real>
struct AttentionScratch final : Scratch {
  AttentionState<Real> state;
  AttentionGradients<Real> gradients;
  AlignedVector<Real> queries, keys;    ///< X W_Q^T / √k and X W_K^T (H, n·s, padded(k))
  AlignedVector<Real> mean_gradient;    ///< ∂L/∂(Σ_h A_h X W_h) (n·s, padded(d))
  AlignedVector<Real> weight_gradient;  ///< gradient of A for one sequence and head (s, padded(s))
  AlignedVector<Real> query_gradient, key_gradient;  ///< gradients for one head (n·s, padded(k))
  AlignedVector<Real> centre_gradient;               ///< gradient for one head (n·s, padded(d))
};

template <class Real>
class Attention final : public Block<Real> {
 public:
  Attention(const AttentionOptions& options, int input_dim, int tokens)
      : heads_(options.heads),
        key_dim_(options.key_dim.value_or(input_dim)),
        dim_(input_dim),
        tokens_(tokens),
        causal_(options.causal),
        residual_(options.residual),
        init_scale_(options.init_scale) {}

  int output_dim() const override { return dim_; }
  std::size_t parameter_count() const override { return size(heads_) * entries(dim_, 2 * key_dim_ + dim_); }
  std::size_t block_size() const override { return size(heads_) * head_size(); }
  std::vector<ParameterGroup> groups() const override { return {{.end = block_size()}}; }
  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(dim_));
    for (int h = 0; h < heads_; ++h) {
      // Use streams that no expert uses. Experts' streams count up from 0; these count down from the largest
      // number.
      Engine engine = start.seeds.stream(Purpose::expert_init, ~static_cast<std::uint64_t>(h));
      for (const Rows& matrix :
           {query_matrix(parameters, h), key_matrix(parameters, h), value_matrix(parameters, h)}) {
        draw_matrix(engine, deviation, matrix);
      }
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> query{"attention_query", {heads_, key_dim_, dim_}, {}};
    NamedArray<Real> key{"attention_key", {heads_, key_dim_, dim_}, {}};
    NamedArray<Real> value{"attention_value_output", {heads_, dim_, dim_}, {}};
    const auto append = [](const ConstRows& matrix, std::vector<Real>& values) {
      const std::vector<Real> added = values_of(matrix);
      values.insert(values.end(), added.begin(), added.end());
    };
    for (int h = 0; h < heads_; ++h) {
      append(query_matrix(parameters, h).transposed(), query.values);
      append(key_matrix(parameters, h).transposed(), key.values);
      append(value_matrix(parameters, h), value.values);
    }
    return {std::move(query), std::move(key), std::move(value)};
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<AttentionScratch<Real>>();
    scratch->state.heads = heads_;
    return scratch;
  }
  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& signals, Scratch& scratch, const View<Real>& outputs) const override {
    MOELAB_EXPECT(pass.tokens == tokens_ && inputs.rows % tokens_ == 0 && inputs.columns == dim_);
    AttentionScratch<Real>& mine = static_cast<AttentionScratch<Real>&>(scratch);
    const int rows = inputs.rows;
    const std::size_t key_entries = size(heads_) * entries(rows, kernels::padded(key_dim_));
    reserve_entries(mine.queries, key_entries);
    reserve_entries(mine.keys, key_entries);
    reserve_entries(mine.state.centres, size(heads_) * entries(rows, kernels::padded(dim_)));
    for (int h = 0; h < heads_; ++h) {
      kernels::multiply(inputs, query_matrix(values.parameters, h),
                        rows_of_head(mine.queries, h, rows, key_dim_));
      kernels::multiply(inputs, key_matrix(values.parameters, h), rows_of_head(mine.keys, h, rows, key_dim_));
      kernels::multiply(inputs, value_matrix(values.parameters, h),
                        rows_of_head(mine.state.centres, h, rows, dim_));
    }
    kernels::scale_into(key_scale(), mine.queries.data(), mine.queries.data(), static_cast<int>(key_entries));
    weigh_tokens(rows, mine);
    const ConstRows means = kernels::padded_rows(mine.state.outputs.data(), rows, dim_);
    for (int row = 0; row < rows; ++row) {
      const Real* const own = inputs.row(row);
      const Real* const mean = means.row(row);
      Real* const output = outputs.row(row);
      for (int j = 0; j < dim_; ++j) output[j] = residual_ ? own[j] + mean[j] : mean[j];
    }
    mine.gradients.used = false;
    signals.attention = &mine.state;
    signals.attention_gradients = &mine.gradients;
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    AttentionScratch<Real>& mine = static_cast<AttentionScratch<Real>&>(scratch);
    const int rows = inputs.rows;
    const int count = static_cast<int>(entries(rows, kernels::padded(dim_)));
    reserve_entries(mine.mean_gradient, size(count));
    Real* const mean_gradient = mine.mean_gradient.data();
    std::copy_n(output_gradient, count, mean_gradient);
    if (mine.gradients.used) {
      kernels::add_scaled(Real(1), mine.gradients.outputs.data(), mean_gradient, count);
    }
    kernels::scale_into(Real(1) / static_cast<Real>(heads_), mean_gradient, mean_gradient, count);
    if (input_gradient && residual_) std::copy_n(output_gradient, count, input_gradient);
    if (input_gradient && !residual_) std::fill_n(input_gradient, count, Real(0));
    for (int h = 0; h < heads_; ++h) {
      head_backward(h, rows, mine);
      const auto through_matrix = [&](const AlignedVector<Real>& values_gradient, const ConstRows& matrix,
                                      const Rows& matrix_gradient) {
        const ConstRows delta = kernels::padded_rows(values_gradient.data(), rows, matrix.columns);
        kernels::multiply(inputs.transposed(), delta, matrix_gradient);
        if (!input_gradient) return;
        kernels::multiply(delta, matrix.transposed(), kernels::padded_rows(input_gradient, rows, dim_),
                          {.accumulate = true});
      };
      through_matrix(mine.query_gradient, query_matrix(values.parameters, h), query_matrix(gradient, h));
      through_matrix(mine.key_gradient, key_matrix(values.parameters, h), key_matrix(gradient, h));
      through_matrix(mine.centre_gradient, value_matrix(values.parameters, h), value_matrix(gradient, h));
    }
  }

 private:
  using Rows = View<Real>;
  using ConstRows = View<const Real>;

  std::size_t key_size() const { return entries(dim_, kernels::padded(key_dim_)); }
  std::size_t value_size() const { return entries(dim_, kernels::padded(dim_)); }
  std::size_t head_size() const { return 2 * key_size() + value_size(); }
  /// W_Q^T, W_K^T (d, k) and W (d, d) of a head.
  template <class T>
  View<T> query_matrix(T* parameters, int head) const {
    return kernels::padded_rows(parameters + size(head) * head_size(), dim_, key_dim_);
  }
  template <class T>
  View<T> key_matrix(T* parameters, int head) const {
    return query_matrix(parameters + key_size(), head);
  }
  template <class T>
  View<T> value_matrix(T* parameters, int head) const {
    return kernels::padded_rows(parameters + size(head) * head_size() + 2 * key_size(), dim_, dim_);
  }
  /// Rows (n·s, columns) of a head in an array (H, n·s, padded(columns)).
  template <class Values>
  auto rows_of_head(Values& values, int head, int rows, int columns) const {
    return kernels::padded_rows(values.data() + size(head) * entries(rows, kernels::padded(columns)), rows,
                                columns);
  }
  /// Entries (s, s) of a sequence and a head in an array (n, H, s, padded(s)).
  template <class Values>
  auto weights_of(Values& values, int sample, int head) const {
    return kernels::padded_rows(values.data() + entries(sample * heads_ + head, weights_size()), tokens_,
                                tokens_);
  }
  int weights_size() const { return tokens_ * kernels::padded(tokens_); }
  Real key_scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(key_dim_))); }

  /// Computes A_h and U = (1/H) Σ_h A_h (centres of h), sequence by sequence.
  void weigh_tokens(int rows, AttentionScratch<Real>& mine) const {
    const int samples = rows / tokens_;
    const std::size_t output_entries = entries(rows, kernels::padded(dim_));
    reserve_entries(mine.state.weights, entries(samples * heads_, weights_size()));
    reserve_entries(mine.state.log_weights, entries(samples * heads_, weights_size()));
    reserve_entries(mine.state.outputs, output_entries);
    const Rows outputs = kernels::padded_rows(mine.state.outputs.data(), rows, dim_);
    for (int i = 0; i < samples; ++i) {
      const int first = i * tokens_;
      for (int h = 0; h < heads_; ++h) {
        const ConstRows queries = rows_of_head(mine.queries, h, rows, key_dim_).middle_rows(first, tokens_);
        const ConstRows keys = rows_of_head(mine.keys, h, rows, key_dim_).middle_rows(first, tokens_);
        const ConstRows centres = rows_of_head(mine.state.centres, h, rows, dim_).middle_rows(first, tokens_);
        const Rows logits = weights_of(mine.state.log_weights, i, h);
        const Rows weights = weights_of(mine.state.weights, i, h);
        kernels::multiply(queries, keys.transposed(), logits);
        if (causal_) hide_later_keys(logits);
        kernels::log_softmax_rows(logits.data, weights.data, tokens_, tokens_, kernels::padded(tokens_));
        kernels::multiply(weights, centres, outputs.middle_rows(first, tokens_), {.accumulate = h > 0});
      }
    }
    kernels::scale_into(Real(1) / static_cast<Real>(heads_), outputs.data, outputs.data,
                        static_cast<int>(output_entries));
  }

  /// Computes ∂L/∂(X W_Q^T), ∂L/∂(X W_K^T) and ∂L/∂(X W) of one head. With logits Z and T = A ∘ ∂L/∂A +
  /// ∂L/∂log A: ∂L/∂Z = T − A (row sums of T).
  void head_backward(int head, int rows, AttentionScratch<Real>& mine) const {
    const std::size_t key_entries = entries(rows, kernels::padded(key_dim_));
    reserve_entries(mine.weight_gradient, size(weights_size()));
    reserve_entries(mine.query_gradient, key_entries);
    reserve_entries(mine.key_gradient, key_entries);
    reserve_entries(mine.centre_gradient, entries(rows, kernels::padded(dim_)));
    const Rows delta = kernels::padded_rows(mine.weight_gradient.data(), tokens_, tokens_);
    for (int i = 0; i < rows / tokens_; ++i) {
      // `columns` of this sequence's rows.
      const auto of_sequence = [&](AlignedVector<Real>& values, int columns, int at_head) {
        return rows_of_head(values, at_head, rows, columns).middle_rows(i * tokens_, tokens_);
      };
      const ConstRows upstream = of_sequence(mine.mean_gradient, dim_, 0);
      const ConstRows weights = weights_of(mine.state.weights, i, head);
      kernels::multiply(upstream, of_sequence(mine.state.centres, dim_, head).transposed(), delta);
      kernels::softmax_backward_rows(weights.data, delta.data, delta.data, tokens_, tokens_,
                                     kernels::padded(tokens_));
      const bool by_router = mine.gradients.is_touched(i, head);
      if (by_router) {
        mine.gradients.add_to_logits(i, head, 0, weights, delta);
        std::copy_n(mine.gradients.centres_of(i, head), entries(tokens_, kernels::padded(dim_)),
                    of_sequence(mine.centre_gradient, dim_, 0).data);
      }
      kernels::multiply(delta, of_sequence(mine.keys, key_dim_, head),
                        of_sequence(mine.query_gradient, key_dim_, 0));
      kernels::multiply(delta.transposed(), of_sequence(mine.queries, key_dim_, head),
                        of_sequence(mine.key_gradient, key_dim_, 0));
      kernels::multiply(weights.transposed(), upstream, of_sequence(mine.centre_gradient, dim_, 0),
                        {.accumulate = by_router});
    }
    // The keys' gradient needs no further factor, since the queries were already divided by √k.
    kernels::scale_into(key_scale(), mine.query_gradient.data(), mine.query_gradient.data(),
                        static_cast<int>(key_entries));
  }

  int heads_;
  int key_dim_;
  int dim_;
  int tokens_;
  bool causal_;
  bool residual_;
  double init_scale_;
};

}  // namespace

void AttentionOptions::bind(Fields& fields) {
  fields.required().add("heads", heads, between(1, 1024), "heads H, averaged");
  fields.add("key_dim", key_dim, between(1, 65536),
             "width k of queries and keys (default: the width of the rows)");
  fields.add("causal", causal, "a token attends to itself and those before it");
  fields.add("residual", residual, "the mixture reads X + MHA(X) instead of MHA(X)");
  fields.add("init_scale", init_scale, at_least(0), "entries of all matrices start N(0, init_scale² / d)");
}

template <class Real>
std::unique_ptr<Block<Real>> make_attention(const AttentionOptions& options, int input_dim, int tokens) {
  return std::make_unique<Attention<Real>>(options, input_dim, tokens);
}

template std::unique_ptr<Block<float>> make_attention(const AttentionOptions&, int, int);
template std::unique_ptr<Block<double>> make_attention(const AttentionOptions&, int, int);

template <class Real>
View<Real> AttentionRecord<Real>::weights_of(AlignedVector<Real>& values, int sample, int head) const {
  const std::size_t place = entries(sample * state.heads + head, tokens_ * kernels::padded(tokens_));
  return kernels::padded_rows(values.data() + place, tokens_, tokens_);
}

template <class Real>
View<Real> AttentionRecord<Real>::centres_of(AlignedVector<Real>& values, int head) const {
  return kernels::padded_rows(values.data() + size(head) * entries(rows_, kernels::padded(dim_)), rows_,
                              dim_);
}

template <class Real>
void AttentionRecord<Real>::start(int heads, int tokens, const View<Real>& outputs) {
  rows_ = outputs.rows;
  tokens_ = tokens;
  dim_ = outputs.columns;
  state.heads = heads;
  gradients.used = false;
  const int stride = kernels::padded(dim_);
  reserve_entries(state.weights, entries(rows_ * heads, kernels::padded(tokens)));
  reserve_entries(state.log_weights, entries(rows_ * heads, kernels::padded(tokens)));
  reserve_entries(state.centres, entries(rows_ * heads, stride));
  reserve_entries(state.outputs, entries(rows_, stride));
  for (int row = 0; row < rows_; ++row) {
    Real* const place = state.outputs.data() + entries(row, stride);
    std::copy_n(outputs.row(row), dim_, place);
    std::fill(place + dim_, place + stride, Real(0));
  }
}

template <class Real>
void AttentionRecord<Real>::keep_weights(int sample, int head, const View<const Real>& queries,
                                         const View<const Real>& keys, bool causal) {
  const View<Real> logits = weights_of(state.log_weights, sample, head);
  kernels::multiply(queries, keys.transposed(), logits);
  if (causal) hide_later_keys(logits);
  kernels::log_softmax_rows(logits.data, weights_of(state.weights, sample, head).data, tokens_, tokens_,
                            kernels::padded(tokens_));
}

template <class Real>
void AttentionRecord<Real>::keep_centres(int head, const View<const Real>& values,
                                         const View<const Real>& joint) {
  const View<Real> centres = centres_of(state.centres, head);
  kernels::multiply(values, joint, centres);
  kernels::scale_into(scale(), centres.data, centres.data,
                      static_cast<int>(entries(rows_, kernels::padded(dim_))));
}

template <class Real>
const Real* AttentionRecord<Real>::with_own_outputs(const Real* output_gradient) {
  if (!gradients.used) return output_gradient;
  const std::size_t count = entries(rows_, kernels::padded(dim_));
  reserve_entries(upstream_, count);
  std::copy_n(output_gradient, count, upstream_.data());
  kernels::add_scaled(Real(1), gradients.outputs.data(), upstream_.data(), static_cast<int>(count));
  return upstream_.data();
}

template <class Real>
void AttentionRecord<Real>::add_to_values(int head, const View<const Real>& values,
                                          const View<const Real>& joint, const View<Real>& of_values,
                                          const View<Real>& of_joint) {
  for (int sample = 0; sample * tokens_ < rows_; ++sample) {
    if (!gradients.is_touched(sample, head)) continue;
    const View<Real> of_centres = kernels::padded_rows(gradients.centres_of(sample, head), tokens_, dim_);
    kernels::scale_into(scale(), of_centres.data, of_centres.data,
                        static_cast<int>(entries(tokens_, kernels::padded(dim_))));
    const int first = sample * tokens_;
    kernels::multiply(of_centres, joint.transposed(), of_values.middle_rows(first, tokens_),
                      {.accumulate = true});
    kernels::multiply(values.middle_rows(first, tokens_).transposed(), of_centres, of_joint,
                      {.accumulate = true});
  }
}

template class AttentionRecord<float>;
template class AttentionRecord<double>;

}  // namespace moelab
