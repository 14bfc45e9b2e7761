// One pass over the samples of a mixture of ridge experts, with samples in the lanes.

#if defined(MOELAB_MIXTURE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_MIXTURE_INL_H_
#undef MOELAB_MIXTURE_INL_H_
#else
#define MOELAB_MIXTURE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Φ of every lane.
template <class T>
HWY_INLINE typename Lanes16<T>::V normal_distribution(typename Lanes16<T>::V u) {
  using L = Lanes16<T>;
  HWY_ALIGN T lanes[L::kWidth];
  hn::Store(u, L::d, lanes);
  for (T& lane : lanes) lane = std::erfc(-lane / std::numbers::sqrt2_v<T>) / 2;
  return hn::Load(L::d, lanes);
}

/// σ(u), stable for any u.
template <class T>
HWY_INLINE typename Lanes16<T>::V logistic(typename Lanes16<T>::V u) {
  using L = Lanes16<T>;
  const auto decay = exponential(hn::Neg(hn::Abs(u)));
  const auto larger = hn::Div(hn::Set(L::d, T(1)), hn::Add(hn::Set(L::d, T(1)), decay));
  return hn::IfThenElse(hn::Lt(u, hn::Zero(L::d)), hn::Mul(decay, larger), larger);
}

/// h(u) and h'(u) of an expert.
template <class T>
HWY_INLINE void through_ridge(const RidgeMixture<T>& mixture, typename Lanes16<T>::V u,
                              typename Lanes16<T>::V& value, typename Lanes16<T>::V& slope) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const V one = hn::Set(L::d, T(1));
  switch (mixture.expert) {
    case RidgeExpert::power: {
      V below = one;  // u^(power − 1)
      for (int i = 1; i < mixture.power; ++i) below = hn::Mul(below, u);
      value = hn::Mul(below, u);
      slope = hn::Mul(below, hn::Set(L::d, static_cast<T>(mixture.power)));
      return;
    }
    case RidgeExpert::relu: {
      const auto is_on = hn::Gt(u, hn::Zero(L::d));
      // NaN is not above zero, and stays NaN.
      value = hn::IfThenElse(hn::Le(u, hn::Zero(L::d)), hn::Zero(L::d), u);
      slope = hn::IfThenElseZero(is_on, one);
      return;
    }
    case RidgeExpert::sigmoid:
      value = logistic<T>(u);
      slope = hn::Mul(value, hn::Sub(one, value));
      return;
    case RidgeExpert::gelu: {
      const V below = normal_distribution<T>(u);
      const V density = hn::Mul(exponential(hn::Mul(hn::Mul(u, u), hn::Set(L::d, T(-0.5)))),
                                hn::Set(L::d, std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>));
      value = hn::Mul(u, below);
      slope = hn::MulAdd(u, density, below);
      return;
    }
  }
}

/// Σ_c coefficients[c] rows[c] at a place, with `count` rows.
template <class T>
HWY_INLINE typename Lanes16<T>::V affine_lanes(const T* coefficients, const T* rows, std::ptrdiff_t stride,
                                               int count) {
  using L = Lanes16<T>;
  typename L::V sum = hn::Zero(L::d);
  for (int c = 0; c < count; ++c)
    sum = hn::MulAdd(hn::Set(L::d, coefficients[c]), hn::LoadU(L::d, rows + c * stride), sum);
  return sum;
}

/// Gates r from scores, in place. `rates` become ∂r_j/∂γ_j ÷ r_j of a sigmoid.
template <class T>
HWY_INLINE void ridge_gates(const RidgeMixture<T>& mixture, typename Lanes16<T>::V* gates,
                            typename Lanes16<T>::V* rates) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const int k = mixture.components;
  V total = hn::Zero(L::d);
  if (mixture.gate == RidgeGate::softmax) {
    V peak = gates[0];
    for (int j = 1; j < k; ++j) peak = hn::Max(peak, gates[j]);
    V masses[kMostRidgeExperts];
    for (int j = 0; j < k; ++j) {
      masses[j] = exponential(hn::Sub(gates[j], peak));
      if (mixture.selected == 0) continue;
      // The number of scores that go before this one. Equal scores go in order.
      V before = hn::Zero(L::d);
      for (int l = 0; l < k; ++l) {
        const auto goes_before = l < j ? hn::Ge(gates[l], gates[j]) : hn::Gt(gates[l], gates[j]);
        before = hn::Add(before, hn::IfThenElseZero(goes_before, hn::Set(L::d, T(1))));
      }
      const auto is_selected = hn::Lt(before, hn::Set(L::d, static_cast<T>(mixture.selected)));
      masses[j] = hn::IfThenElseZero(is_selected, masses[j]);
    }
    for (int j = 0; j < k; ++j) total = hn::Add(total, masses[j]);
    for (int j = 0; j < k; ++j) gates[j] = masses[j];
  } else {
    for (int j = 0; j < k; ++j) {
      gates[j] = logistic<T>(gates[j]);
      rates[j] = hn::Sub(hn::Set(L::d, T(1)), gates[j]);
      total = hn::Add(total, gates[j]);
    }
    if (mixture.gate == RidgeGate::sigmoid) return;
  }
  const V inverse = hn::Div(hn::Set(L::d, T(1)), total);
  for (int j = 0; j < k; ++j) gates[j] = hn::Mul(gates[j], inverse);
}

