#include "sim/model/attention_block.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/log_softmax.h"

namespace moelab {

template <class Real>
AttentionBlock<Real>::AttentionBlock(const Json& spec, const Layout& layout)
    : heads_(spec.at("heads")),
      key_dim_(spec.value("key_dim", layout.input_dim)),
      dim_(layout.input_dim),
      tokens_(layout.tokens),
      causal_(spec.at("causal")),
      residual_(spec.at("residual")),
      init_scale_(spec.at("init_scale")) {
  if (layout.image.size() > 0) {
    throw UserError(
        "model.attention",
        "given, but an image leads the input; needs rows that router and experts both read whole");
  }
  state_.heads = heads_;
}

template <class Real>
int AttentionBlock<Real>::key_stride() const {
  return kernels::padded(key_dim_);
}
template <class Real>
int AttentionBlock<Real>::stride() const {
  return kernels::padded(dim_);
}
template <class Real>
int AttentionBlock<Real>::weight_stride() const {
  return kernels::padded(tokens_);
}

template <class Real>
std::size_t AttentionBlock<Real>::parameter_count() const {
  return size(heads_) * entries(dim_, 2 * key_dim_ + dim_);
}

template <class Real>
void AttentionBlock<Real>::initialize(const Seeds& seeds, Real* parameters) const {
  std::fill_n(parameters, block_size(), Real(0));
  const double deviation = init_scale_ / std::sqrt(static_cast<double>(dim_));
  for (int h = 0; h < heads_; ++h) {
    // Streams that no expert uses: those count up from 0, these down from the largest number.
    Engine engine = seeds.stream(Purpose::expert_init, ~static_cast<std::uint64_t>(h));
    Real* place = parameters + size(h) * head_size();
    for (const int columns : {key_dim_, key_dim_, dim_}) {
      for (int row = 0; row < dim_; ++row) {
        for (int j = 0; j < columns; ++j) place[j] = static_cast<Real>(deviation * draw_normal(engine));
        place += kernels::padded(columns);
      }
    }
  }
}

template <class Real>
void AttentionBlock<Real>::forward(const Real* x, int rows, const Real* parameters, Real* u) {
  const std::size_t key_rows = entries(rows, key_stride()), value_rows = entries(rows, stride());
  reserve_entries(queries_, size(heads_) * key_rows);
  reserve_entries(keys_, size(heads_) * key_rows);
  reserve_entries(state_.centres, size(heads_) * value_rows);
  kernels::Product<Real> product;
  product.m = rows;
  product.k = dim_;
  product.a = x;
  product.a_row = dim_;
  for (int h = 0; h < heads_; ++h) {
    product.n = key_dim_;
    product.b = parameters + size(h) * head_size();
    product.b_row = product.c_row = key_stride();
    product.c = queries_.data() + size(h) * key_rows;
    kernels::multiply(product);
    product.b += key_size();
    product.c = keys_.data() + size(h) * key_rows;
    kernels::multiply(product);
    product.n = dim_;
    product.b += key_size();
    product.b_row = product.c_row = stride();
    product.c = state_.centres.data() + size(h) * value_rows;
    kernels::multiply(product);
  }
  const Real scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(key_dim_)));
  kernels::scale_into(scale, queries_.data(), queries_.data(), static_cast<int>(size(heads_) * key_rows));
  weigh_tokens(rows);
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    const Real* const output = state_.outputs.data() + entries(row, stride());
    const Real* const own = x + row * dim_;
    for (int j = 0; j < dim_; ++j) u[row * dim_ + j] = residual_ ? own[j] + output[j] : output[j];
  }
}

