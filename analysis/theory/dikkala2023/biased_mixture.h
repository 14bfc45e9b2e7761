#pragma once

/// A softmax mixture of three constant experts in two dimensions, its loss under a law of finitely many
/// points and the derivatives of that, in any precision:
///   L = E‖y − Σ_e r_e u_e‖² + λ (‖W‖² + ‖U‖²), r = softmax(W x + b), x = (x₁, x₂) with two relevant
/// coordinates and one irrelevant.

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab::router_bias {

constexpr int kRouted = 3, kInputs = 3, kOutputs = 2;  ///< E, d and o
constexpr int kWeights = kRouted * kInputs, kUnits = kRouted * kOutputs;
constexpr int kFree = kWeights + kUnits;  ///< without biases
constexpr int kAll = kFree + kRouted;     ///< with biases
constexpr double kPenalty = 0.003;        ///< λ₁ = λ₂

template <class Real>
struct Sample {
  std::array<Real, kInputs> x;
  std::array<Real, kOutputs> y;
  Real mass;
};

/// W (3, 3) and U (3, 2) by rows, then b (3).
template <class Real>
using Point = std::array<Real, kAll>;

template <class Real>
struct Local {
  Real value = 0;
  Point<Real> gradient{};
  std::array<Point<Real>, kAll> hessian{};
};

/// Where the derivative in s_e, and those in its weights, lie: entry and factor.
template <class Real>
std::array<std::pair<int, Real>, kInputs + 1> score_entries(int expert, const std::array<Real, kInputs>& x) {
  std::array<std::pair<int, Real>, kInputs + 1> entries;
  for (int j = 0; j < kInputs; ++j) entries[size(j)] = {expert * kInputs + j, x[size(j)]};
  entries[kInputs] = {kFree + expert, Real(1)};
  return entries;
}

/// E‖y − Σ r_e u_e‖² + λ (‖W‖² + ‖U‖²) and, where asked for, its derivatives in all of θ.
template <class Real>
Local<Real> local_loss(const std::vector<Sample<Real>>& samples, const Point<Real>& theta, bool derivatives) {
  using std::exp;
  Local<Real> local;
  const auto unit = [&](int e, int k) { return theta[size(kWeights + e * kOutputs + k)]; };
  for (const Sample<Real>& sample : samples) {
    std::array<Real, kRouted> r;
    Real total = 0;
    for (int e = 0; e < kRouted; ++e) {
      Real score = theta[size(kFree + e)];
      for (int j = 0; j < kInputs; ++j) score += theta[size(e * kInputs + j)] * sample.x[size(j)];
      r[size(e)] = exp(score);
      total += r[size(e)];
    }
    for (Real& share : r) share /= total;
    std::array<Real, kOutputs> output{}, error;
    for (int k = 0; k < kOutputs; ++k) {
      for (int e = 0; e < kRouted; ++e) output[size(k)] += r[size(e)] * unit(e, k);
      error[size(k)] = output[size(k)] - sample.y[size(k)];
      local.value += sample.mass * error[size(k)] * error[size(k)];
    }
    if (!derivatives) continue;
    // Of the output in the scores: a_e = r_e (u_e − output); c_e = (u_e − output)·error.
    std::array<std::array<Real, kOutputs>, kRouted> slope;
    std::array<Real, kRouted> along{};
    for (int e = 0; e < kRouted; ++e) {
      for (int k = 0; k < kOutputs; ++k) {
        slope[size(e)][size(k)] = r[size(e)] * (unit(e, k) - output[size(k)]);
        along[size(e)] += (unit(e, k) - output[size(k)]) * error[size(k)];
      }
    }
    const Real twice = 2 * sample.mass;
    for (int e = 0; e < kRouted; ++e) {
      const auto rows = score_entries(e, sample.x);
      for (const auto& [i, factor] : rows)
        local.gradient[size(i)] += twice * r[size(e)] * along[size(e)] * factor;
      for (int k = 0; k < kOutputs; ++k)
        local.gradient[size(kWeights + e * kOutputs + k)] += twice * r[size(e)] * error[size(k)];
      for (int f = 0; f < kRouted; ++f) {
        const Real change = r[size(e)] * (Real(e == f) - r[size(f)]);  // ∂r_e / ∂s_f
        Real curvature = change * along[size(e)] - r[size(e)] * r[size(f)] * along[size(f)];
        for (int k = 0; k < kOutputs; ++k) curvature += slope[size(e)][size(k)] * slope[size(f)][size(k)];
        const auto columns = score_entries(f, sample.x);
        for (const auto& [i, left] : rows)
          for (const auto& [j, right] : columns)
            local.hessian[size(i)][size(j)] += twice * curvature * left * right;
        for (int k = 0; k < kOutputs; ++k) {
          const int u = kWeights + e * kOutputs + k;
          const Real mixed = r[size(e)] * slope[size(f)][size(k)] + change * error[size(k)];
          for (const auto& [j, right] : columns) {
            local.hessian[size(u)][size(j)] += twice * mixed * right;
            local.hessian[size(j)][size(u)] += twice * mixed * right;
          }
          local.hessian[size(u)][size(kWeights + f * kOutputs + k)] += twice * r[size(e)] * r[size(f)];
        }
      }
    }
  }
  for (int i = 0; i < kFree; ++i) {
    const Real& entry = theta[size(i)];
    local.value += Real(kPenalty) * entry * entry;
    local.gradient[size(i)] += 2 * Real(kPenalty) * entry;
    local.hessian[size(i)][size(i)] += 2 * Real(kPenalty);
  }
  return local;
}

}  // namespace moelab::router_bias
