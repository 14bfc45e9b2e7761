#pragma once

/// What auxiliary losses have in common.

#include <algorithm>

#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {

/// Calls visit(expert) for the active experts of a row, in no particular order.
template <class Real, class Visit>
void for_each_active(const Routing<Real>& routing, int row, const Visit& visit) {
  if (routing.every_pair) {
    for (int e = 0; e < routing.experts; ++e) visit(e);
    return;
  }
  const int begin = row == 0 ? 0 : routing.row_ends[size(row) - 1];
  for (int at = begin; at < routing.row_ends[size(row)]; ++at) visit(routing.row_experts[size(at)]);
}

/// counts (E) ← n_j, the rows that activate each expert. Returns their sum.
template <class Real>
double count_active(const Routing<Real>& routing, std::vector<double>& counts) {
  counts.resize(size(routing.experts));
  double pairs = 0;
  for (int e = 0; e < routing.experts; ++e) {
    counts[size(e)] = routing.pairs_of(e);
    pairs += routing.pairs_of(e);
  }
  return pairs;
}

/// counts (E) ← c_j, the rows whose likeliest expert each is.
template <class Real>
void count_first_choices(const RoutedBatch<Real>& batch, std::vector<double>& counts) {
  const Routing<Real>& routing = *batch.routing;
  counts.assign(size(routing.experts), 0.0);
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const r = batch.probabilities + entries(row, routing.stride);
    ++counts[size(std::max_element(r, r + routing.experts) - r)];
  }
}

/// means (E) ← the mean of each column of `values` (n, stride).
template <class Real>
void column_means(const Real* values, const Routing<Real>& routing, std::vector<double>& means) {
  means.assign(size(routing.experts), 0.0);
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const line = values + entries(row, routing.stride);
    for (std::size_t e = 0; e < means.size(); ++e) means[e] += static_cast<double>(line[e]);
  }
  for (double& mean : means) mean /= routing.rows;
}

/// Σ_j weight_j P_j, P_j = (1/n) Σ_i r_ij: what balance terms are, with weights (E) that are held fixed.
template <class Real>
double balance_value(const RoutedBatch<Real>& batch, const std::vector<double>& weights,
                     AuxiliaryScratch& scratch) {
  column_means(batch.probabilities, *batch.routing, scratch.means);
  double value = 0;
  for (std::size_t e = 0; e < weights.size(); ++e) value += weights[e] * scratch.means[e];
  return value;
}

/// Adds coefficient times its gradient to ∂L/∂r.
template <class Real>
void add_balance(const RoutedBatch<Real>& batch, const std::vector<double>& weights, double coefficient,
                 Real* gradient) {
  const Routing<Real>& routing = *batch.routing;
  for (std::size_t e = 0; e < weights.size(); ++e) {
    const Real step = static_cast<Real>(coefficient * weights[e] / routing.rows);
    for (int row = 0; row < routing.rows; ++row) gradient[entries(row, routing.stride) + e] += step;
  }
}

}  // namespace moelab
