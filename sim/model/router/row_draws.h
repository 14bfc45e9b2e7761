#pragma once

/// Random numbers that depend on a row alone. They are the same in every batch, at every place and at every
/// time.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/router/router.h"

namespace moelab {

/// The finaliser of SplitMix64: every bit of the result depends on every input bit.
inline std::uint64_t mixed_bits(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// A hash of the numbers of row i and of a key.
template <class Real>
std::uint64_t row_hash(const View<const Real>& rows, int i, std::uint64_t key) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t hash = mixed_bits(key);
  for (int j = 0; j < rows.columns; ++j) {
    hash = mixed_bits(hash ^ std::bit_cast<Bits>(rows(i, j) + Real(0)));  // −0 is 0
  }
  return hash;
}

/// Writes the scores of a row (padded(E)): `scale` for the given expert, and a hashed number within 1e-3
/// below 0 for the others. Second choices are then hashed as well.
template <class Real>
void name_expert(int expert, Real scale, std::uint64_t hash, int experts, Real* scores) {
  constexpr double kUnit = 1e-3 / 9007199254740992.0;  // 1e-3 / 2^53
  std::fill_n(scores, kernels::padded(experts), Real(0));
  for (int e = 0; e < experts; ++e) {
    const std::uint64_t draw = mixed_bits(hash + static_cast<std::uint64_t>(e)) >> 11;
    scores[e] = static_cast<Real>(-kUnit * static_cast<double>(draw));
  }
  scores[expert] = scale;
}

/// The rows that identify a token in every layer: the model's own inputs.
template <class Real>
View<const Real> identity_rows(const RouterContext<Real>& context) {
  const View<const Real>& first = context.signals.first_inputs;
  return first.empty() || first.rows != context.x.rows ? context.x : first;
}

}  // namespace moelab