/// A_h and U = (1/H) Σ_h A_h (centres of h), sequence by sequence.
template <class Real>
void AttentionBlock<Real>::weigh_tokens(int rows) {
  const int samples = rows / tokens_;
  const std::size_t all_weights = size(samples) * size(heads_) * weights_size();
  reserve_entries(state_.weights, all_weights);
  reserve_entries(state_.log_weights, all_weights);
  reserve_entries(state_.outputs, entries(rows, stride()));
  for (int i = 0; i < samples; ++i) {
    for (int h = 0; h < heads_; ++h) {
      const std::size_t first_row = size(h) * size(rows) + size(i) * size(tokens_);
      const std::size_t place = (size(i) * size(heads_) + size(h)) * weights_size();
      Real* const logits = state_.log_weights.data() + place;
      kernels::Product<Real> product;
      product.m = product.n = tokens_;
      product.k = key_dim_;
      product.a = queries_.data() + first_row * size(key_stride());
      product.a_row = product.b_row = key_stride();
      product.b = keys_.data() + first_row * size(key_stride());
      product.b_transposed = true;
      product.c = logits;
      product.c_row = weight_stride();
      kernels::multiply(product);
      for (std::ptrdiff_t row = 0; causal_ && row + 1 < tokens_; ++row) {
        std::fill(logits + row * weight_stride() + row + 1, logits + row * weight_stride() + tokens_,
                  static_cast<Real>(kMaskedLogWeight));
      }
      log_softmax_rows(logits, state_.weights.data() + place, tokens_, tokens_, weight_stride());
      kernels::Product<Real> mean;
      mean.m = mean.k = tokens_;
      mean.n = dim_;
      mean.a = state_.weights.data() + place;
      mean.a_row = weight_stride();
      mean.b = state_.centres.data() + first_row * size(stride());
      mean.b_row = mean.c_row = stride();
      mean.c = state_.outputs.data() + entries(i * tokens_, stride());
      if (h > 0) mean.start = kernels::Start::accumulate;
      kernels::multiply(mean);
    }
  }
  kernels::scale_into(Real(1) / static_cast<Real>(heads_), state_.outputs.data(), state_.outputs.data(),
                      static_cast<int>(entries(rows, stride())));
}

template <class Real>
AttentionGradients<Real>& AttentionBlock<Real>::cleared_gradients(int rows) {
  const auto clear = [](AlignedVector<Real>& values, std::size_t count) {
    reserve_entries(values, count);
    std::fill_n(values.begin(), count, Real(0));
  };
  clear(gradients_.log_weights, size(rows / tokens_) * size(heads_) * weights_size());
  clear(gradients_.centres, size(heads_) * entries(rows, stride()));
  clear(gradients_.outputs, entries(rows, stride()));
  return gradients_;
}

template <class Real>
void AttentionBlock<Real>::backward(const Real* x, int rows, const Real* parameters,
                                    const Real* output_gradient,
                                    const AttentionGradients<Real>* router_gradients, Real* gradient,
                                    Real* input_gradient) {
  const int count = static_cast<int>(entries(rows, stride()));
  reserve_entries(mean_gradient_, size(count));
  std::copy_n(output_gradient, count, mean_gradient_.data());
  if (router_gradients) {
    kernels::add_scaled(Real(1), router_gradients->outputs.data(), mean_gradient_.data(), count);
  }
  kernels::scale_into(Real(1) / static_cast<Real>(heads_), mean_gradient_.data(), mean_gradient_.data(),
                      count);
  if (input_gradient) {
    if (!residual_) {
      std::fill_n(input_gradient, count, Real(0));
    } else if (input_gradient != output_gradient) {
      std::copy_n(output_gradient, count, input_gradient);
    }
  }
  for (int h = 0; h < heads_; ++h) {
    head_backward(h, rows, router_gradients);
    std::size_t place = size(h) * head_size();
    const auto through_matrix = [&](const AlignedVector<Real>& delta, int columns) {
      kernels::Product<Real> product;
      product.m = dim_;
      product.n = columns;
      product.k = rows;
      product.a = x;
      product.a_row = 1;
      product.a_column = dim_;
      product.b = delta.data();
      product.b_row = product.c_row = kernels::padded(columns);
      product.c = gradient + place;
      kernels::multiply(product);
      if (input_gradient) {
        kernels::Product<Real> back;
        back.m = rows;
        back.n = dim_;
        back.k = columns;
        back.a = delta.data();
        back.a_row = back.b_row = kernels::padded(columns);
        back.b = parameters + place;
        back.b_transposed = true;
        back.c = input_gradient;
        back.c_row = stride();
        back.start = kernels::Start::accumulate;
        kernels::multiply(back);
      }
      place += entries(dim_, kernels::padded(columns));
    };
    through_matrix(query_gradient_, key_dim_);
    through_matrix(key_gradient_, key_dim_);
    through_matrix(centre_gradient_, dim_);
  }
}

