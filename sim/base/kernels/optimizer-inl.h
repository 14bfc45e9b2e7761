// Optimizer steps over flat arrays of parameters.

#if defined(MOELAB_OPTIMIZER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOELAB_OPTIMIZER_INL_H_
#undef MOELAB_OPTIMIZER_INL_H_
#else
#define MOELAB_OPTIMIZER_INL_H_
#endif

#include <hwy/highway.h>

#include <optional>

#include "sim/base/kernels/lanes-inl.h"
#include "sim/base/kernels/subnormals.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void sgd_step_of(const SgdStep<T>& step, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT velocity,
                 T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  const SubnormalsAsZero as_zero;
  const typename L::V momentum = hn::Set(L::d, step.momentum);
  const typename L::V decay = hn::Set(L::d, step.weight_decay);
  const typename L::V rate = hn::Set(L::d, -step.learning_rate);
  for (std::size_t j = 0; j < count; j += L::kWidth) {
    const typename L::V w = hn::LoadU(L::d, parameters + j);
    const typename L::V g = hn::MulAdd(decay, w, hn::LoadU(L::d, gradient + j));
    const typename L::V v = hn::MulAdd(momentum, hn::LoadU(L::d, velocity + j), g);
    hn::StoreU(v, L::d, velocity + j);
    hn::StoreU(hn::MulAdd(rate, v, w), L::d, parameters + j);
  }
}

// Without decay v does not wait for w, and eight chains keep both units busy: 12,544 weights take 14 µs over
// 34 steps. With waiting and four chains they take 32 µs.
template <class T, bool kDecays>
void sgd_idle_steps_with(const SgdStep<T>& step, const T* HWY_RESTRICT rates, int steps,
                         T* HWY_RESTRICT velocity, T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  using V = typename L::V;
  constexpr int kGroup = 8;  // independent chains
  const V momentum = hn::Set(L::d, step.momentum);
  const V decay = hn::Set(L::d, step.weight_decay);
  const V zero = hn::Zero(L::d);
  for (std::size_t start = 0; start < count; start += kGroup * L::kWidth) {
    // The last group may be short, because count is only a multiple of 16 entries.
    const int group =
        static_cast<int>(HWY_MIN(static_cast<std::size_t>(kGroup), (count - start) / L::kWidth));
    V v[kGroup], w[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      const std::size_t at = start + static_cast<std::size_t>(i < group ? i : 0) * L::kWidth;
      v[i] = hn::LoadU(L::d, velocity + at);
      w[i] = hn::LoadU(L::d, parameters + at);
    }
    for (int s = 0; s < steps; ++s) {
      const V rate = hn::Set(L::d, -rates[s]);
      for (int i = 0; i < kGroup; ++i) {
        v[i] = hn::MulAdd(momentum, v[i], kDecays ? hn::MulAdd(decay, w[i], zero) : zero);
        w[i] = hn::MulAdd(rate, v[i], w[i]);
      }
    }
    for (int i = 0; i < group; ++i) {
      const std::size_t at = start + static_cast<std::size_t>(i) * L::kWidth;
      hn::StoreU(v[i], L::d, velocity + at);
      hn::StoreU(w[i], L::d, parameters + at);
    }
  }
}

template <class T>
void sgd_idle_steps_of(const SgdStep<T>& step, const T* rates, int steps, T* velocity, T* parameters,
                       std::size_t count) {
  const SubnormalsAsZero as_zero;
  step.weight_decay == 0 ? sgd_idle_steps_with<T, false>(step, rates, steps, velocity, parameters, count)
                         : sgd_idle_steps_with<T, true>(step, rates, steps, velocity, parameters, count);
}

template <class T>
void adam_step_of(const AdamStep<T>& step, const T* HWY_RESTRICT gradient, T* HWY_RESTRICT first,
                  T* HWY_RESTRICT second, T* HWY_RESTRICT parameters, std::size_t count) {
  using L = Lanes16<T>;
  using V = typename L::V;
  // The root of a subnormal number is below 1.1e-19 in float, so it does not change the sum with such an ε.
  constexpr double kLeastEpsilon = 1e-11;
  std::optional<SubnormalsAsZero> as_zero;
  if (step.epsilon >= kLeastEpsilon) as_zero.emplace();
  const V beta1 = hn::Set(L::d, step.beta1), rest1 = hn::Set(L::d, T(1) - step.beta1);
  const V beta2 = hn::Set(L::d, step.beta2), rest2 = hn::Set(L::d, T(1) - step.beta2);
  const V epsilon = hn::Set(L::d, step.epsilon), size = hn::Set(L::d, -step.step_size);
  const V second_scale = hn::Set(L::d, step.second_moment_scale);
  const V coupled = hn::Set(L::d, step.decoupled ? T(0) : step.weight_decay);
  const V shrink = hn::Set(L::d, step.decoupled ? T(1) - step.learning_rate * step.weight_decay : T(1));
  for (std::size_t j = 0; j < count; j += L::kWidth) {
    V w = hn::LoadU(L::d, parameters + j);
    const V g = hn::MulAdd(coupled, w, hn::LoadU(L::d, gradient + j));
    w = hn::Mul(w, shrink);
    const V m = hn::MulAdd(beta1, hn::LoadU(L::d, first + j), hn::Mul(rest1, g));
    const V v = hn::MulAdd(beta2, hn::LoadU(L::d, second + j), hn::Mul(rest2, hn::Mul(g, g)));
    hn::StoreU(m, L::d, first + j);
    hn::StoreU(v, L::d, second + j);
    const V denominator = hn::MulAdd(hn::Sqrt(v), second_scale, epsilon);
    hn::StoreU(hn::MulAdd(size, hn::Div(m, denominator), w), L::d, parameters + j);
  }
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
