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

namespace moelab::router_bias {

constexpr int kRouted = 3, kInputs = 3, kOutputs = 2;  ///< E, d and o
constexpr int kWeights = kRouted * kInputs, kUnits = kRouted * kOutputs;
constexpr int kFree = kWeights + kUnits;  ///< without biases
constexpr int kAll = kFree + kRouted;     ///< with biases
constexpr double kPenalty = 0.003;        ///< λ₁ = λ₂

/// An index of an array.
constexpr std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}
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
  for (int j = 0; j < kInputs; ++j) entries[at(j)] = {expert * kInputs + j, x[at(j)]};
  entries[kInputs] = {kFree + expert, Real(1)};
  return entries;
}

/// E‖y − Σ r_e u_e‖² + λ (‖W‖² + ‖U‖²) and, where asked for, its derivatives in all of θ.
template <class Real>
Local<Real> local_loss(const std::vector<Sample<Real>>& samples, const Point<Real>& theta, bool derivatives) {
  using std::exp;
  Local<Real> local;
  const auto unit = [&](int e, int k) { return theta[at(kWeights + e * kOutputs + k)]; };
  for (const Sample<Real>& sample : samples) {
    std::array<Real, kRouted> r;
    Real total = 0;
    for (int e = 0; e < kRouted; ++e) {
      Real score = theta[at(kFree + e)];
      for (int j = 0; j < kInputs; ++j) score += theta[at(e * kInputs + j)] * sample.x[at(j)];
      r[at(e)] = exp(score);
      total += r[at(e)];
    }
    for (Real& share : r) share /= total;
    std::array<Real, kOutputs> output{}, error;
    for (int k = 0; k < kOutputs; ++k) {
      for (int e = 0; e < kRouted; ++e) output[at(k)] += r[at(e)] * unit(e, k);
      error[at(k)] = output[at(k)] - sample.y[at(k)];
      local.value += sample.mass * error[at(k)] * error[at(k)];
    }
    if (!derivatives) continue;
    // Of the output in the scores: a_e = r_e (u_e − output); c_e = (u_e − output)·error.
    std::array<std::array<Real, kOutputs>, kRouted> slope;
    std::array<Real, kRouted> along{};
    for (int e = 0; e < kRouted; ++e) {
      for (int k = 0; k < kOutputs; ++k) {
        slope[at(e)][at(k)] = r[at(e)] * (unit(e, k) - output[at(k)]);
        along[at(e)] += (unit(e, k) - output[at(k)]) * error[at(k)];
      }
    }
    const Real twice = 2 * sample.mass;
    for (int e = 0; e < kRouted; ++e) {
      const auto rows = score_entries(e, sample.x);
      for (const auto& [i, factor] : rows) local.gradient[at(i)] += twice * r[at(e)] * along[at(e)] * factor;
      for (int k = 0; k < kOutputs; ++k)
        local.gradient[at(kWeights + e * kOutputs + k)] += twice * r[at(e)] * error[at(k)];
      for (int f = 0; f < kRouted; ++f) {
        const Real change = r[at(e)] * (Real(e == f) - r[at(f)]);  // ∂r_e / ∂s_f
        Real curvature = change * along[at(e)] - r[at(e)] * r[at(f)] * along[at(f)];
        for (int k = 0; k < kOutputs; ++k) curvature += slope[at(e)][at(k)] * slope[at(f)][at(k)];
        const auto columns = score_entries(f, sample.x);
        for (const auto& [i, left] : rows)
          for (const auto& [j, right] : columns)
            local.hessian[at(i)][at(j)] += twice * curvature * left * right;
        for (int k = 0; k < kOutputs; ++k) {
          const int u = kWeights + e * kOutputs + k;
          const Real mixed = r[at(e)] * slope[at(f)][at(k)] + change * error[at(k)];
          for (const auto& [j, right] : columns) {
            local.hessian[at(u)][at(j)] += twice * mixed * right;
            local.hessian[at(j)][at(u)] += twice * mixed * right;
          }
          local.hessian[at(u)][at(kWeights + f * kOutputs + k)] += twice * r[at(e)] * r[at(f)];
        }
      }
    }
  }
  for (int i = 0; i < kFree; ++i) {
    const Real entry = theta[at(i)];
    local.value += Real(kPenalty) * entry * entry;
    local.gradient[at(i)] += 2 * Real(kPenalty) * entry;
    local.hessian[at(i)][at(i)] += 2 * Real(kPenalty);
  }
  return local;
}

}  // namespace moelab::router_bias