/// ∂L/∂(X W_Q^T), ∂L/∂(X W_K^T) and ∂L/∂(X W) of one head. With Z the logits and T = A ∘ ∂L/∂A + ∂L/∂log A:
/// ∂L/∂Z = T − A (row sums of T).
template <class Real>
void AttentionBlock<Real>::head_backward(int head, int rows,
                                         const AttentionGradients<Real>* router_gradients) {
  reserve_entries(weight_gradient_, weights_size());
  reserve_entries(query_gradient_, entries(rows, key_stride()));
  reserve_entries(key_gradient_, entries(rows, key_stride()));
  reserve_entries(centre_gradient_, entries(rows, stride()));
  const std::size_t first = size(head) * size(rows);
  if (router_gradients) {
    std::copy_n(router_gradients->centres.data() + first * size(stride()), entries(rows, stride()),
                centre_gradient_.data());
  }
  for (int i = 0; i < rows / tokens_; ++i) {
    const std::ptrdiff_t row = i * tokens_;
    const std::size_t place = (size(i) * size(heads_) + size(head)) * weights_size();
    const Real* const weights = state_.weights.data() + place;
    Real* const delta = weight_gradient_.data();
    kernels::Product<Real> product;
    product.m = product.n = tokens_;
    product.k = dim_;
    product.a = mean_gradient_.data() + entries(row, stride());
    product.a_row = product.b_row = stride();
    product.b = state_.centres.data() + (first + size(row)) * size(stride());
    product.b_transposed = true;
    product.c = delta;
    product.c_row = weight_stride();
    kernels::multiply(product);
    kernels::softmax_backward_rows(weights, delta, delta, tokens_, tokens_, weight_stride());
    for (std::ptrdiff_t t = 0; router_gradients && t < tokens_; ++t) {
      const Real* const own = router_gradients->log_weights.data() + place + size(t * weight_stride());
      Real sum = 0;
      for (int j = 0; j < tokens_; ++j) sum += own[j];
      for (int j = 0; j < tokens_; ++j) {
        delta[t * weight_stride() + j] += own[j] - weights[t * weight_stride() + j] * sum;
      }
    }
    kernels::Product<Real> query;
    query.m = query.k = tokens_;
    query.n = key_dim_;
    query.a = delta;
    query.a_row = weight_stride();
    query.b = keys_.data() + (first + size(row)) * size(key_stride());
    query.b_row = query.c_row = key_stride();
    query.c = query_gradient_.data() + entries(row, key_stride());
    kernels::multiply(query);
    kernels::Product<Real> key = query;
    key.a_row = 1;
    key.a_column = weight_stride();
    key.b = queries_.data() + (first + size(row)) * size(key_stride());
    key.c = key_gradient_.data() + entries(row, key_stride());
    kernels::multiply(key);
    kernels::Product<Real> centre = key;
    centre.n = dim_;
    centre.a = weights;
    centre.b = mean_gradient_.data() + entries(row, stride());
    centre.b_row = centre.c_row = stride();
    centre.c = centre_gradient_.data() + entries(row, stride());
    if (router_gradients) centre.start = kernels::Start::accumulate;
    kernels::multiply(centre);
  }
  // The keys' gradient met queries that were already divided by √k.
  kernels::scale_into(static_cast<Real>(1 / std::sqrt(static_cast<double>(key_dim_))), query_gradient_.data(),
                      query_gradient_.data(), static_cast<int>(entries(rows, key_stride())));
}

template <class Real>
std::vector<NamedArray<Real>> AttentionBlock<Real>::arrays(const Real* parameters) const {
  NamedArray<Real> query{"attention_query", {heads_, key_dim_, dim_}, {}};
  NamedArray<Real> key{"attention_key", {heads_, key_dim_, dim_}, {}};
  NamedArray<Real> value{"attention_value_output", {heads_, dim_, dim_}, {}};
  for (int h = 0; h < heads_; ++h) {
    const Real* const first = parameters + size(h) * head_size();
    for (int k = 0; k < key_dim_; ++k) {
      for (int j = 0; j < dim_; ++j) {
        query.values.push_back(first[entries(j, key_stride()) + size(k)]);
        key.values.push_back(first[key_size() + entries(j, key_stride()) + size(k)]);
      }
    }
    for (int j = 0; j < dim_; ++j) {
      const Real* const row = first + 2 * key_size() + entries(j, stride());
      value.values.insert(value.values.end(), row, row + dim_);
    }
  }
  return {std::move(query), std::move(key), std::move(value)};
}

const Shape& attention_shape() {
  static const Shape shape = Shape::object({
      {"heads", Shape::count(1, 1024), "heads H, averaged"},
      {"key_dim", Shape::count(1, 65536), "width k of queries and keys (default: that of the rows)",
       kOptional},
      {"causal", Shape::boolean(), "a token attends to itself and those before it", false},
      {"residual", Shape::boolean(), "the mixture reads X + MHA(X) instead of MHA(X)", false},
      {"init_scale", Shape::real_at_least(0), "entries of all matrices start N(0, init_scale² / d)", 1.0},
  });
  return shape;
}

template class AttentionBlock<float>;
template class AttentionBlock<double>;

}  // namespace moelab
