#include "sim/model/blocks/attention_record.h"

#include <algorithm>

#include "sim/base/kernels/multiply.h"

namespace moelab {

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
