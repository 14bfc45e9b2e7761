#pragma once

/// Normalization of rows, compiled like the other kernels. Rows are padded(dim) entries apart.

namespace moelab::kernels {

/// x̂ = (x − mean x) / √(mean (x − mean x)² + floor) and y = g ∘ x̂ + b (Ba et al. 2016), or without mean and b
/// where there is no bias (Zhang, Sennrich 2019).
template <class Real>
struct RowNorm {
  int rows = 0, dim = 0;
  Real floor = 0;
  const Real* gain = nullptr;  ///< g (padded(dim)), padding zero
  const Real* bias = nullptr;  ///< b (padded(dim)), padding zero, or null
  Real* normal = nullptr;   ///< x (rows, padded(dim)), padding zero; x̂ in its place after the forward pass
  Real* inverse = nullptr;  ///< 1 / √(…), (rows)
};
void normalize_rows(const RowNorm<float>& norm, float* y);
void normalize_rows(const RowNorm<double>& norm, double* y);

/// The way back from ∂L/∂y: with ŷ = g ∘ ∂L/∂y, ∂L/∂x = (ŷ − mean ŷ − x̂ mean(ŷ ∘ x̂)) / √(…), without mean ŷ
/// where there is no bias.
template <class Real>
struct RowNormGradient {
  const Real* output = nullptr;  ///< ∂L/∂y (rows, padded(dim)), padding zero
  Real* gain = nullptr;          ///< ∂L/∂g (padded(dim)), written
  Real* bias = nullptr;          ///< ∂L/∂b, where there is one
  Real* input = nullptr;         ///< ∂L/∂x (rows, padded(dim)), or null
};
void normalize_rows_backward(const RowNorm<float>& norm, const RowNormGradient<float>& gradient);
void normalize_rows_backward(const RowNorm<double>& norm, const RowNormGradient<double>& gradient);

}  // namespace moelab::kernels
