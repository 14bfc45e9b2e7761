#pragma once

/// Which experts of a row are chosen, and the gates that they get.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/kernels/kernels.h"
#include "sim/model/gating/routing.h"

namespace moelab {

/// A row as gatings that select see it: γ and r (E), and gates to be set, at first all zero.
template <class Real>
struct GatedRow {
  const Real* scores;
  const Real* probabilities;
  Real* gates;
};

/// Marks the k largest of the values by gate 1: of r_e + bias_e, or without biases of the scores, since
/// probabilities may tie where scores do not. Ties go to the lower index. With `room` (E), among the experts
/// that have some, and it shrinks. `scratch.chosen` ← the experts, ascending.
template <class Real>
void mark_largest(int k, const GatedRow<Real>& row, const double* bias, int experts,
                  GatingScratch<Real>& scratch, int* room = nullptr) {
  const Real* values = row.scores;
  if (bias || room) {
    reserve_entries(scratch.values, size(kernels::padded(experts)));
    for (int e = 0; e < experts; ++e) {
      const Real value = bias ? row.probabilities[e] + static_cast<Real>(bias[e]) : row.scores[e];
      scratch.values[size(e)] = room && room[e] == 0 ? -std::numeric_limits<Real>::infinity() : value;
    }
    values = scratch.values.data();
  }
  scratch.chosen.resize(size(k));
  kernels::find_largest(values, experts, k, scratch.chosen.data());
  if (room) std::erase_if(scratch.chosen, [&](int e) { return room[e] == 0; });
  std::sort(scratch.chosen.begin(), scratch.chosen.end());
  for (const int e : scratch.chosen) {
    row.gates[e] = 1;
    if (room) --room[e];
  }
}

/// The softmax of `scores` (E) over the chosen experts alone.
template <class Real>
void set_softmax_of_chosen(const Real* scores, std::span<const int> chosen, Real* gates) {
  Real largest = scores[chosen.front()], total = 0;
  for (const int e : chosen) largest = std::max(largest, scores[e]);
  for (const int e : chosen) total += std::exp(scores[e] - largest);
  for (const int e : chosen) gates[e] = std::exp(scores[e] - largest) / total;
}

/// r_e for the chosen experts, divided by their sum when renormalised. r is increasing in `scores` (E), and
/// like exp of them where it is small: chosen experts may all be so much less likely than others that each r
/// is rounded to 0. Null where the likeliest is always chosen.
template <class Real>
void set_gates(bool renormalize, const GatedRow<Real>& row, std::span<const int> chosen,
               const Real* scores = nullptr) {
  Real total = 0;
  for (const int e : chosen) total += row.probabilities[e];
  if (renormalize && total == 0 && scores && !chosen.empty())
    return set_softmax_of_chosen(scores, chosen, row.gates);
  for (const int e : chosen) row.gates[e] = renormalize ? row.probabilities[e] / total : row.probabilities[e];
}

/// Marks the experts with r_e above a threshold by gate 1, the one of the largest score where there is none.
/// `scratch.chosen` ← the experts, ascending.
template <class Real>
void mark_above(Real threshold, const GatedRow<Real>& row, int experts, GatingScratch<Real>& scratch) {
  scratch.chosen.clear();
  for (int e = 0; e < experts; ++e) {
    if (row.probabilities[e] > threshold) scratch.chosen.push_back(e);
  }
  if (scratch.chosen.empty()) return mark_largest(1, row, nullptr, experts, scratch);
  for (const int e : scratch.chosen) row.gates[e] = 1;
}

}  // namespace moelab