/// One vector of samples from `at` on. Writes the residual f − y, and for every channel its slope: ∂f/∂γ_j
/// for the routed experts, then ∂f/∂u_j for all experts. Lanes beyond the samples become zero.
template <class T>
HWY_INLINE void ridge_vector(const RidgeMixture<T>& mixture, std::ptrdiff_t at, int left, T* residuals,
                             T* slopes, std::ptrdiff_t stride) {
  using L = Lanes16<T>;
  using V = typename L::V;
  const int k = mixture.components, all = k + mixture.shared, width = mixture.dim + 1;
  V gates[kMostRidgeExperts], rates[kMostRidgeExperts], values[kMostRidgeExperts], ascents[kMostRidgeExperts];
  for (int j = 0; j < k; ++j)
    gates[j] = affine_lanes(mixture.router + j * width, mixture.z + at, mixture.stride, width);
  ridge_gates(mixture, gates, rates);
  V routed = hn::Zero(L::d), output = hn::Zero(L::d);
  for (int j = 0; j < all; ++j) {
    const V u = affine_lanes(mixture.experts + j * width, mixture.x + at, mixture.stride, width);
    through_ridge(mixture, u, values[j], ascents[j]);
    if (j < k) {
      routed = hn::MulAdd(gates[j], values[j], routed);
    } else {
      output = hn::Add(output, values[j]);
    }
  }
  output = hn::Add(output, routed);
  const auto is_sample = lanes_below<T>(left, 0);
  hn::StoreU(hn::IfThenElseZero(is_sample, hn::Sub(output, hn::LoadU(L::d, mixture.y + at))), L::d,
             residuals);
  if (slopes == nullptr) return;
  for (int j = 0; j < k; ++j) {
    V slope = mixture.gate == RidgeGate::sigmoid ? values[j] : hn::Sub(values[j], routed);
    if (mixture.gate != RidgeGate::softmax) slope = hn::Mul(slope, rates[j]);
    hn::StoreU(hn::IfThenElseZero(is_sample, hn::Mul(slope, gates[j])), L::d, slopes + j * stride);
  }
  for (int j = 0; j < all; ++j) {
    const V slope = j < k ? hn::Mul(ascents[j], gates[j]) : ascents[j];
    hn::StoreU(hn::IfThenElseZero(is_sample, slope), L::d, slopes + (k + j) * stride);
  }
}

template <class T>
HWY_INLINE void multiply_lanes(const T* x, const T* y, int count, T* product) {
  using L = Lanes16<T>;
  for (int i = 0; i < count; i += L::kWidth)
    hn::StoreU(hn::Mul(hn::LoadU(L::d, x + i), hn::LoadU(L::d, y + i)), L::d, product + i);
}

template <class T>
T ridge_mixture_of(const RidgeMixture<T>& mixture) {
  using L = Lanes16<T>;
  const int k = mixture.components, width = mixture.dim + 1, channels = 2 * k + mixture.shared;
  const int count = channels * width;
  T* const residuals = mixture.scratch;
  T* const slopes = residuals + kRidgeBlock;
  T* const features = slopes + channels * kRidgeBlock;
  const bool has_slopes = mixture.gradient != nullptr || mixture.products != nullptr;
  if (mixture.gradient) std::fill_n(mixture.gradient, count, T(0));
  if (mixture.products) std::fill_n(mixture.products, count * count, T(0));
  T loss = 0;
  for (int begin = 0; begin < mixture.samples; begin += kRidgeBlock) {
    const int rows = HWY_MIN(kRidgeBlock, mixture.samples - begin), end = padded(rows);
    for (int i = 0; i < end; i += L::kWidth)
      ridge_vector(mixture, begin + i, rows - i, residuals + i, has_slopes ? slopes + i : nullptr,
                   kRidgeBlock);
    loss += dot_of(residuals, residuals, end);
    const auto inputs = [&](int channel) { return (channel < k ? mixture.z : mixture.x) + begin; };
    for (int channel = 0; mixture.products && channel < channels; ++channel) {
      for (int c = 0; c < width; ++c)
        multiply_lanes(slopes + channel * kRidgeBlock, inputs(channel) + c * mixture.stride, end,
                       features + (channel * width + c) * kRidgeBlock);
    }
    for (int a = 0; mixture.products && a < count; ++a) {
      for (int b = 0; b <= a; ++b)
        mixture.products[a * count + b] +=
            dot_of(features + a * kRidgeBlock, features + b * kRidgeBlock, end);
    }
    for (int channel = 0; mixture.gradient && channel < channels; ++channel) {
      T* const pulls = slopes + channel * kRidgeBlock;
      multiply_lanes(pulls, residuals, end, pulls);
      for (int c = 0; c < width; ++c)
        mixture.gradient[channel * width + c] += dot_of(pulls, inputs(channel) + c * mixture.stride, end);
    }
  }
  return loss;
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
