#pragma once

/// What an optimizer does to the parameters in one step, compiled like the other kernels.

#include <cstddef>

namespace moelab::kernels {

/// Stochastic gradient descent with momentum, v ← μ v + g + λ w, w ← w − η v (PyTorch's SGD without
/// dampening).
template <class Real>
struct SgdStep {
  Real learning_rate = 0, momentum = 0, weight_decay = 0;
};
void sgd_step(const SgdStep<float>& step, const float* gradient, float* velocity, float* parameters,
              std::size_t count);
void sgd_step(const SgdStep<double>& step, const double* gradient, double* velocity, double* parameters,
              std::size_t count);

/// `steps` steps of sgd_step with a zero gradient, rate `rates[i]` in the i-th: the same bits, but v and w
/// stay in registers from the first step to the last (`step.learning_rate` is not used).
void sgd_idle_steps(const SgdStep<float>& step, const float* rates, int steps, float* velocity,
                    float* parameters, std::size_t count);
void sgd_idle_steps(const SgdStep<double>& step, const double* rates, int steps, double* velocity,
                    double* parameters, std::size_t count);

/// Adam (Kingma, Ba 2015), or AdamW (Loshchilov, Hutter 2019) when the decay is decoupled:
/// g ← g + λ w (coupled) or w ← w − η λ w (decoupled); m ← β1 m + (1−β1) g; v ← β2 v + (1−β2) g²;
/// w ← w − step_size · m / (√v / √(1−β2^t) + ε), with step_size = η / (1−β1^t).
template <class Real>
struct AdamStep {
  Real learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  bool decoupled = false;
  Real step_size = 0;            ///< η / (1 − β1^t)
  Real second_moment_scale = 0;  ///< 1 / √(1 − β2^t)
};
void adam_step(const AdamStep<float>& step, const float* gradient, float* first, float* second,
               float* parameters, std::size_t count);
void adam_step(const AdamStep<double>& step, const double* gradient, double* first, double* second,
               double* parameters, std::size_t count);

}  // namespace moelab::kernels
